package contacts

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/wordset"
)

// Bounds of an address (RFC 5321), and of the places of a text that are examined.
const (
	maxLocal  = 64
	maxDomain = 253
	maxSigns  = 5000
	maxSpells = 1000 // spelled-out ones, which are costlier to examine
)

// hit is an address found at text[from:to].
type hit struct {
	email    string
	from, to int
}

// findAddresses finds the addresses written in a text. A domain in own is accepted even if its
// top-level domain is unknown.
func findAddresses(text string, own []string) []hit {
	var hits []hit
	at := 0
	for range maxSigns {
		next := strings.IndexAny(text[at:], "@＠"+pictured)
		if next < 0 {
			break
		}
		at += next
		_, width := utf8.DecodeRuneInString(text[at:])
		from, end := localBefore(text, at), domainAfter(text, at+width)
		if from > 0 && text[from-1] == '@' { // @name@server is a Mastodon handle
			at += width
			continue
		}
		if email, length := normalise(text[from:at], text[at+width:end], own); email != "" &&
			!isDisguised(text[:from]) && !isElsewhere(text, from, at+width+length) {
			hits = append(hits, hit{email, from, at + width + length})
		}
		at += width
	}
	return append(append(hits, findSpelled(text, own)...), findTight(text, own)...)
}

func isLocal(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	case r < utf8.RuneSelf:
		// the other signs that RFC 5322 allows separate addresses here
		return strings.ContainsRune(".!#$%&'*+^_~-", r)
	}
	return unicode.Is(unicode.Latin, r)
}

// localBefore returns where the local part before offset at begins.
func localBefore(text string, at int) int {
	from := at
	for from > 0 && at-from <= 2*maxLocal {
		r, width := utf8.DecodeLastRuneInString(text[:from])
		if !isLocal(r) {
			break
		}
		from -= width
	}
	return from
}

// domainAfter returns the end of the possible domain that begins at offset at.
func domainAfter(text string, at int) int {
	end := at
	for end < len(text) && end-at <= 2*maxDomain {
		r, width := utf8.DecodeRuneInString(text[end:])
		if r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) &&
			!unicode.IsMark(r) {
			break
		}
		end += width
	}
	return end
}

// normalise builds an address from its written parts: lower case, with the domain in lookup form.
// It drops text stuck to the end of the domain; length is how much of domain it used. It returns ""
// if the parts form no address.
func normalise(local, domain string, own []string) (email string, length int) {
	local = ungrown(strings.ToLower(strings.TrimLeft(plainLocal(local), ".'*/=|-_~`{}!?&#")))
	if local == "" || len(local) > maxLocal || strings.HasSuffix(local, ".") ||
		strings.Contains(local, "..") ||
		strings.ContainsAny(local, "/=?{}|`") {
		return "", 0
	}
	for _, length := range domainEnds(domain) {
		if isMixed(domain[:length]) || isNumbered(domain) {
			continue
		}
		if ascii := lookupForm(domain[:length], own); ascii != "" {
			return local + "@" + ascii, length
		}
	}
	return "", 0
}

var (
	// grown matches a label stuck to an address that markup separates: E-Mailinfo@firma.de,
	// 0911123456info@firma.de.
	grown = regexp.MustCompile(`^(?:e-mail|email|mail|(?:\+?[0-9][0-9.-]{4,}))([a-z].+)$`)
	// plainLocals are the local parts of most addresses. Before other local parts, a label may
	// belong to the name: emailmarketing@firma.de.
	plainLocals = wordset.Of(`info infos kontakt contact contacto contatti office mail post posta sales service support hello hallo bonjour hola ciao
		admin team anfrage anfragen buero buchung reservierung reservation booking praxis kanzlei shop verkauf vertrieb empfang zentrale
		hotel restaurant rezeption reception enquiries inquiries accueil commercial ventas biuro sekretariat sekretariaat kancelar obchod`)
	// spacedLocals are unlikely as words of a sentence before a handle: info @firma.de.
	spacedLocals = wordset.Of("info infos office")
)

// ungrown removes a label stuck to a local part.
func ungrown(local string) string {
	parts := grown.FindStringSubmatch(local)
	if parts == nil || !plainLocals[parts[1]] && !strings.HasPrefix(local, "e-mail") {
		return local
	}
	return parts[1]
}

// domainEnds returns the offsets at which a written domain may end, the likeliest first. It may end
// at the text's end, where the last label changes case ("firma.deTelefon"), or a label earlier.
func domainEnds(domain string) []int {
	var ends []int
	for end := len(strings.TrimRight(domain, ".-")); end > 0; {
		dot := strings.LastIndexByte(domain[:end], '.')
		// otherwise the next sentence is stuck to it: firma.de.In
		if dot <= 0 || !startsSentence(domain[:dot], domain[dot+1:end]) {
			ends = append(ends, end)
		}
		if dot <= 0 {
			break
		}
		label := domain[dot+1 : end]
		if cut := kindChanges(label); cut > 0 {
			ends = append(ends, dot+1+cut)
		}
		end = len(strings.TrimRight(domain[:dot], ".-"))
		if len(ends) >= 8 || strings.IndexByte(domain[:end], '.') < 0 {
			break
		}
	}
	return ends
}

