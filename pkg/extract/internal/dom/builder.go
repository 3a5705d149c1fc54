package dom

import (
	"slices"
	"strings"
)

// builder reads a page and builds the document in one pass, by the rules of HTML's tokenizer and
// tree construction. A construct that it does not support makes the page odd (see Oddity), and it
// gives up. It must produce exactly the document that x/net/html gives, or none.
type builder struct {
	d      *Document
	s      string // the page
	pos    int
	odd    Oddity
	apart  bool   // a comment has come since the last text
	missed int    // wanted selectors without a match yet
	filled bool   // the body has text
	heads  tagSet // tags of possible matches of the selectors in sought
	sought []int  // indexes in wanted of the selectors without a match yet
	reads  tagSet // tags of elements whose attributes matter
	// known next positions: of each wanted selector's needles, then of references, then of html and
	// body tags
	next  []int
	ahead int  // before this position, isAbsent need not run again
	wait  int  // minimum distance until it runs again, in bytes
	drops bool // closed elements may be dropped if they neither are nor contain a match
	kept  Elem // elements before this one are needed
	// number of open first matches: texts count only inside them; at least 1 if the whole page
	// counts
	within   int
	phase    phase
	quirks   quirks
	declared string // the doctype after its first word, if it must be examined
	head     Elem
	form     Elem // the current form, None if there is none
	tok      tagToken
	looked   int // looks at open elements and moves, bounded by maxLooked
	stack    []open
	active   []activeElement
	// the current token does not belong in the table around it, so what it adds goes before the
	// table
	fostering bool
	asides    []aside
	opened    [tags]int32 // number of elements of each tag on the stack
}

// tagToken is the current start or end tag.
type tagToken struct {
	tag         tag
	named       string // lower-case name, if it has no tag constant
	attrs       int32  // its attributes are the document's from this index on
	class, id   int32
	selfClosing bool
	used        bool // an element has taken these attributes
}

func (t *tagToken) name() string {
	if t.tag != other {
		return tagInfo[t.tag].name
	}
	return t.named
}

// phase is the stage of the page's construction.
type phase uint8

const (
	initial phase = iota
	beforeHTML
	beforeHead
	inHead
	afterHead
	inBody
)

// mode is how the nearest table part around an element treats its contents.
type mode uint8

const (
	modeBody mode = iota
	modeCell
	modeCaption
	modeTable // from here on, text does not belong
	modeTableBody
	modeRow
	modeColgroup
)

// modes are those of table parts; other elements inherit the mode of their parent.
var modes = [tags]mode{tTable: modeTable, tTbody: modeTableBody, tThead: modeTableBody,
	tTfoot: modeTableBody, tTr: modeRow,
	tTd: modeCell, tTh: modeCell, tCaption: modeCaption, tColgroup: modeColgroup}

type quirks uint8

const (
	quirksOff quirks = iota
	quirksOn
	quirksUnknown // a doctype that must be examined
)

// open is an entry of the stack of open elements.
type open struct {
	elem    Elem
	last    Elem  // its last child so far
	kids    int32 // number of children so far
	attrs   int32 // number of attributes before it
	tag     tag
	mode    mode
	foreign bool // in SVG
	texted  bool // it has had a comment or text, even if only the ignored first newline
	// placed before the table around it, which is set aside until this element ends
	fostered bool
	apart    bool // of a table: a comment comes between it and the text before it
	gone     bool // removed from the stack but still around open elements; rules ignore it
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
	maxAttrs = 100 // per element; duplicates are found by linear search
	// largePage is the size from which a page's elements are counted first, in bytes.
	largePage = 1 << 20
)

