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

	"shoal.dev/shoal/pkg/wordset"
)

// Bounds of an address (RFC 5321), and of how many places of a text are looked at.
const (
	maxLocal  = 64
	maxDomain = 253
	maxSigns  = 5000
	maxSpells = 1000 // that are spelled out: each takes a longer look
)

// hit is an address in a text, from offset from to offset to.
type hit struct {
	email    string
	from, to int
}

// findAddresses finds what is written as an address in a text. own are domains that need no known
// top-level domain.
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
		if from > 0 && text[from-1] == '@' { // @name@server is who somebody is on Mastodon
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
		// what else RFC 5322 allows stands between addresses
		return strings.ContainsRune(".!#$%&'*+^_~-", r)
	}
	return unicode.Is(unicode.Latin, r)
}

// localBefore is where the local part that ends at at begins.
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

// domainAfter is where what may be a domain that begins at at ends.
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

// normalise makes an address of its parts as they are written: lower case, the domain as it is
// looked up. What is glued to the end of the domain is left off; length is how much of it was used.
// "" is no address.
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
	// grown is a label that has grown to an address, where markup sets them apart:
	// E-Mailinfo@firma.de, 0911123456info@firma.de.
	grown = regexp.MustCompile(`^(?:e-mail|email|mail|(?:\+?[0-9][0-9.-]{4,}))([a-z].+)$`)
	// plainLocals are what most addresses begin with. Before others a label may be a part of the
	// name: emailmarketing@firma.de.
	plainLocals = wordset.Of(`info infos kontakt contact contacto contatti office mail post posta sales service support hello hallo bonjour hola ciao
		admin team anfrage anfragen buero buchung reservierung reservation booking praxis kanzlei shop verkauf vertrieb empfang zentrale
		hotel restaurant rezeption reception enquiries inquiries accueil commercial ventas biuro sekretariat sekretariaat kancelar obchod`)
	// spacedLocals are no words of a sentence before somebody's name: info @firma.de.
	spacedLocals = wordset.Of("info infos office")
)

// ungrown is a local part without what has grown to it.
func ungrown(local string) string {
	parts := grown.FindStringSubmatch(local)
	if parts == nil || !plainLocals[parts[1]] && !strings.HasPrefix(local, "e-mail") {
		return local
	}
	return parts[1]
}

