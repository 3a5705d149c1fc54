package dom

import (
	"slices"
	"strings"
)

// builder reads a page and builds the document in one pass, by the rules of HTML's tokenizer and
// tree construction. What it does not do makes the page odd (see Oddity), and it gives up. It must
// give the very document that x/net/html gives, or none.
type builder struct {
	d      *Document
	s      string // the page
	pos    int
	odd    Oddity
	apart  bool   // a comment has come since the last text
	missed int    // how many of the selectors wanted have no match yet
	filled bool   // the body has text
	heads  tagSet // of matches of the selectors that have none yet
	sought []int  // the selectors that have none yet, by their places among those wanted
	reads  tagSet // of elements whose attributes count
	// where the needles of each selector wanted come next, as far as known; then references; then
	// html, body
	next  []int
	ahead int  // up to here no more is to be found out about what is not on the page
	wait  int  // how many bytes it may at least be until that is tried again
	drops bool // elements that have closed are not needed if they are no match and hold none
	kept  Elem // those before this one are needed
	// how many first matches are open: only there, texts count; at least 1 where all of the page
	// counts
	within   int
	phase    phase
	quirks   quirks
	declared string // the doctype behind its first word, if that is to be looked into
	head     Elem
	form     Elem // the form that is being filled, None if there is none
	tok      tagToken
	looked   int // at open elements, for end tags that are rare
	stack    []open
	active   []activeElement
	// whether the token at hand is none of the table around it, which puts what it adds before the
	// table
	fostering bool
	asides    []aside
	opened    [tags]int32 // how many elements of each tag the stack holds
}

// tagToken is the start or end tag at hand.
type tagToken struct {
	tag         tag
	named       string // its name, lower case, if that is no tag's
	attrs       int32  // attributes are those of the document from here on
	class, id   int32
	selfClosing bool
	used        bool // an element has these attributes now
}

func (t *tagToken) name() string {
	if t.tag != other {
		return tagInfo[t.tag].name
	}
	return t.named
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
	modeCell
	modeCaption
	modeTable // from here on text does not belong
	modeTableBody
	modeRow
	modeColgroup
)

// modes are those of the parts of tables; what is no part of one has that of the element around it.
var modes = [tags]mode{tTable: modeTable, tTbody: modeTableBody, tThead: modeTableBody,
	tTfoot: modeTableBody, tTr: modeRow,
	tTd: modeCell, tTh: modeCell, tCaption: modeCaption, tColgroup: modeColgroup}

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
	attrs   int32 // how many attributes there were before it
	tag     tag
	mode    mode
	foreign bool // in SVG
	texted  bool // text has come, if only the newline that does not count
	// placed before the table around it, which is set aside until this element ends
	fostered bool
	apart    bool // of a table: a comment has come between the text before it and itself
	gone     bool // removed from the stack, but still around what is open: no rule sees it any more
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

// run builds d from the page, unless that is odd.
func (b *builder) run(d *Document, page string) Oddity {
	*b = builder{d: d, s: page, head: None, form: None, missed: len(d.wanted), stack: b.stack[:0],
		active: b.active[:0], asides: b.asides[:0],
		next: append(b.next[:0], make([]int, len(d.wanted)+2)...), sought: b.sought[:0]}
	b.drops = len(d.wanted) > 0 &&
		!slices.ContainsFunc(d.wanted, func(s *Selector) bool { return s.siblings })
	b.attend()
	if len(page) > largePage {
		// Once, instead of growing step by step through many times as much.
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

// closeTop closes the current element if its end tag is at pos, written as most pages write it, and
// does nothing else.
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

// markup reads what begins with the "<" at pos.
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
		b.apart = true
		b.skipPast(b.pos+2, ">")
	default:
		text := b.s[b.pos : b.pos+1+b.untilMarkup(b.pos+1)]
		b.pos += len(text)
		b.addText(text)
	}
}

// untilMarkup is how far it is from a place in text to the next "<" that is none, or to one that
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
		b.giveUp(oddForeign)
	default:
		b.apart = true
		b.skipPast(b.pos+2, ">")
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
