package dom

import (
	"slices"
	"strings"
)

// builder reads a page and builds the document in one pass, by the rules of HTML's tokenizer and tree construction.
// Where these rules would move elements that are in place already (the adoption agency with a block in between, foster
// parenting, a late frameset, attributes of a second html or body), and for a few rare things (NUL bytes, MathML, HTML
// in SVG, PLAINTEXT, markup that the end of the page cuts off, more than 500 nested elements), it calls the page odd and
// gives up. It must give the very document that x/net/html gives, or none.
type builder struct {
	d      *Document
	s      string // the page
	pos    int
	odd    bool
	apart  bool   // a comment has come since the last text
	missed int    // how many of the selectors wanted have no match yet
	filled bool   // the body has text
	heads  tagSet // of matches of the selectors that have none yet
	reads  tagSet // of elements whose attributes count
	next   []int  // where the needles of each selector wanted come next, as far as known; then references; then html, body
	ahead  int    // up to here no more is to be found out about what is not on the page
	within int    // how many first matches are open: only there, texts count; at least 1 where all of the page counts
	phase  phase
	quirks quirks
	head   Elem
	form   Elem // the form that is being filled, None if there is none
	tok    tagToken
	stack  []open
	active []activeElement
	opened [tags]int32 // how many elements of each tag the stack holds
}

// tagToken is the start or end tag at hand.
type tagToken struct {
	tag         tag
	name        string
	attrs       int32 // attributes are those of the document from here on
	class, id   int32
	selfClosing bool
	used        bool // an element has these attributes now
}

// phase is how far the page has got.
type phase uint8

const (
	initial phase = iota
	beforeHTML
	beforeHead
	inHead
	afterHead
	inBody
)

// mode is what the nearest part of a table around an element makes of its contents.
type mode uint8

const (
	modeBody mode = iota
	modeTable
	modeTableBody
	modeRow
	modeCell
	modeCaption
	modeColgroup
)

type quirks uint8

const (
	quirksOff quirks = iota
	quirksOn
	quirksUnknown // a doctype that would have to be looked into
)

// open is an element of the stack of open elements.
type open struct {
	elem    Elem
	last    Elem  // its last child so far
	kids    int32 // how many children so far
	tag     tag
	mode    mode
	foreign bool // in SVG
	texted  bool // text has come, if only the newline that does not count
	gone    bool // removed from the stack, but still around what is open: no rule sees it any more
}

// activeElement is an entry of the list of active formatting elements, or a marker.
type activeElement struct {
	elem   Elem
	tag    tag
	open   bool // on the stack
	marker bool
}

const (
	maxDepth = 500 // x/net/html stops at 512
	maxAttrs = 100 // of one element, since duplicates are looked for one by one
	// largePage, in bytes, is one whose elements are counted first.
	largePage = 1 << 20
)

// run builds d from the page; false if the page is odd.
func (b *builder) run(d *Document, page string) bool {
	*b = builder{d: d, s: page, head: None, form: None, missed: len(d.wanted), stack: b.stack[:0],
		active: b.active[:0], next: append(b.next[:0], make([]int, len(d.wanted)+2)...)}
	b.attend()
	if strings.IndexByte(page, 0) >= 0 {
		return false
	}
	if len(page) > largePage {
		// Once, instead of growing step by step through many times as much.
		n := min(strings.Count(page, "<"), maxParts)
		d.elems, d.texts, d.attrs = slices.Grow(d.elems, n), slices.Grow(d.texts, n), slices.Grow(d.attrs, n)
	}
	for b.pos < len(b.s) && !b.odd {
		if b.s[b.pos] != '<' {
			i := strings.IndexByte(b.s[b.pos:], '<')
			if i < 0 {
				i = len(b.s) - b.pos
			}
			b.pos += i
			b.addText(b.s[b.pos-i : b.pos])
			continue
		}
		b.markup()
		b.odd = b.odd || d.hasTooMany()
		if b.pos >= b.ahead && b.isEnough() && b.isAbsent() {
			break
		}
	}
	if !b.odd {
		b.enterBody()
		for len(b.stack) > 0 {
			b.pop()
		}
	}
	ok := !b.odd
	*b = builder{stack: b.stack, active: b.active, next: b.next}
	return ok
}

