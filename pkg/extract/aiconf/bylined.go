package aiconf

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/wordset"
)

// Lines with an author have a date, a place, an office or a network before or after the name. The
// code here cuts these off, for stated and for visible names.

var (
	// dayAhead matches a date and time, before a name or alone; dayIn checks it.
	dayAhead = regexp.MustCompile(`^(?:\pL{2,12}\.?,? )?(?:\pL{3,12}\.? [0-9]{1,2}(?:st|nd|rd|th)?,? ` +
		`(?:19|20)[0-9]{2}|[0-9]{1,2}(?:\.|st|nd|rd|th|er)? (?:de )?\pL{3,12}\.?,? (?:de )?` +
		`(?:19|20)[0-9]{2}|[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{2,4})(?:,? *(?:at |um |à |a las |- )?` +
		`[0-9]{1,2}[:.h][0-9]{2}(?::[0-9]{2})?(?: ?[aApP]\.?[mM]\.?)?(?: (?:Uhr|\p{Lu}{2,4}))?)?` +
		`[ ,|·•/–-]*`)
	// sayAhead matches the words for publication or change before a date.
	sayAhead = regexp.MustCompile(`^(?i:(?:last )?updated?|published|posted|submitted|written|` +
		`modified|aktualisiert|veröffentlicht|geschrieben|verfasst|erstellt|eingestellt|gepostet|stand|publié|mis à jour|publicado|actualizado|pubblicato|aggiornato|` +
		`gepubliceerd|bijgewerkt|publicerad|uppdaterad|publisert|oppdatert|publiceret|opdateret|` +
		`julkaistu|päivitetty|opublikowano|aktualizacja|опубликовано|обновлено|yayınlanma)` +
		`(?: (?:on|at|am|le|el|il|op))?:? +`)
	// saidBehind matches the same words after a name, with the rest of a date.
	saidBehind = regexp.MustCompile(`(?i)[ ,|·•/–-]+(?:(?:last )?updated?|published|posted|` +
		`aktualisiert|veröffentlicht|publié|mis à jour|publicado|actualizado|pubblicato|` +
		`aggiornato|gepubliceerd|bijgewerkt|publicerad|uppdaterad|publisert|oppdatert)` +
		`(?:[ :].*)?$`)
	// weekday matches a day of the week after a name.
	weekday = regexp.MustCompile(`(?i),? (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|` +
		`donners|frei|sams|sonn)tag|mittwoch|sonnabend|lundi|mardi|mercredi|jeudi|vendredi|samedi|` +
		`dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo|lunedì|martedì|mercoledì|` +
		`giovedì|venerdì|sabato|domenica|(?:maan|dins|woens|donder|vrij|zater|zon)dag),?$`)
	// networks matches names of networks and contacts after a name.
	networks = regexp.MustCompile(`(?i)(?:[ ,|·•/–-]+(?:twitter|facebook|instagram|linkedin|mastodon|` +
		`bluesky|threads|youtube|tiktok|e-?mail|rss|website|webseite|bio|biography|profile?|` +
		`contact|kontakt|view all posts|more from this author))+$`)
	// inBrackets matches a place, a sign or an office in brackets after a name.
	inBrackets = regexp.MustCompile(` *[(\[][^()\[\]]*[)\]]?$`)
	// between matches the signs between names, and between a name and an office.
	between = regexp.MustCompile(` *[,;|·•] *| +[/–-] +`)
)

// offices are the words of job titles and of employers.
var offices = wordset.Of("editor editors reporter correspondent writer journalist contributor " +
	"columnist analyst producer photographer staff fellow intern director professor news press " +
	"politics business sport sports magazine times university institute team desk chief senior " +
	"redakteur redakteurin korrespondent korrespondentin reporterin journalistin volontär " +
	"volontärin leiter leiterin ressort redaktion journaliste correspondant correspondante " +
	"rédacteur rédactrice grand periodista redactor redactora corresponsal giornalista redattore " +
	"corrispondente verslaggever redacteur jornalista repórter redaktor dziennikarz toimittaja " +
	"skribent kommentator профессор корреспондент редактор журналист")

// isOffice says whether a text has a word of an office.
func isOffice(text string) bool {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), isSign) {
		if offices[word] {
			return true
		}
	}
	return false
}