// domainEnds are the places where a written domain may end, the likeliest first. It may end at its
// end, where the last label changes its kind ("firma.deTelefon"), or a label earlier.
func domainEnds(domain string) []int {
	var ends []int
	for end := len(strings.TrimRight(domain, ".-")); end > 0; {
		dot := strings.LastIndexByte(domain[:end], '.')
		// else the next sentence has grown to it: firma.de.In
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

// startsSentence says whether a label is the capitalised word behind a domain in small letters.
func startsSentence(before, label string) bool {
	return len(label) > 1 && 'A' <= label[0] && label[0] <= 'Z' && 'a' <= label[1] &&
		label[1] <= 'z' && strings.Contains(before, ".") && before == strings.ToLower(before)
}

// kindChanges is the length of the leading run of lower-case (or of only upper-case) ASCII letters
// of a label. It is 0 when that is all of it or less than 2.
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

// lookupForm is a domain in ASCII and lower case; "" when it cannot be one that takes mail.
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

// isPlainDomain says whether a domain is written as it is looked up.
func isPlainDomain(domain string) bool {
	return strings.Trim(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" &&
		domain[0] != '-' && !strings.Contains(domain, ".-") && !strings.Contains(domain, "-.")
}

// registrable is the domain under which a host was registered, "" when it has none: public
// suffixes, IP addresses.
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

// domainOfURL is the registrable domain of an address, the host itself where it has none.
func domainOfURL(address string) string {
	host := hostOf(address)
	if domain := registrable(host); domain != "" {
		return domain
	}
	return host
}

// hostOf is the host of an address in lower case and ASCII, "" when it cannot be read.
func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}

// What stands for the at sign and for dots in addresses that a business spells out itself, so that
// people can read them.
const (
	atWords = `(?i:at|ät|ätt|aet|ad|et|chez|alfa|alpha|@|＠|arroba|arobase|arobas|` + rareAts + `|snabel a|miukumauku|a|à|á|â|å|アット|あっと|アットマーク|골뱅이)`
	// Words for the sign that hardly anybody writes before a domain otherwise.
	rareAts  = `chiocciola|małpa|malpa|zavináč|zavinac|kukac|snabel-?a|apenstaartje|apestaartje|krøllalfa|собака`
	spoken   = `(?i:arroba|arobase|arobas|` + rareAts + `)`
	dotWords = `(?i:dot|punkt|punto|point|kropka|tečka|tecka|ponto|punt|pont|piste|prick|punktum|точка|ドット|\.)`
	open     = `[\[({<]`
	shut     = `[\])}>]`
	word     = `[\pL\pN_%+-]+`
	// A dot of a spelled domain or local part: a real one, a word in brackets, or a word by itself.
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
	// mailNear speaks of mail, right before somebody's name or a little earlier.
	mailNear  = regexp.MustCompile(`(?i)mail|e-post|correo|courriel|posta|mél|邮|メール|почт|пошт`)
	spelledAt = regexp.MustCompile(spelled)
	// spelledHere matches at the beginning alone.
	spelledHere = regexp.MustCompile(`^(?:` + spelled + `)`)
)

const spelled = `(?i)` + open + `[ ]?` + atWords + `[ ]?` + shut + `|` + open + `[ ]?` + dotWords +
	`[ ]?` + shut + `|[ ](?:at|@|ät|[-_]at[-_]|` + spoken + `)[ ]|[ ]@`

// spelledReach is how far from its at sign an address that is spelled out may reach.
const spelledReach = 160

// spelledWidth is more bytes than any match of spelledAt has.
const spelledWidth = 64

// spelledSigns are the first matches of spelledAt. It is tried only where one may begin, since most
// of a text is none.
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

// mayBeSign says whether a text may begin with a word or a sign for @. Most words do not, and need
// no expression.
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
	// \xc3 begins ä and Ä, \xd0 and \xd1 С and с
	return strings.IndexByte("@-_\xc3\xd0\xd1", s[0]) >= 0
}

// findSpelled finds addresses that are spelled out.
func findSpelled(text string, own []string) []hit {
	var hits []hit
	done := 0 // what lies before has been looked at
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

// isMeant says whether what may be spelled out is, by its sign.
func isMeant(text string, m []int, own []string) bool {
	local, sign := text[m[2]:m[3]], text[m[3]:m[4]]
	switch {
	case sign == " @": // else who somebody is elsewhere: follow us @firma.de
		return isLabelled(text, m[0]) || spacedLocals[local]
	case sign == " @ ": // else somebody at some place
		return mailNear.MatchString(text[max(0, m[0]-40):m[0]]) ||
			plainLocals[strings.ToLower(local)] ||
			slices.Contains(own, domainOfEmail("x@"+strings.ToLower(text[m[4]:m[5]])))
	case isLetter(sign) && strings.Contains(sign, " "):
		return isLabelled(text, m[0])
	}
	return true
}

// announces says that words as ordinary as "at" are meant as an address: where one is announced, or
// where they shout.
func announces(text string, m []int) bool {
	found := text[m[0]:m[1]]
	return isLabelled(text, m[0]) || strings.Contains(found, " AT ") &&
		strings.Contains(found, " DOT ") || spokenHere.MatchString(found) ||
		strings.Contains(found, " -at- ") || strings.Contains(found, " _at_ ")
}

// isLabelled says whether words such as E-Mail: stand before an offset.
func isLabelled(text string, at int) bool { return mailLabel.MatchString(text[max(0, at-40):at]) }

// isLetter says whether the sign of an address is no more than a letter in brackets:
// info(a)firma.de, but also an item (a).
func isLetter(sign string) bool {
	inner := strings.Trim(sign, " []{}()<>")
	r, size := utf8.DecodeRuneInString(inner)
	return size == len(inner) && unicode.IsLetter(r)
}

// pictured stands in the text of a page where a picture of an at sign does.
const pictured = "\x1d"

// tight is an address whose at sign is a word between two signs, without a space: info|at|firma.de,
// info_at_firma.de.
var tight = regexp.MustCompile(`^([|_*~"'=/+-])(?i:at|ät|arroba|arobase|chiocciola|malpa|małpa)([|_*~"'=/+-])([\pL\pN-]+(?:(?:\.|[|_*~"'=](?i:dot|punkt|punto|point|ponto)[|_*~"'=])[\pL\pN-]+)+)`)

// tightHere is the word for the sign of such an address, at the beginning alone.
var tightHere = regexp.MustCompile(`^(?i:at|ät|arroba|arobase|chiocciola|malpa|małpa)[|_*~"'=/+-]`)

var tightDot = regexp.MustCompile(`[|_*~"'=]\pL+[|_*~"'=]`)

// findTight finds such addresses. Names of files have underscores, too: with them the domain or
// what announces it has to tell.
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

// maxMailto is how much of a mailto link is looked at, in bytes.
const maxMailto = 8 << 10

// mailtoAddresses are the addresses of a mailto link that a mail goes to, or is copied to for all
// to see.
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