// markup reads what begins with the "<" at pos.
func (b *builder) markup() {
	if b.pos+1 >= len(b.s) {
		b.odd = true
		return
	}
	switch c := b.s[b.pos+1]; {
	case isLetter(c):
		if b.readTag(b.pos+1, true) {
			b.startTag()
		}
	case c == '/':
		b.endMarkup()
	case c == '!':
		b.declaration()
	case c == '?':
		b.apart = true
		b.skipPast(b.pos+2, ">")
	default:
		text := b.s[b.pos : b.pos+1+b.untilMarkup(b.pos+1)]
		b.pos += len(text)
		b.addText(text)
	}
}

// untilMarkup is how far it is from a place in text to the next "<" that is none, or to one that ends the page.
func (b *builder) untilMarkup(from int) int {
	for at := from; ; at++ {
		next := strings.IndexByte(b.s[at:], '<')
		if next < 0 {
			return len(b.s) - from
		}
		at += next
		if at+1 == len(b.s) || isLetter(b.s[at+1]) || strings.IndexByte("/!?", b.s[at+1]) >= 0 {
			return at - from
		}
	}
}

func (b *builder) endMarkup() {
	if b.pos+2 >= len(b.s) {
		b.odd = true
		return
	}
	if !isLetter(b.s[b.pos+2]) {
		b.apart = b.apart || b.s[b.pos+2] != '>' // a comment
		b.skipPast(b.pos+2, ">")
		return
	}
	if b.readTag(b.pos+2, false) {
		b.endTag()
	}
}

// declaration skips a comment, a doctype or a bogus comment.
func (b *builder) declaration() {
	rest := b.s[b.pos+2:]
	switch {
	case strings.HasPrefix(rest, "--"):
		b.apart = true
		b.skipComment()
	case len(rest) >= 7 && strings.EqualFold(rest[:7], "doctype"):
		b.doctype()
	case strings.HasPrefix(rest, "[CDATA[") && len(b.stack) > 0 && b.top().foreign:
		b.odd = true
	default:
		b.apart = true
		b.skipPast(b.pos+2, ">")
	}
}

func (b *builder) skipPast(from int, end string) {
	i := strings.Index(b.s[from:], end)
	if i < 0 {
		b.odd = true
		return
	}
	b.pos = from + i + len(end)
}

// skipComment skips to the end of a comment: "-->", "--!>", or ">" after nothing but dashes.
func (b *builder) skipComment() {
	start := b.pos + len("<!--")
	for end := start; ; end++ {
		i := strings.IndexByte(b.s[end:], '>')
		if i < 0 {
			b.odd = true
			return
		}
		end += i
		data := b.s[start:end]
		if strings.HasSuffix(data, "--") || strings.HasSuffix(data, "--!") || data == "" || data == "-" {
			b.pos = end + 1
			return
		}
	}
}

func (b *builder) doctype() {
	start := b.pos + len("<!doctype")
	b.skipPast(start, ">")
	if b.odd || b.phase != initial {
		return
	}
	b.phase = beforeHTML
	if strings.Trim(b.s[start:b.pos-1], whitespace) != "html" {
		b.quirks = quirksUnknown
	}
}

const whitespace = " \t\r\n\f"

// Classes of bytes in tags.
const (
	space   = 1 << iota // white space
	nameEnd             // ends a tag name
	keyEnd              // ends an attribute name
	upper               // A-Z
)