// bylined returns an author without the text before and after the name. It is "" for an address, an
// account, and a line without a name.
func bylined(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.Contains(text, "://") || strings.Contains(text, "@") ||
		strings.Contains(text, "[at]") || nobodies[strings.ToLower(text)] {
		return ""
	}
	if m := joined.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	text = interviewed.ReplaceAllString(text, ", ")
	if text = undated(text); text == "" {
		return ""
	}
	for _, sign := range [...]*regexp.Regexp{by, pictured, dateBehind, dayBehind, agency,
		weekday, networks, andThen} {
		if bare := strings.TrimSpace(sign.ReplaceAllString(text, "")); bare != "" {
			text = bare
		}
	}
	if before := saidBehind.FindStringIndex(text); before != nil &&
		onlyName.MatchString(text[:before[0]]) {
		text = text[:before[0]]
	}
	if bare := inBrackets.ReplaceAllString(text, ""); onlyName.MatchString(bare) {
		text = bare
	}
	if noName.MatchString(text) || nobodies[strings.ToLower(text)] {
		return ""
	}
	return unofficed(text)
}

// undated removes the dates before the author.
func undated(text string) string {
	for range maxDays {
		said := sayAhead.ReplaceAllString(text, "")
		ahead := dayAhead.FindString(said)
		if ahead == "" || dayIn(ahead, false) == "" {
			break
		}
		text = said[len(ahead):]
	}
	return text
}

// maxDays bounds the dates before an author: of publication and of changes.
const maxDays = 3

// joined matches a word stuck to a name because an element ends between them.
var joined = regexp.MustCompile(`^(?:By|BY|Von|VON|Par|Por|Door|Text)(\p{Lu}\p{Ll}.*)$`)

// unofficed removes the office or place after a name or several names. A text that does not begin
// with a name stays as it is.
func unofficed(text string) string {
	signs := between.FindAllStringIndex(text, -1)
	if len(signs) == 0 {
		return text
	}
	if first := text[:signs[0][0]]; !onlyName.MatchString(first) || isOffice(first) {
		return text
	}
	for i, at := range signs {
		end := len(text)
		if i+1 < len(signs) {
			end = signs[i+1][0]
		}
		if part := text[at[1]:end]; !onlyName.MatchString(part) || isOffice(part) {
			return text[:at[0]]
		}
	}
	return text
}

// signature matches a text's last line if it only says who wrote it.
var signature = regexp.MustCompile(`^(?:\(|[—–] ?)(` + fullNames + `)(?:\s*/\s*\pL+)?\)?$`)

// signed returns the signature below the article's text, or "".
func (r *reader) signed() string {
	text := r.article().Text
	if m := signature.FindStringSubmatch(text[strings.LastIndexByte(text, '\n')+1:]); m != nil {
		return m[1]
	}
	return ""
}

// byOne matches a line with a single-word name beside a date.
var byOne = regexp.MustCompile(`^(?i:(?:posted |written )?by|(?:geschrieben )?von|par|por|di|door|` +
	`a[vf])\s+(` + namePart + `)(?:,?\s+(?:(?:am|on|le|il|el|op|den|d\.)\s+)?(.*))?$`)

// bylineOf returns the name or names in a line that says who wrote something.
func bylineOf(text string) string {
	if m := behindDay.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	bare := undated(text)
	for _, line := range [...]string{text, bare, agency.ReplaceAllString(bare, "")} {
		if m := byName.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	m := byOne.FindStringSubmatch(bare)
	if m != nil && (m[2] == "" && bare != text || m[2] != "" && undated(m[2]) == "") {
		return m[1]
	}
	return ""
}

// namedIn returns what an element says about an author. If one of its first texts is a name, and
// the rest is not or is stuck to it, it returns only that name.
func namedIn(n *html.Node) string {
	all := shownText(n, maxByline)
	whole := onlyName.MatchString(bylined(all)) && !isOffice(all)
	looked, texts := 0, 0
	for c := range n.Descendants() {
		if looked++; looked > maxBoxed || texts == maxHeads && !isOffice(all) {
			break
		}
		if c.Type != html.TextNode || unread[c.Parent.DataAtom] || strings.TrimSpace(c.Data) == "" {
			continue
		}
		texts++
		name := bylined(beginning(c.Data, maxByline))
		if !onlyName.MatchString(name) || isOffice(name) || endsLow(name) {
			continue
		}
		if !whole || isGlued(all, name) {
			return name
		}
		break
	}
	return all
}

// maxHeads is how many texts of an element may be the name: the first may be a label.
const maxHeads = 2

// endsLow says whether a text's last word begins with a lower-case letter, which no name's does.
func endsLow(text string) bool {
	last, _ := utf8.DecodeRuneInString(text[strings.LastIndexByte(text, ' ')+1:])
	return unicode.IsLower(last)
}

// isGlued says whether a letter follows a name in a text, because another element begins there.
func isGlued(text, name string) bool {
	_, rest, found := strings.Cut(text, name)
	next, _ := utf8.DecodeRuneInString(rest)
	return found && unicode.IsLetter(next)
}
