package dom

// mayReconstruct says whether the end tag of another element has closed the last active formatting
// element.
func (b *builder) mayReconstruct() bool {
	last := len(b.active) - 1
	return last >= 0 && !b.active[last].open && !b.active[last].marker
}

// reconstruct reopens the formatting elements that end tags of other elements have closed.
func (b *builder) reconstruct() {
	if !b.mayReconstruct() {
		return
	}
	i := len(b.active)
	for i > 0 && !b.active[i-1].marker && !b.active[i-1].open {
		i--
	}
	for ; i < len(b.active) && b.odd == notOdd; i++ {
		like := b.d.elems[b.active[i].elem]
		b.active[i].elem = b.push(like.tag, like.named, like.attrs, like.attrsEnd, like.class,
			like.id)
		b.active[i].open = true
	}
}

// mostAlike is the maximum number of equal active formatting elements.
const mostAlike = 3

// addFormatting opens a formatting element. If too many equal ones are active, which is rare, it
// deactivates the earliest.
func (b *builder) addFormatting() {
	t := b.tok.tag
	same := 0
	for i := len(b.active) - 1; i >= 0 && !b.active[i].marker; i-- {
		if b.active[i].tag == t {
			same++
		}
	}
	e := b.add()
	if same >= mostAlike {
		b.dropAlike(e)
	}
	b.active = append(b.active, activeElement{elem: e, tag: t, open: true})
}

// dropAlike deactivates the earliest elements equal to e beyond the permitted number.
func (b *builder) dropAlike(e Elem) {
	d := b.d
	if !b.reads.has(d.elems[e].tag) {
		b.giveUp(oddAlike)
		return
	}
	alike := 0
	for i := len(b.active) - 1; i >= 0 && !b.active[i].marker; i-- {
		if b.active[i].tag != d.elems[e].tag || !d.isAlike(b.active[i].elem, e) {
			continue
		}
		if alike++; alike >= mostAlike {
			b.dropActive(i)
		}
	}
}

// isAlike says whether two elements of the same name have equal attributes.
func (d *Document) isAlike(e, f Elem) bool {
	a, b := &d.elems[e], &d.elems[f]
	if a.attrsEnd-a.attrs != b.attrsEnd-b.attrs {
		return false
	}
	for i := a.attrs; i < a.attrsEnd; i++ {
		if v, ok := d.Attr(f, d.attrs[i].name); !ok || v != d.value(i) {
			return false
		}
	}
	return true
}

func (b *builder) addMarker() {
	b.active = append(b.active,
		activeElement{elem: None, marker: true})
}

func (b *builder) clearToMarker() {
	for len(b.active) > 0 {
		last := b.active[len(b.active)-1]
		b.active = b.active[:len(b.active)-1]
		if last.marker {
			return
		}
	}
}

// activeIndex returns the index of the last active element with the tag after the last marker, or
// -1.
func (b *builder) activeIndex(t tag) int {
	for i := len(b.active) - 1; i >= 0 && !b.active[i].marker; i-- {
		if b.active[i].tag == t {
			return i
		}
	}
	return -1
}

func (b *builder) dropActive(i int) { b.active = append(b.active[:i], b.active[i+1:]...) }
