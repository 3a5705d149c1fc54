package frontier

// noPlace is the place of an element outside the heap.
const noPlace = -1

// timed is an element of a heap: due at a time, and knowing its place for its removal.
type timed interface {
	due() int64
	setPlace(int)
	getPlace() int
}

func (h *host) due() int64      { return h.wakes }
func (h *host) setPlace(n int)  { h.place = n }
func (h *host) getPlace() int   { return h.place }
func (it *Item) due() int64     { return it.at }
func (it *Item) setPlace(n int) { it.place = n }
func (it *Item) getPlace() int  { return it.place }

// heap keeps the earliest element first.
type heap[E timed] struct{ elements []E }

func (h *heap[E]) len() int { return len(h.elements) }
func (h *heap[E]) first() E { return h.elements[0] }

func (h *heap[E]) push(e E) {
	h.elements = append(h.elements, e)
	h.up(len(h.elements)-1, e)
}

// remove removes an element of the heap.
func (h *heap[E]) remove(e E) {
	at, last := e.getPlace(), len(h.elements)-1
	moved := h.elements[last]
	var none E
	h.elements[last] = none
	h.elements = h.elements[:last]
	e.setPlace(noPlace)
	if at == last {
		return
	}
	if at > 0 && moved.due() < h.elements[(at-1)/2].due() {
		h.up(at, moved)
	} else {
		h.down(at, moved)
	}
}

// up puts e at the place at or above it.
func (h *heap[E]) up(at int, e E) {
	for at > 0 {
		parent := (at - 1) / 2
		if h.elements[parent].due() <= e.due() {
			break
		}
		h.set(at, h.elements[parent])
		at = parent
	}
	h.set(at, e)
}

// down puts e at the place at or below it.
func (h *heap[E]) down(at int, e E) {
	for {
		child := 2*at + 1
		if child+1 < len(h.elements) && h.elements[child+1].due() < h.elements[child].due() {
			child++
		}
		if child >= len(h.elements) || e.due() <= h.elements[child].due() {
			break
		}
		h.set(at, h.elements[child])
		at = child
	}
	h.set(at, e)
}

func (h *heap[E]) set(at int, e E) {
	h.elements[at] = e
	e.setPlace(at)
}