// startsSentence says whether label is a capitalised word after a lower-case domain.
func startsSentence(before, label string) bool {
	return len(label) > 1 && 'A' <= label[0] && label[0] <= 'Z' && 'a' <= label[1] &&
		label[1] <= 'z' && strings.Contains(before, ".") && before == strings.ToLower(before)
}

// kindChanges returns the length of a label's leading run of lower-case ASCII letters. It is 0 if
// the run is the whole label or shorter than 2.
func kindChanges(label string) int {
	n := 0
	for n < len(label) && 'a' <= label[n] && label[n] <= 'z' {
		n++
	}
	if n == len(label) || n < 2 {
		return 0
	}
	return n
}

// lookupForm returns a domain in ASCII and lower case, or "" if it cannot receive mail.
func lookupForm(domain string, own []string) string {
	if !strings.Contains(domain, ".") {
		return ""
	}
	ascii := domain
	if len(domain) > maxDomain || strings.Contains(domain, "--") || !isPlainDomain(domain) {
		var err error
		if ascii, err = idna.Lookup.ToASCII(domain); err != nil || len(ascii) > maxDomain {
			return ""
		}
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if label == "" || len(label) > 63 ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return ""
		}
	}
	registered := registrable(ascii)
	if registered == "" {
		return ""
	}
	suffix, known := publicsuffix.PublicSuffix(ascii)
	if !known && !strings.Contains(suffix, ".") && !slices.Contains(own, registered) {
		return ""
	}
	return ascii
}

// isPlainDomain says whether a domain is already in lookup form.
func isPlainDomain(domain string) bool {
	return strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" &&
		domain[0] != '-' && !strings.Contains(domain, ".-") && !strings.Contains(domain, "-.")
}

// registrable returns the domain under which a host is registered. It is "" for public suffixes and
// IP addresses.
func registrable(host string) string {
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil || domain[len(domain)-1] <= '9' {
		return ""
	}
	return domain
}

func domainOfEmail(email string) string {
	_, host, _ := strings.Cut(email, "@")
	return registrable(host)
}

// domainOfURL returns the registrable domain of a canonical address, or its host if it has none.
func domainOfURL(canonical string) string {
	return address.RegistrableDomain(address.HostOf(canonical))
}

// Words and signs for the at sign and for dots in addresses that a business spells out for readers.
const (
	atWords = `(?i:at|ät|ätt|aet|ad|et|chez|alfa|alpha|@|＠|arroba|arobase|arobas|` + rareAts + `|snabel a|miukumauku|a|à|á|â|å|アット|あっと|アットマーク|골뱅이)`
	// Words for the at sign that rarely occur before a domain otherwise.
	rareAts  = `chiocciola|małpa|malpa|zavináč|zavinac|kukac|snabel-?a|apenstaartje|apestaartje|krøllalfa|собака`
	spoken   = `(?i:arroba|arobase|arobas|` + rareAts + `)`
	dotWords = `(?i:dot|punkt|punto|point|kropka|tečka|tecka|ponto|punt|pont|piste|prick|punktum|точка|ドット|\.)`
	open     = `[\[({<]`
	shut     = `[\])}>]`
	word     = `[\pL\pN_%+-]+`
	// A dot of a spelled-out domain or local part: a real one, a word in brackets, or a bare word.
	spokenDot = `(?i:dot|punkt|punto|point|ponto|kropka|tečka|pont|piste|точка|\.)`
	anyDot    = `(?:[ ]?` + open + `[ ]?` + dotWords + `[ ]?` + shut + `[ ]?|\.)`
)

