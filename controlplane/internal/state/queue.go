package state

import (
	"bytes"
	"cmp"
	"container/heap"
)

// queue merges lists of scrapers, each ordered newest first. Its head has the newest of all.
type queue []*head

// head is a list with its next scraper, which is already read.
type head struct {
	next *Scraper
	rows *cursor
}

// add adds a list, unless it is empty.
func (q *queue) add(rows *cursor) {
	if first := rows.next(); first != nil {
		heap.Push(q, &head{first.(*Scraper), rows})
	}
}

// advance moves to the next scraper. The queue must not be empty.
func (q *queue) advance() {
	next := (*q)[0].rows.next()
	if next == nil {
		heap.Pop(q)
		return
	}
	(*q)[0].next = next.(*Scraper)
	heap.Fix(q, 0)
}

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface: newer scrapers come first, then higher ids.
func (q queue) Less(i, j int) bool {
	a, b := q[i].next, q[j].next
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:])) > 0
}

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(*head)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
