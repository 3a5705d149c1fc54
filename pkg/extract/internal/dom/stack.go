package dom

import (
	"slices"
	"strings"
)

func (b *builder) top() *open { return &b.stack[len(b.stack)-1] }

// push adds an element to the current one and opens it.
func (b *builder) push(tag tag, named string, attrs, attrsEnd, class, id int32) Elem {
	d := b.d
	n := len(b.stack)
	fostered := b.fostering && n > 0 && b.stack[n-1].tag.holdsRows()
	if fostered {
		b.setAside()
	}
	e := Elem(len(d.elems))
	if len(d.elems) == cap(d.elems) {
		d.elems = slices.Grow(d.elems, 1)
	}
	if n == cap(b.stack) {
		b.stack = slices.Grow(b.stack, 1)
	}
	// Both are filled in place, member by member, which is much faster than a copy.
	d.elems, b.stack = d.elems[:e+1], b.stack[:n+1]
	el, o := &d.elems[e], &b.stack[n]
	el.parent, el.prev, el.index, o.mode = None, None, 1, modes[tag]
	if n > 0 {
		t := &b.stack[n-1]
		if fostered {
			el.parent, el.prev, el.index = b.foster(e)
		} else {
			t.kids++
			el.parent, el.prev, el.index = t.elem, t.last, t.kids
			t.last = e
		}
		if o.mode == modeBody {
			o.mode = t.mode
		}
	}
	el.tag, el.named, el.end, el.kids = tag, "", 0, 0
	if tag == other {
		el.named = named
	}
	el.attrs, el.attrsEnd, el.class, el.id = attrs, attrsEnd, class, id
	el.text, el.textEnd = int32(len(d.texts)), 0
	o.elem, o.last, o.kids, o.tag = e, None, 0, tag
	o.foreign, o.texted, o.gone = false, false, false
	o.fostered, o.apart = fostered, b.apart
	o.attrs = int32(len(d.attrs))
	if !b.tok.used {
		// the current ones belong to this element or to a later one
		o.attrs = min(o.attrs, b.tok.attrs)
	}
	b.opened[tag]++
	if n >= maxDepth || e >= maxParts {
		b.giveUp(oddLarge)
	}
	if b.heads.has(tag) {
		b.look(e)
	}
	return e
}

// look records which of the wanted selectors have their first match in e.
func (b *builder) look(e Elem) {
	d := b.d
	before := b.missed
	el := &d.elems[e]
	for _, i := range b.sought {
		if s := d.wanted[i]; !s.mayMatch(d, el) || !s.list.match(d, e) {
			continue
		}
		d.found[i] = e
		b.missed--
		b.within++
	}
	if b.missed < before {
		b.attend()
	}
}

// mayMatch says whether an element has a tag and the class of the selector's matches.
func (s *Selector) mayMatch(d *Document, el *element) bool {
	return s.tags.has(el.tag) && (s.class == "" || d.hasClass(el.class, s.class))
}

// attend determines what the selectors without a match examine. If no selectors are wanted, the
// whole page counts.
func (b *builder) attend() {
	d := b.d
	if len(d.wanted) == 0 {
		b.reads, b.within, b.ahead = allTags, 1, len(b.s)+1
		return
	}
	b.heads, b.reads, b.sought = tagSet{}, attributedTags, b.sought[:0]
	b.ahead, b.wait = b.pos, 0
	for i, s := range d.wanted {
		if d.found[i] == None {
			b.sought = append(b.sought, i)
			b.heads.addAll(s.tags)
			b.reads.addAll(s.reads)
			if len(s.needles) == 0 && s.start == "" {
				b.ahead = len(b.s) + 1
			}
		}
	}
}

// isAbsent says whether the selectors without a match have none in the rest of the page. They have
// none if no start tag there contains the text that any match requires. Nor may an html or body tag
// follow whose attributes a selector may examine: they are added to the first one. Otherwise
// isAbsent is false and need not run again before ahead.
func (b *builder) isAbsent() bool {
	d := b.d
	b.ahead = len(b.s)
	roots, refers := false, false
	for i, s := range d.wanted {
		switch {
		case d.found[i] != None:
		case s.start != "":
			b.ahead = min(b.ahead, b.findStart(i, s))
		default:
			b.ahead = min(b.ahead, b.find(i, s.needles...))
			refers = true
		}
		roots = roots || s.roots
	}
	if refers && b.ahead == len(b.s) {
		b.ahead = b.find(len(d.wanted), "&#") // it may stand for any character
	}
	if roots && b.ahead == len(b.s) {
		b.ahead = b.findRoot()
	}
	if b.ahead < len(b.s) {
		// Searching costs time, so the intervals grow.
		b.wait = 2*b.wait + 1
		b.ahead = max(b.ahead+1, b.pos+b.wait)
		return false
	}
	return true
}