var classes = func() (c [256]uint8) {
	for _, b := range whitespace {
		c[b] = space | nameEnd | keyEnd
	}
	c['/'], c['>'], c['='] = nameEnd|keyEnd, nameEnd|keyEnd, keyEnd
	for b := 'A'; b <= 'Z'; b++ {
		c[b] = upper
	}
	return c
}()

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// readTag reads the tag whose name begins at i into tok and moves behind it. The attributes of a start tag are appended
// to the document if they count. A tag that the page's end cuts off makes the page odd.
func (b *builder) readTag(i int, start bool) bool {
	s, from := b.s, i
	var seen uint8
	for ; i < len(s); i++ {
		c := classes[s[i]]
		if c&nameEnd != 0 {
			break
		}
		seen |= c
	}
	var key uint64
	if from+8 <= len(s) && i-from < 8 {
		key = eightBytes(s[from:from+8]) & (1<<(8*(i-from)) - 1)
	} else {
		key = nameKey(s[from:i])
	}
	t := &b.tok
	t.name, t.attrs, t.class, t.id = s[from:i], int32(len(b.d.attrs)), -1, -1
	t.selfClosing, t.used = false, false
	if seen&upper != 0 {
		t.name = lowerASCII(t.name)
		key = nameKey(t.name)
	}
	if t.tag = tagsByName.find(key, t.name); t.tag != other {
		t.name = tagInfo[t.tag].name
	}
	if i < len(s) && s[i] == '>' {
		b.pos = i + 1
		return true
	}
	return b.readAttrs(i, start && (b.reads.has(t.tag) || t.tag.is(attributed) || len(b.stack) > 0 && b.top().foreign))
}

// readAttrs reads what is behind a tag's name.
func (b *builder) readAttrs(i int, keep bool) bool {
	s := b.s
	valueEnd := 0 // of the last attribute kept
	for {
		for i < len(s) && classes[s[i]]&space != 0 {
			i++
		}
		if i >= len(s) {
			b.odd = true
			return false
		}
		if s[i] == '>' {
			break
		}
		name, value, next, end := readAttr(s, i)
		i = next
		if keep && name != "" && b.keepAttr(name, value) {
			valueEnd = end
		}
	}
	b.tok.selfClosing = s[i-1] == '/' && (int32(len(b.d.attrs)) == b.tok.attrs || valueEnd != i)
	b.pos = i + 1
	return !b.odd
}

// readAttr reads an attribute that begins at i, which is neither white space nor ">". next is where to read on, end
// the end of the value.
func readAttr(s string, i int) (name, value string, next, end int) {
	start := i
	if s[i] == '=' {
		i++
	}
	for i < len(s) && classes[s[i]]&keyEnd == 0 {
		i++
	}
	name, end = s[start:i], i
	for i < len(s) && classes[s[i]]&space != 0 {
		i++
	}
	if i >= len(s) || s[i] != '=' {
		if i < len(s) && s[i] == '/' {
			i++
		}
		return name, "", i, end
	}
	i++
	for i < len(s) && classes[s[i]]&space != 0 {
		i++
	}
	if i >= len(s) || s[i] == '>' {
		return name, "", i, end
	}
	start = i
	if q := s[i]; q == '"' || q == '\'' {
		n := strings.IndexByte(s[i+1:], q)
		if n < 0 {
			return name, "", len(s), len(s)
		}
		return name, s[i+1 : i+1+n], i + n + 2, i + 1 + n
	}
	for i < len(s) && classes[s[i]]&space == 0 && s[i] != '>' {
		i++
	}
	return name, s[start:i], i, i
}

// keepAttr adds an attribute to the tag at hand, unless it has one of that name.
func (b *builder) keepAttr(name, value string) bool {
	for i := range len(name) {
		if classes[name[i]]&upper != 0 {
			name = lowerASCII(name)
			break
		}
	}
	have := b.d.attrs[b.tok.attrs:]
	for i := range have {
		if have[i].name == name {
			return false
		}
	}
	switch name {
	case "class":
		b.tok.class = int32(len(b.d.attrs))
	case "id":
		b.tok.id = int32(len(b.d.attrs))
	}
	b.d.attrs = append(b.d.attrs, attr{name, value})
	b.odd = b.odd || len(have) >= maxAttrs
	return true
}
