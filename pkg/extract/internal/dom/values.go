package dom

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/net/html"
)

// MaxText is the length up to which a text is certainly read, in bytes.
const MaxText = 1 << 20

// Attr returns the value of an attribute with its character references decoded. name is in lower
// case.
func (d *Document) Attr(e Elem, name string) (string, bool) {
	d.steps -= int(d.elems[e].attrsEnd-d.elems[e].attrs) / attrsPerStep
	for i := d.elems[e].attrs; i < d.elems[e].attrsEnd; i++ {
		if d.attrs[i].name == name {
			return d.value(i), true
		}
	}
	return "", false
}

// value returns the decoded value of an attribute.
func (d *Document) value(i int32) string {
	v := d.attrs[i].value
	if d.decoded || strings.IndexByte(v, '&') < 0 && strings.IndexByte(v, '\r') < 0 {
		return v
	}
	d.payDecoding(v)
	return string(appendDecoded(nil, v, true))
}

// The amount of work per step, so that long values cost in proportion. Bytes are examined one by
// one, or searched, which is faster. A character reference takes several steps.
const (
	bytesPerStep  = 16
	bytesSearched = 64
	attrsPerStep  = 16
	perReference  = 4
)

// payDecoding charges the steps for decoding a value or text.
func (d *Document) payDecoding(s string) {
	d.steps -= len(s)/bytesPerStep + perReference*strings.Count(s, "&")
}

// AppendAttr appends the value of an attribute.
func (d *Document) AppendAttr(dst []byte, e Elem, name string) ([]byte, bool) {
	v, ok := d.Attr(e, name)
	return append(dst, v...), ok
}

// ShowsFile reports whether an element shows a picture, a video or a page that it names.
func (d *Document) ShowsFile(e Elem) bool {
	switch d.elems[e].name() {
	case "img", "source", "video", "iframe":
		return true
	}
	return false
}

// BaseHref returns the href of the document's first base element that has one.
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
// leaves out the contents of script, style, template and other elements that a browser never shows
// as text. If e itself is such an element, its contents are the text. Once the text exceeds MaxText
// bytes, the rest is left out.
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
		c.add(unsafe.String(unsafe.SliceData(d.scratch), len(d.scratch))) // add does not retain it
	}
	return c.dst
}

// appendRaw appends an element's decoded texts unchanged; own leaves out those of its descendants.
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

// appendTexts appends the texts d.texts[from:to], decoded.
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

// collapser appends text with each run of white space as one space, and none at its start or end.
type collapser struct {
	dst   []byte
	start int
	gap   bool // white space since the last character
}

// full says that the rest is left out.
func (c *collapser) full() bool { return len(c.dst)-c.start > MaxText }

// add adds a text, splitting large ones.
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

// join removes the first bytes of a white space character whose remaining bytes begin s, as on
// pages that are not UTF-8. It keeps all other bytes of both.
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
			// Take words separated by single spaces together.
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

// isPlain says whether a byte is an ASCII character other than white space.
func isPlain(b byte) bool { return ' ' < b && b < utf8.RuneSelf }

// spaceAt returns the length of the white space character at the start of s, or 0.
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

// appendDecoded appends s with newlines normalized to LF and character references decoded, by the
// rules for attributes or for text.
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

// referenceSize returns the length of the possible character reference at the start of s.
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

// keepsReference says whether s[:n], a named reference in an attribute, stays as it is. Only
// complete names count there; those without a semicolon count only if no "=" follows.
func keepsReference(s string, n int, attribute bool) bool {
	ref := s[:n]
	if !attribute || n < 2 || ref[1] == '#' {
		return false
	}
	if ref[n-1] == ';' {
		// If only the beginning of the name is known, the rest and the semicolon remain.
		decoded := html.UnescapeString(ref)
		return len(decoded) > 1 && decoded[len(decoded)-1] == ';'
	}
	if n < len(s) && s[n] == '=' {
		return true
	}
	return html.UnescapeString(ref) != html.UnescapeString(ref+";")
}