// run builds d from the page, unless the page is odd.
func (b *builder) run(d *Document, page string) Oddity {
	*b = builder{d: d, s: page, head: None, form: None, missed: len(d.wanted), stack: b.stack[:0],
		active: b.active[:0], asides: b.asides[:0],
		next: append(b.next[:0], make([]int, len(d.wanted)+2)...), sought: b.sought[:0]}
	b.drops = len(d.wanted) > 0 &&
		!slices.ContainsFunc(d.wanted, func(s *Selector) bool { return s.siblings })
	b.attend()
	if len(page) > largePage {
		// Allocate once, instead of growing step by step to many times the size.
		n := min(strings.Count(page, "<"), maxParts)
		d.elems, d.texts, d.attrs = slices.Grow(d.elems, n), slices.Grow(d.texts, n),
			slices.Grow(d.attrs, n)
	}
	for b.pos < len(b.s) && b.odd == notOdd {
		if b.s[b.pos] != '<' {
			b.text()
			continue
		}
		if !b.closeTop() {
			b.markup()
		}
		if b.pos >= b.ahead && b.isEnough() && b.isAbsent() {
			break
		}
	}
	if strings.IndexByte(page[:b.pos], 0) >= 0 {
		b.giveUp(oddBytes)
	}
	if b.odd == notOdd {
		b.enterBody()
		for len(b.stack) > 0 {
			b.pop()
		}
	}
	odd := b.odd
	clear(b.asides)
	*b = builder{stack: b.stack, active: b.active, next: b.next, sought: b.sought,
		asides: b.asides[:0]}
	return odd
}

// text reads the text at pos, up to the next "<".
func (b *builder) text() {
	from := b.pos
	if i := strings.IndexByte(b.s[from:], '<'); i >= 0 {
		b.pos += i
	} else {
		b.pos = len(b.s)
	}
	if b.within > 0 || !b.filled || b.top().mode >= modeTable || b.mayReconstruct() {
		b.addText(b.s[from:b.pos])
	}
}

// closeTop closes the current element if its end tag is at pos in the most common spelling.
// Otherwise it does nothing.
func (b *builder) closeTop() bool {
	at := b.pos + 2
	if at+8 > len(b.s) || b.s[at-1] != '/' || len(b.stack) == 0 {
		return false
	}
	o := b.top()
	end := &plainEnds[o.tag]
	if end.size == 0 || eightBytes(b.s[at:at+8])&end.mask != end.key {
		return false
	}
	if o.tag.is(formatting) {
		last := len(b.active) - 1
		if last < 0 || b.active[last].elem != o.elem {
			return false
		}
		b.active = b.active[:last]
	}
	b.pos = at + end.size
	b.popAndDrop()
	return true
}

// markup reads the construct that begins with the "<" at pos.
func (b *builder) markup() {
	if b.pos+1 >= len(b.s) {
		b.giveUp(oddEnd)
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
		b.noteComment()
		b.skipPast(b.pos+2, ">")
	default:
		text := b.s[b.pos : b.pos+1+b.untilMarkup(b.pos+1)]
		b.pos += len(text)
		b.addText(text)
	}
}

// untilMarkup returns the distance from a position in text to the next "<" that begins markup or
// ends the page.
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
		b.giveUp(oddEnd)
		return
	}
	if !isLetter(b.s[b.pos+2]) {
		if b.s[b.pos+2] != '>' {
			b.noteComment()
		}
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
		b.noteComment()
		b.skipComment()
	case len(rest) >= 7 && strings.EqualFold(rest[:7], "doctype"):
		b.doctype()
	case strings.HasPrefix(rest, "[CDATA[") && len(b.stack) > 0 && b.top().foreign:
		b.giveUp(oddForeign)
	default:
		b.noteComment()
		b.skipPast(b.pos+2, ">")
	}
}

// noteComment notes that a comment stands between the text before it and the text after it. Behind
// it, a line break in a <pre> counts.
func (b *builder) noteComment() {
	b.apart = true
	if len(b.stack) > 0 {
		b.top().texted = true
	}
}

func (b *builder) skipPast(from int, end string) {
	i := strings.Index(b.s[from:], end)
	if i < 0 {
		b.giveUp(oddEnd)
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
			b.giveUp(oddEnd)
			return
		}
		end += i
		data := b.s[start:end]
		if strings.HasSuffix(data, "--") || strings.HasSuffix(data, "--!") || data == "" ||
			data == "-" {
			b.pos = end + 1
			return
		}
	}
}

func (b *builder) doctype() {
	start := b.pos + len("<!doctype")
	b.skipPast(start, ">")
	if b.odd != notOdd || b.phase != initial {
		return
	}
	b.phase = beforeHTML
	if strings.Trim(b.s[start:b.pos-1], whitespace) != "html" {
		b.quirks, b.declared = quirksUnknown, b.s[start:b.pos]
	}
}
