package dom

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/net/html"
)

// MaxText is the length of a text, in bytes, that is certainly read to its end.
const MaxText = 1 << 20

// Attr is the value of an attribute, as written in the page with its character references decoded.
// The name is lower case.
func (d *Document) Attr(e Elem, name string) (string, bool) {
	d.steps -= int(d.elems[e].attrsEnd-d.elems[e].attrs) / attrsPerStep
	for i := d.elems[e].attrs; i < d.elems[e].attrsEnd; i++ {
		if d.attrs[i].name == name {
			return d.value(i), true
		}
	}
	return "", false
}

// value is the decoded value of an attribute.
func (d *Document) value(i int32) string {
	v := d.attrs[i].value
	if d.decoded || strings.IndexByte(v, '&') < 0 && strings.IndexByte(v, '\r') < 0 {
		return v
	}
	d.payDecoding(v)
	return string(appendDecoded(nil, v, true))
}

// What a step is worth, so that long values cost what they take. Bytes are looked at one by one, or
// searched for something, which is faster. A character reference takes some steps.
const (
	bytesPerStep  = 16
	bytesSearched = 64
	attrsPerStep  = 16
	perReference  = 4
)

// payDecoding takes the steps that the decoding of a value or text costs.
func (d *Document) payDecoding(s string) {
	d.steps -= len(s)/bytesPerStep + perReference*strings.Count(s, "&")
}

// AppendAttr appends the value of an attribute.
func (d *Document) AppendAttr(dst []byte, e Elem, name string) ([]byte, bool) {
	v, ok := d.Attr(e, name)
	return append(dst, v...), ok
}

// BaseHref is the href of the document's first base element that has one.
func (d *Document) BaseHref() (string, bool) {
	for e := range d.elems {
		if d.elems[e].tag == tBase {
			if href, ok := d.Attr(Elem(e), "href"); ok {
				return href, true
			}
		}
	}
	return "", false
}

// AppendText appends an element's text, with white space collapsed to single spaces and trimmed. It
// leaves out what is in script, style, template and other elements that a browser never shows as
// text. Asked for such an element itself, its contents are the text. What follows more than MaxText
// bytes is left out.
func (d *Document) AppendText(dst []byte, e Elem) []byte {
	c := collapser{dst: dst, start: len(dst)}
	el := &d.elems[e]
	for i := range d.texts[el.text:el.textEnd] {
		if c.full() || !d.goesOn() {
			break
		}
		t := &d.texts[int(el.text)+i]
		d.steps--
		if t.hider > e {
			continue
		}
		d.steps -= len(t.s) / bytesPerStep
		if d.decoded || t.raw || strings.IndexByte(t.s, '&') < 0 {
			c.add(t.s)
			continue
		}
		d.payDecoding(t.s)
		d.scratch = appendDecoded(slices.Grow(d.scratch[:0], len(t.s)), t.s, false)
		c.add(unsafe.String(unsafe.SliceData(d.scratch), len(d.scratch))) // add keeps nothing of it
	}
	return c.dst
}

// appendRaw appends the decoded texts of an element as they are; own leaves out those of its
// descendants.
func (d *Document) appendRaw(dst []byte, e Elem, own bool) []byte {
	el := &d.elems[e]
	if !own {
		return d.appendTexts(dst, el.text, el.textEnd)
	}
	for i := el.text; i < el.textEnd; i++ {
		if d.texts[i].parent == e {
			dst = d.appendTexts(dst, i, i+1)
		}
	}
	return dst
}

// appendTexts appends the texts from one to another, decoded.
func (d *Document) appendTexts(dst []byte, from, to int32) []byte {
	size := 0
	for i := range d.texts[from:to] {
		size += len(d.texts[int(from)+i].s)
	}
	dst = slices.Grow(dst, size)
	for i := range d.texts[from:to] {
		switch t := &d.texts[int(from)+i]; {
		case d.decoded:
			dst = append(dst, t.s...)
		case t.raw:
			dst = appendNewlines(dst, t.s)
		default:
			dst = appendDecoded(dst, t.s, false)
		}
	}
	return dst
}

// collapser appends text with each run of white space as one space, none at its start or end.
type collapser struct {
	dst   []byte
	start int
	gap   bool // white space since the last character
}

// full says that what follows is left out.
func (c *collapser) full() bool { return len(c.dst)-c.start > MaxText }

// add adds a text, a large one in parts.
func (c *collapser) add(s string) {
	if s != "" && !utf8.RuneStart(s[0]) && !c.gap {
		s = c.join(s)
	}
	for len(s) > MaxText && !c.full() {
		part := MaxText
		for part > MaxText-utf8.UTFMax && !utf8.RuneStart(s[part]) {
			part--
		}
		c.addPart(s[:part])
		s = s[part:]
	}
	if !c.full() {
		c.addPart(s)
	}
}

