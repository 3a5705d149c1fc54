package dom

// maxClones is how many formatting elements between a formatting element and a block are opened
// again. With more of them x/net/html and the standard differ: odd.
const maxClones = 3

// adopt is a round of the adoption agency. It ends the formatting element at place at on the stack
// before the block at place block. It opens it again inside the block, around all that the block
// holds. What has its place in the list stays in order: only clones come in between.
func (b *builder) adopt(at, block int) {
	common := at - 1
	for b.stack[common].gone {
		common--
	}
	if b.stack[common].tag.holdsRows() && !b.stack[common+1].fostered {
		b.giveUp(oddFoster)
		return
	}
	between := make([]int, 0, maxClones) // those that are opened again, on the stack
	for i, met := block-1, 0; i > at; i-- {
		if b.stack[i].gone {
			continue
		}
		if met++; !b.isActive(b.stack[i].elem) {
			continue
		}
		if met > maxClones {
			b.giveUp(oddFormatting)
			return
		}
		between = append(between, i)
	}
	d := b.d
	start := b.stack[block].elem
	if !b.mayMove(len(d.elems) - int(start) + len(d.texts) - int(d.elems[start].text)) {
		return
	}
	b.endBefore(common+1, block)
	b.insert(start, Elem(len(between)))
	b.insert(start+Elem(len(between))+1, 1)
	b.reopen(common, at, block, between)
	b.recheck(start)
}

// endBefore closes the elements of the stack from one place up to the block at another, which
// leaves them.
func (b *builder) endBefore(from, block int) {
	d := b.d
	start := b.stack[block].elem
	for i := block - 1; i >= from; i-- {
		o := &b.stack[i]
		if i == block-1 {
			o.kids--
		}
		el := &d.elems[o.elem]
		el.end, el.textEnd, el.kids = start, d.elems[start].text, o.kids
		if b.within > 0 {
			b.endMatch(o.elem)
		}
		if !o.gone {
			b.opened[o.tag]--
		}
	}
}

// reopen puts clones into the places made for them. Those of the elements between the formatting
// element and the block go around the block, and that of the formatting element inside it.
func (b *builder) reopen(common, at, block int, between []int) {
	d := b.d
	var opened [maxClones + 2]open
	n := 0
	e := b.stack[block].elem - Elem(len(between)) // where the first clone goes
	before := b.stack[common].tag.holdsRows()     // the table around, like what is ended
	var parent, prev Elem
	var index int32
	if before {
		parent, prev, index = b.foster(e)
	} else {
		o := &b.stack[common]
		o.kids++
		parent, prev, index = o.elem, o.last, o.kids
		o.last = e
	}
	text, attrs, mode := d.elems[b.stack[block].elem].text, b.stack[block].attrs, b.stack[at].mode
	for i := len(between) - 1; i >= 0; i-- {
		from := b.stack[between[i]]
		like := d.elems[from.elem]
		like.parent, like.prev, like.index, like.text = parent, prev, index, text
		like.end, like.textEnd = 0, 0
		d.elems[e] = like
		opened[n] = open{elem: e, last: e + 1, kids: 1, attrs: attrs, tag: from.tag, mode: mode}
		b.opened[from.tag]++
		b.active[b.activePlace(from.elem)].elem = e
		parent, prev, index = e, None, 1
		e++
		n++
	}
	el := &d.elems[e] // the block
	el.parent, el.prev, el.index = parent, prev, index
	inner := b.stack[block]
	opened[n] = inner
	opened[n].last, opened[n].kids = e+1, 1
	n++
	like := d.elems[b.stack[at].elem]
	like.parent, like.prev, like.index, like.text = e, None, 1, text
	like.end, like.textEnd = 0, 0
	d.elems[e+1] = like
	opened[n] = open{elem: e + 1, last: inner.last, kids: inner.kids,
		attrs: max(attrs, el.attrsEnd), tag: b.stack[at].tag, mode: inner.mode}
	b.opened[b.stack[at].tag]++
	n++
	for i := e + 2; i < Elem(len(d.elems)); i++ {
		if d.elems[i].parent == e {
			d.elems[i].parent = e + 1
		}
	}
	for i := int(text); i < len(d.texts); i++ {
		if d.texts[i].parent == e {
			d.texts[i].parent = e + 1
		}
	}
	b.moveActive(b.stack[at].elem, e+1, between)
	opened[0].fostered = before
	kept := copy(b.stack[common+1:], opened[:n])
	b.stack = append(b.stack[:common+1+kept], b.stack[block+1:]...)
}

// moveActive takes a formatting element out of the list of active ones. It puts its clone behind
// the innermost of those that were opened again, or in its place.
func (b *builder) moveActive(old, clone Elem, between []int) {
	place := b.activePlace(old)
	bookmark := place
	if len(between) > 0 {
		bookmark = b.activePlace(clone-2) + 1
	}
	entry := b.active[place]
	entry.elem = clone
	b.dropActive(place)
	if place < bookmark {
		bookmark--
	}
	b.active = append(b.active, activeElement{})
	copy(b.active[bookmark+1:], b.active[bookmark:])
	b.active[bookmark] = entry
}

// activePlace is the place of an element among the active ones, which it must be one of.
func (b *builder) activePlace(e Elem) int {
	for i := range b.active {
		if b.active[i].elem == e {
			return i
		}
	}
	return -1
}

// moving is how many looks at an element cost as much as a move of it, or of a text.
const moving = 16

// mayMove takes the work of moving n elements and texts from what a page may have of it.
func (b *builder) mayMove(n int) bool {
	if b.looked += moving * n; b.looked > maxLooked {
		b.giveUp(oddLarge)
	}
	return b.odd == notOdd
}

// insert makes room for n elements, which others fill, before the one at place at: it and those
// behind it move on.
func (b *builder) insert(at, n Elem) {
	if n == 0 {
		return
	}
	d := b.d
	size := Elem(len(d.elems))
	for range n {
		d.elems = append(d.elems, element{})
	}
	copy(d.elems[at+n:], d.elems[at:size])
	moved := func(e *Elem) {
		if *e >= at {
			*e += n
		}
	}
	text := len(d.texts)
	if at < size {
		text = int(d.elems[at+n].text)
	}
	for i := at + n; i < Elem(len(d.elems)); i++ {
		el := &d.elems[i]
		moved(&el.parent)
		moved(&el.prev)
		moved(&el.end)
	}
	for i := text; i < len(d.texts); i++ {
		moved(&d.texts[i].parent)
		moved(&d.texts[i].hider)
	}
	for i := range b.stack {
		moved(&b.stack[i].elem)
		moved(&b.stack[i].last)
	}
	for i := range b.active {
		moved(&b.active[i].elem)
	}
	for i := range d.found {
		moved(&d.found[i])
	}
	moved(&b.form)
	moved(&b.kept)
	if len(d.elems) > maxParts {
		b.giveUp(oddLarge)
	}
}

// recheck looks again at the elements from one on, which have others around them now. Where a
// selector's first match is not what it was, the page is to be read again.
func (b *builder) recheck(from Elem) {
	d := b.d
	clear(d.searched)
	for i, s := range d.wanted {
		if d.found[i] != None && d.found[i] < from {
			continue
		}
		last := d.found[i]
		if last == None {
			last = Elem(len(d.elems)) - 1
		}
		first := None
		for e := from; e <= last && first == None; e++ {
			if s.mayMatch(d, &d.elems[e]) && s.list.match(d, e) {
				first = e
			}
		}
		if first != d.found[i] || d.steps < maxSteps/2 {
			b.giveUp(oddMatches)
			return
		}
	}
}