// findRoot returns where the next html or body tag may be, or the page's end.
func (b *builder) findRoot() int {
	known := &b.next[len(b.d.wanted)+1]
	if *known >= b.pos {
		return *known
	}
	for *known = b.pos; *known < len(b.s); *known++ {
		i := strings.IndexByte(b.s[*known:], '<')
		if i < 0 || *known+i+5 > len(b.s) {
			*known = len(b.s)
			break
		}
		*known += i
		if c := b.s[*known+1] | 0x20; c != 'b' && c != 'h' {
			continue
		}
		if name := b.s[*known+1 : *known+5]; strings.EqualFold(name, "body") ||
			strings.EqualFold(name, "html") {
			break
		}
	}
	return *known
}

// find returns where one of the needles occurs next, or the page's end. It caches the result at
// next[known].
func (b *builder) find(known int, needles ...string) int {
	if at := b.next[known]; at >= b.pos {
		return at
	}
	at := len(b.s)
	for _, needle := range needles {
		if i := strings.Index(b.s[b.pos:at], needle); i >= 0 {
			at = b.pos + i
		}
	}
	b.next[known] = at
	return at
}

// findStart returns where the next tag begins with s.start, "<" and a name, in any case, or the
// page's end. It caches the result at next[known].
func (b *builder) findStart(known int, s *Selector) int {
	if at := b.next[known]; at >= b.pos {
		return at
	}
	lower := s.start[s.rare]
	at := b.findByLetter(s, lower, len(b.s))
	b.next[known] = b.findByLetter(s, lower-'a'+'A', at)
	return b.next[known]
}

// findByLetter returns where the next tag before end begins with s.start, or end. It looks for the
// rarest letter, written as given: a page has several times as many "<".
func (b *builder) findByLetter(s *Selector, letter byte, end int) int {
	for i := b.pos + s.rare; i < end; i++ {
		next := strings.IndexByte(b.s[i:end], letter)
		if next < 0 {
			break
		}
		i += next
		from := i - s.rare
		until := min(from+len(s.start), len(b.s))
		if b.s[from] == '<' && strings.EqualFold(b.s[from:until], s.start) {
			return from
		}
	}
	return end
}

// isEnough says whether the rest of the page can no longer change the first matches or their
// contents. All must have ended. Nothing open may still be moved or have something moved before it.
// That concerns tables, formatting elements, and a body without text, which a frameset may replace.
// It does not matter if a later part of the page nests too deep.
func (b *builder) isEnough() bool {
	d := b.d
	if len(b.active) > 0 || b.opened[tTable] > 0 || b.phase != inBody {
		return false
	}
	for _, e := range d.found {
		if e != None && d.elems[e].end == 0 {
			return false
		}
	}
	return b.filled
}

// add opens an element for the current tag.
func (b *builder) add() Elem {
	e := b.push(b.tok.tag, b.tok.named, b.tok.attrs, int32(len(b.d.attrs)), b.tok.class, b.tok.id)
	b.tok.used = true
	return e
}

// addVoid adds an element without contents.
func (b *builder) addVoid() {
	b.add()
	b.popAndDrop()
}

// popAndDrop closes the current element. If nothing will ask about it any more, it removes the
// element and its contents from the document. So a page takes no more memory than its open
// elements. No token may be in progress.
func (b *builder) popAndDrop() {
	o := *b.top()
	b.pop()
	if !b.drops || b.within > 0 || o.elem < b.kept || len(b.active) > 0 || o.fostered {
		return
	}
	d := b.d
	d.mostElems, d.mostAttrs = max(d.mostElems, len(d.elems)), max(d.mostAttrs, len(d.attrs))
	d.elems, d.attrs = d.elems[:o.elem], d.attrs[:o.attrs]
}

// imply opens an element that has no tag in the page.
func (b *builder) imply(t tag) Elem {
	return b.push(t, "", 0, 0, -1, -1)
}

// pop closes the current element.
func (b *builder) pop() {
	for {
		o := b.top()
		el := &b.d.elems[o.elem]
		el.end, el.textEnd, el.kids = Elem(len(b.d.elems)), int32(len(b.d.texts)), o.kids
		if b.within > 0 {
			b.endMatch(o.elem)
		}
		if !o.gone {
			b.forget(o)
		}
		fostered := o.fostered
		b.stack = b.stack[:len(b.stack)-1]
		if fostered {
			b.putBack()
		}
		if len(b.stack) == 0 || !b.top().gone {
			break
		}
	}
}

// endMatch ends the first matches at e.
func (b *builder) endMatch(e Elem) {
	for _, found := range b.d.found {
		if found == e {
			b.within--
			b.kept = Elem(len(b.d.elems))
		}
	}
}

