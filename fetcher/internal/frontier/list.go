package frontier

// list is a doubly linked list whose nodes are embedded in its elements. So a removal needs no
// search and no memory.
type list[T any] struct{ first, last *node[T] }

type node[T any] struct {
	value      *T
	prev, next *node[T]
	in         *list[T] // nil: in no list
}

// front returns the first element, nil if the list is empty.
func (l *list[T]) front() *T {
	if l.first == nil {
		return nil
	}
	return l.first.value
}

func (l *list[T]) pushFront(n *node[T]) {
	n.in, n.next = l, l.first
	if l.first != nil {
		l.first.prev = n
	} else {
		l.last = n
	}
	l.first = n
}

func (l *list[T]) pushBack(n *node[T]) {
	n.in, n.prev = l, l.last
	if l.last != nil {
		l.last.next = n
	} else {
		l.first = n
	}
	l.last = n
}

// remove removes a node if it is in the list.
func (l *list[T]) remove(n *node[T]) {
	if n.in != l {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	n.in, n.prev, n.next = nil, nil, nil
}

// toBack moves a node to the end if it is in the list.
func (l *list[T]) toBack(n *node[T]) {
	if n.in == l {
		l.remove(n)
		l.pushBack(n)
	}
}
