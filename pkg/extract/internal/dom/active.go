package dom

// mayReconstruct says whether the last active formatting element has been closed by others' end
// tags.
func (b *builder) mayReconstruct() bool {
	last := len(b.active) - 1
	return last >= 0 && !b.active[last].open && !b.active[last].marker
}

// reconstruct opens again what formatting elements have been closed by others' end tags.
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

// mostAlike is how many formatting elements alike are active at most.
const mostAlike = 3

// addFormatting opens a formatting element. Of many alike, which are rare, the first are active no
// longer.
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

// dropAlike leaves of the active elements that are like e only those that may stay.
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

// isAlike says whether two elements of one name have the same attributes.
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

// activeIndex is the place of the last active element of the tag behind the last marker, -1 if
// there is none.
func (b *builder) activeIndex(t tag) int {
	for i := len(b.active) - 1; i >= 0 && !b.active[i].marker; i-- {
		if b.active[i].tag == t {
			return i
		}
	}
	return -1
}

func (b *builder) dropActive(i int) { b.active = append(b.active[:i], b.active[i+1:]...) }