// forget updates the counts and active elements when an element leaves the stack.
func (b *builder) forget(o *open) {
	if o.foreign {
		return
	}
	b.opened[o.tag]--
	if o.tag.is(formatting) {
		for i := range b.active {
			if b.active[i].elem == o.elem {
				b.active[i].open = false
			}
		}
	}
}

// popTo closes elements until the stack has length n.
func (b *builder) popTo(n int) {
	for len(b.stack) > n {
		b.pop()
	}
}

// remove takes the element at index i off the stack. It closes after the elements open in it.
func (b *builder) remove(i int) {
	if i == len(b.stack)-1 {
		b.pop()
		return
	}
	b.forget(&b.stack[i])
	b.stack[i].gone = true
}

// scope bounds a search of the stack.
type scope uint8

const (
	defaultScope scope = iota
	listItemScope
	buttonScope
	tableScope
)

// inScope returns the stack index of the innermost element with the tag, or -1 if none is in scope.
func (b *builder) inScope(s scope, t tag) int {
	if b.opened[t] == 0 {
		return -1
	}
	for i := len(b.stack) - 1; i >= 0; i-- {
		o := &b.stack[i]
		if o.gone {
			continue
		}
		if o.tag == t {
			return i
		}
		var stop bool
		switch s {
		case defaultScope:
			stop = o.tag.is(scopeStop)
		case listItemScope:
			stop = o.tag.is(scopeStop) || o.tag == tOl || o.tag == tUl
		case buttonScope:
			stop = o.tag.is(scopeStop) || o.tag == tButton
		case tableScope:
			stop = o.tag == tTable || o.tag == tHTML || o.tag == tTemplate
		}
		if stop {
			return -1
		}
	}
	return -1
}

// closeInScope closes everything up to the innermost element with the tag; false if none is in
// scope.
func (b *builder) closeInScope(s scope, t tag) bool {
	i := b.inScope(s, t)
	if i >= 0 {
		b.popTo(i)
	}
	return i >= 0
}

// closeImplied closes elements whose end tags may be omitted, except those with the tag except.
func (b *builder) closeImplied(except tag) {
	for b.top().tag.is(impliedEnd) && b.top().tag != except {
		b.pop()
	}
}

// addText adds a piece of text between tags.
func (b *builder) addText(s string) {
	if b.phase != inBody {
		if s = b.textBeforeBody(s); s == "" {
			return
		}
	}
	t := b.top()
	if !t.foreign {
		if t.mode >= modeTable {
			if s = b.addTableText(s); s == "" {
				return
			}
			t = b.top()
		}
		first := !t.texted && t.kids == 0
		t.texted = true
		if first && (t.tag == tPre || t.tag == tListing) {
			if s = b.trimNewline(s); s == "" {
				return
			}
		}
		b.reconstruct()
	}
	if !b.filled {
		rest := strings.TrimLeft(s, whitespace)
		b.filled = rest != "" && rest[0] != '&' // a reference may be white space
	}
	b.appendText(s, false)
}

func (b *builder) appendText(s string, raw bool) {
	if s == "" || b.within == 0 {
		return
	}
	t := text{s: s, parent: b.top().elem, hider: None, raw: raw, apart: b.apart}
	b.apart = false
	if b.top().tag.is(hidden) {
		t.hider = t.parent
	}
	b.d.texts = append(b.d.texts, t)
	if len(b.d.texts) > maxParts {
		b.giveUp(oddLarge)
	}
}

// textBeforeBody takes the white space that belongs before the body. It opens the body if other
// text follows.
func (b *builder) textBeforeBody(s string) string {
	rest := strings.TrimLeft(s, whitespace)
	if b.phase == inHead || b.phase == afterHead {
		b.appendText(s[:len(s)-len(rest)], false)
	}
	if rest == "" {
		return ""
	}
	if rest[0] == '&' && mayBeSpace(rest) {
		b.giveUp(oddRare)
	}
	b.enterBody()
	return rest
}

// mayBeSpace says whether a text that begins with a character reference begins with white space.
func mayBeSpace(s string) bool {
	decoded := appendDecoded(nil, s, false)
	return len(decoded) == 0 || classes[decoded[0]]&space != 0
}

// trimNewline removes a newline at the start, which may be a character reference, and a carriage
// return reference before it.
func (b *builder) trimNewline(s string) string {
	s = b.trimReference(s, '\r')
	if rest := b.trimReference(s, '\n'); len(rest) < len(s) {
		return rest
	}
	return strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
}

// trimReference removes a reference to the character to from the start.
func (b *builder) trimReference(s string, to byte) string {
	if s == "" || s[0] != '&' {
		return s
	}
	n := referenceSize(s)
	switch decoded := appendReference(nil, s[:n]); {
	case len(decoded) == 1 && decoded[0] == to:
		return s[n:]
	case decoded[0] == to:
		b.giveUp(oddRare) // only a part of the reference is decoded
	}
	return s
}