var (
	// info [at] firma (dot) de; info(at)firma.de; info@firma[punkt]de
	bracketed = regexp.MustCompile(`(` + word + `(?:` + anyDot + word + `)*)[ ]?(?:` + open +
		`[ ]?` + atWords + `[ ]?` + shut + `|@)[ ]?(` +
		word + `(?:(?:` + anyDot + `|[ ](?i:dot|punkt|punto|point)[ ])` + word + `)+)`)
	// info AT firma DOT de; info @ firma . de; info arroba empresa punto es
	spaced = regexp.MustCompile(`(` + word + `(?:\.` + word + `)*)[ ](?:AT|at|@|ät|[-_]at[-_]|` +
		spoken + `)[ ](` + word +
		`(?:(?:[ ]` + spokenDot + `[ ]|\.)` + word + `)+)`)
	spelledDot = regexp.MustCompile(`(?:[ ]?` + open + `[ ]?` + dotWords + `[ ]?` + shut +
		`[ ]?|[ ]` + spokenDot + `[ ])`)
	spokenHere = regexp.MustCompile(`[ ]` + spoken + `[ ]`)
	mailLabel  = regexp.MustCompile(`(?i)(?:e-?mail|e-post|mail|correo|courriel|posta|mél)(?:[ -]?(?:adresse|address|us|to))?[ ]?[:：]?[ ]?$`)
	// mailNear matches words for mail, right before a name or a little earlier.
	mailNear  = regexp.MustCompile(`(?i)mail|e-post|correo|courriel|posta|mél|邮|メール|почт|пошт`)
	spelledAt = regexp.MustCompile(spelled)
	// spelledHere matches only at the beginning.
	spelledHere = regexp.MustCompile(`^(?:` + spelled + `)`)
)

const spelled = `(?i)` + open + `[ ]?` + atWords + `[ ]?` + shut + `|` + open + `[ ]?` + dotWords +
	`[ ]?` + shut + `|[ ](?:at|@|ät|[-_]at[-_]|` + spoken + `)[ ]|[ ]@`

// spelledReach is how far a spelled-out address may extend from its at sign, in bytes.
const spelledReach = 160

// spelledWidth exceeds the length of any match of spelledAt, in bytes.
const spelledWidth = 64

// spelledSigns returns the first matches of spelledAt. It tries the expression only where a match
// may begin, because most positions cannot match.
func spelledSigns(text string, most int) []span {
	var signs []span
	for i := 0; i < len(text) && len(signs) < most; i++ {
		switch text[i] {
		case '[', '(', '{', '<':
		case ' ':
			if !mayBeSign(text[i+1:]) {
				continue
			}
		default:
			continue
		}
		if m := spelledHere.FindStringIndex(text[i:min(len(text), i+spelledWidth)]); m != nil {
			signs = append(signs, span{i, i + m[1]})
			i += m[1] - 1
		}
	}
	return signs
}

// mayBeSign says whether a text may begin with a word or a sign for @. It rejects most words
// without a regular expression.
func mayBeSign(s string) bool {
	if len(s) < 2 {
		return s == "@"
	}
	next := s[1] | 0x20
	switch s[0] | 0x20 {
	case 'a': // at, arroba, apenstaartje
		return next == 't' || next == 'r' || next == 'p'
	case 'c':
		return next == 'h' && len(s) > 2 && s[2]|0x20 == 'i'
	case 'm': // malpa, małpa
		return next == 'a' && len(s) > 2 && (s[2]|0x20 == 'l' || s[2] == '\xc5')
	case 'z':
		return next == 'a' && len(s) > 2 && s[2]|0x20 == 'v'
	case 'k': // kukac, krøllalfa
		return len(s) > 2 && (next == 'u' && s[2]|0x20 == 'k' || next == 'r' && s[2] == '\xc3')
	case 's':
		return next == 'n' && len(s) > 2 && s[2]|0x20 == 'a'
	}
	// \xc3 is the first byte of ä and Ä; \xd0 and \xd1 are those of С and с
	return strings.IndexByte("@-_\xc3\xd0\xd1", s[0]) >= 0
}

// findSpelled finds spelled-out addresses.
func findSpelled(text string, own []string) []hit {
	var hits []hit
	done := 0 // end of the text already examined
	for _, sign := range spelledSigns(text, maxSpells) {
		if sign.from < done {
			continue
		}
		from := alignRune(text, max(done, sign.from-spelledReach))
		window := text[from:alignRune(text, min(len(text), sign.to+spelledReach))]
		done = sign.to
		m := bracketed.FindStringSubmatchIndex(window)
		if m == nil || !spelledAt.MatchString(window[m[0]:m[1]]) {
			if m = spaced.FindStringSubmatchIndex(window); m == nil || !announces(window, m) {
				continue
			}
		} else if !isMeant(window, m, own) {
			continue
		}
		local := spelledDot.ReplaceAllString(window[m[2]:m[3]], ".")
		domain := spelledDot.ReplaceAllString(window[m[4]:m[5]], ".")
		if email, _ := normalise(local, domain, own); email != "" {
			hits = append(hits, hit{email, from + m[0], from + m[1]})
			done = max(done, from+m[1])
		}
	}
	return hits
}

