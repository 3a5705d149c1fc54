package dom

// maxClones bounds the formatting elements reopened between a formatting element and a block.
// Beyond it, x/net/html and the standard differ, so the page is odd.
const maxClones = 3

// adopt is one round of the adoption agency. It ends the formatting element at stack index at
// before the block at stack index block. It reopens the element inside the block, around everything
// that the block holds. Elements already in the list keep their order: only clones are inserted.
func (b *builder) adopt(at, block int) {
	common := at - 1
	for b.stack[common].gone {
		common--
	}
	if b.stack[common].tag.holdsRows() && !b.stack[common+1].fostered {
		b.giveUp(oddFoster)
		return
	}
	between := make([]int, 0, maxClones) // stack indexes of the elements to reopen
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

// endBefore closes the elements from stack index from up to the block, which moves out of them.
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

// reopen puts clones into the slots made for them. Clones of the elements between the formatting
// element and the block go around the block; that of the formatting element goes inside it.
func (b *builder) reopen(common, at, block int, between []int) {
	d := b.d
	var opened [maxClones + 2]open
	n := 0
	e := b.stack[block].elem - Elem(len(between)) // slot of the first clone
	before := b.stack[common].tag.holdsRows()     // before the table around it, as the original is
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

// moveActive replaces a formatting element in the active list by its clone. The clone goes after
// the innermost reopened element or, if there is none, in the original's place.
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

// activePlace returns an element's index in the active list, which must contain it.
func (b *builder) activePlace(e Elem) int {
	for i := range b.active {
		if b.active[i].elem == e {
			return i
		}
	}
	return -1
}

// moving is the cost of moving an element or a text, in looks at an element.
const moving = 16

// mayMove charges the work of moving n elements and texts against the page's bound.
func (b *builder) mayMove(n int) bool {
	if b.looked += moving * n; b.looked > maxLooked {
		b.giveUp(oddLarge)
	}
	return b.odd == notOdd
}

// insert makes room for n elements at index at, which the caller fills. The elements from there on
// move up.
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

// recheck matches the elements from index from again, because their ancestors have changed. If a
// selector's first match has changed, the page must be read again.
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