// join takes back the first bytes of a white space character whose others begin s, as on pages that
// are not UTF-8. Of both it leaves what is no white space.
func (c *collapser) join(s string) (rest string) {
	from := len(c.dst)
	for from > c.start && len(c.dst)-from < utf8.UTFMax &&
		(from == len(c.dst) || !utf8.RuneStart(c.dst[from])) {
		from--
	}
	begun := len(c.dst) - from
	var whole [2 * utf8.UTFMax]byte
	n := copy(whole[copy(whole[:], c.dst[from:]):], s) + begun
	r, size := utf8.DecodeRune(whole[:n])
	if size <= begun || !unicode.IsSpace(r) {
		return s
	}
	if from > c.start && c.dst[from-1] == ' ' {
		from--
	}
	c.dst, c.gap = c.dst[:from], from > c.start
	return s[size-begun:]
}

func (c *collapser) addPart(s string) {
	for i := 0; i < len(s); {
		size := 0
		if s[i] <= ' ' || s[i] >= utf8.RuneSelf {
			size = spaceAt(s[i:])
		}
		if size > 0 {
			c.gap = len(c.dst) > c.start
			i += size
			continue
		}
		if c.gap {
			c.dst = append(c.dst, ' ')
			c.gap = false
		}
		word := i
		for i < len(s) && isPlain(s[i]) {
			// Words with single spaces between them go together.
			if i++; i+1 < len(s) && s[i] == ' ' && isPlain(s[i+1]) {
				i++
			}
		}
		if i == word {
			_, size = utf8.DecodeRuneInString(s[i:])
			i += size
		}
		c.dst = append(c.dst, s[word:i]...)
	}
}

// isPlain says whether a byte is a character other than white space.
func isPlain(b byte) bool { return ' ' < b && b < utf8.RuneSelf }

// spaceAt is the length of the white space character that s begins with, 0 if it begins with
// another.
func spaceAt(s string) int {
	switch b := s[0]; {
	case b == ' ' || '\t' <= b && b <= '\r':
		return 1
	case b < utf8.RuneSelf:
		return 0
	}
	if r, size := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return size
	}
	return 0
}

// appendNewlines appends s with CR and CR LF as LF.
func appendNewlines(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '\r')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:i]...), '\n')
		if s = s[i+1:]; strings.HasPrefix(s, "\n") {
			s = s[1:]
		}
	}
}

// appendDecoded appends s with its newlines made LF and its character references decoded, by the
// rules of attributes or those of text.
func appendDecoded(dst []byte, s string, attribute bool) []byte {
	if strings.IndexByte(s, '\r') >= 0 {
		s = string(appendNewlines(nil, s))
	}
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		n := referenceSize(s)
		if keepsReference(s, n, attribute) {
			dst = append(dst, s[:n]...)
		} else {
			dst = appendReference(dst, s[:n])
		}
		s = s[n:]
	}
}

// referenceSize is the length of what may be a character reference, with which s begins.
func referenceSize(s string) int {
	n := 1
	if n < len(s) && s[n] == '#' {
		n++
	}
	for n < len(s) && isAlphanumeric(s[n]) {
		n++
	}
	if n < len(s) && s[n] == ';' {
		n++
	}
	return n
}

func isAlphanumeric(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func appendReference(dst []byte, ref string) []byte {
	switch ref {
	case "&amp;":
		return append(dst, '&')
	case "&lt;":
		return append(dst, '<')
	case "&gt;":
		return append(dst, '>')
	case "&quot;", "&#34;":
		return append(dst, '"')
	case "&#39;", "&apos;":
		return append(dst, '\'')
	case "&nbsp;":
		return append(dst, "\u00a0"...)
	}
	return append(dst, html.UnescapeString(ref)...)
}

// keepsReference says whether s[:n], a named reference in an attribute, stands for itself. Only
// whole names count there, and those without a semicolon only where no "=" follows.
func keepsReference(s string, n int, attribute bool) bool {
	ref := s[:n]
	if !attribute || n < 2 || ref[1] == '#' {
		return false
	}
	if ref[n-1] == ';' {
		// Where only the beginning of the name is known, the rest and the semicolon remain.
		decoded := html.UnescapeString(ref)
		return len(decoded) > 1 && decoded[len(decoded)-1] == ';'
	}
	if n < len(s) && s[n] == '=' {
		return true
	}
	return html.UnescapeString(ref) != html.UnescapeString(ref+";")
}