// isMeant says whether a possible spelled-out address is one, judging by its at sign.
func isMeant(text string, m []int, own []string) bool {
	local, sign := text[m[2]:m[3]], text[m[3]:m[4]]
	switch {
	case sign == " @": // otherwise a handle: follow us @firma.de
		return isLabelled(text, m[0]) || spacedLocals[local]
	case sign == " @ ": // otherwise somebody at some place
		return mailNear.MatchString(text[max(0, m[0]-40):m[0]]) ||
			plainLocals[strings.ToLower(local)] ||
			slices.Contains(own, domainOfEmail("x@"+strings.ToLower(text[m[4]:m[5]])))
	case isLetter(sign) && strings.Contains(sign, " "):
		return isLabelled(text, m[0])
	}
	return true
}

// announces says that an ordinary word such as "at" belongs to an address. A label precedes the
// address, or its spelling is unusual, such as capitals.
func announces(text string, m []int) bool {
	found := text[m[0]:m[1]]
	return isLabelled(text, m[0]) || strings.Contains(found, " AT ") &&
		strings.Contains(found, " DOT ") || spokenHere.MatchString(found) ||
		strings.Contains(found, " -at- ") || strings.Contains(found, " _at_ ")
}

// isLabelled says whether a label such as E-Mail: precedes an offset.
func isLabelled(text string, at int) bool { return mailLabel.MatchString(text[max(0, at-40):at]) }

// isLetter says whether an at sign is only a letter in brackets: info(a)firma.de, but also an item
// (a).
func isLetter(sign string) bool {
	inner := strings.Trim(sign, " []{}()<>")
	r, size := utf8.DecodeRuneInString(inner)
	return size == len(inner) && unicode.IsLetter(r)
}

// pictured marks a picture of an at sign in the text of a page.
const pictured = "\x1d"

// tight matches an at sign written as a word between two signs without spaces: info|at|firma.de,
// info_at_firma.de.
var tight = regexp.MustCompile(`^([|_*~"'=/+-])(?i:at|ät|arroba|arobase|chiocciola|malpa|małpa)([|_*~"'=/+-])([\pL\pN-]+(?:(?:\.|[|_*~"'=](?i:dot|punkt|punto|point|ponto)[|_*~"'=])[\pL\pN-]+)+)`)

// tightHere matches the word for such an at sign, only at the beginning.
var tightHere = regexp.MustCompile(`^(?i:at|ät|arroba|arobase|chiocciola|malpa|małpa)[|_*~"'=/+-]`)

var tightDot = regexp.MustCompile(`[|_*~"'=]\pL+[|_*~"'=]`)

// findTight finds such addresses. Names of files have signs such as _, too. With those, the site's
// own domain, a label or a usual local part must confirm the address.
func findTight(text string, own []string) []hit {
	var hits []hit
	for at, tries := 0, 0; len(hits) < maxHits && tries < maxSpells; {
		next := strings.IndexAny(text[at:], `|_*~"'=/+-`)
		if next < 0 {
			break
		}
		at += next + 1
		if at == len(text) || strings.IndexByte("aAcCmM\xc3", text[at]) < 0 ||
			!tightHere.MatchString(text[at:min(len(text), at+16)]) {
			continue
		}
		tries++
		m := tight.FindStringSubmatch(text[at-1 : alignRune(text, min(len(text), at+spelledReach))])
		if m == nil || m[1] != m[2] {
			continue
		}
		from := at - 1
		for from > 0 && at-from <= 2*maxLocal {
			r, width := utf8.DecodeLastRuneInString(text[:from])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-' && r != '+' {
				break
			}
			from -= width
		}
		local := text[from : at-1]
		email, _ := normalise(local, tightDot.ReplaceAllString(m[3], "."), own)
		if email == "" || strings.Contains("_-/+", m[1]) &&
			!slices.Contains(own, domainOfEmail(email)) && !isLabelled(text, from) &&
			(m[1] != "_" || !plainLocals[strings.ToLower(local)]) {
			continue
		}
		hits = append(hits, hit{email, from, at - 1 + len(m[0])})
		at = min(at-1+len(m[0]), len(text))
	}
	return hits
}

// maxMailto bounds how much of a mailto link is examined, in bytes.
const maxMailto = 8 << 10

// mailtoAddresses returns the addresses of a mailto link to which mail is sent or visibly copied.
func mailtoAddresses(href string, own []string) []string {
	rest, query, _ := strings.Cut(href[len("mailto:"):min(len(href), maxMailto)], "?")
	if decoded, err := url.PathUnescape(rest); err == nil {
		rest = decoded
	}
	for member := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(member, "=")
		if name = strings.ToLower(name); name != "to" && name != "cc" {
			continue
		}
		if decoded, err := url.PathUnescape(value); err == nil {
			rest += "," + decoded
		}
	}
	var emails []string
	for part := range strings.FieldsFuncSeq(rest,
		func(r rune) bool { return r == ',' || r == ';' }) {
		for _, h := range findAddresses(strings.TrimSpace(part), own) {
			emails = append(emails, h.email)
		}
		if len(emails) >= maxAddresses {
			break
		}
	}
	return emails
}
