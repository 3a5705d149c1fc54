// Package turns owns who is next where places are few: customers take turns. It does not know what
// the places are for, nor for how long they are held. Places is for those who wait, Line for those
// who come again.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Places are for what costs CPU or memory. Customers who wait take turns: what one of them sends
// waits for its own, and for one of these whoever comes after. It is safe for concurrent use.
type Places struct {
	mu      sync.Mutex
	free    int
	turn    int       // of who entered last after waiting
	waiting []waiter  // in the order in which they came; their callers bound them
	given   sync.Pool // channels of those who wait
}

// waiter is a call that waits. Of the calls of a customer each has a turn behind the one before.
type waiter struct {
	customer string
	turn     int
	given    chan struct{}
}

// New makes so many places.
func New(n int) *Places {
	return &Places{free: n, given: sync.Pool{New: func() any { return make(chan struct{}, 1) }}}
}

// Enter awaits a place; false: ctx has ended. Who has entered leaves.
func (p *Places) Enter(ctx context.Context, customer string) bool {
	if ctx.Err() != nil {
		return false
	}
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return true
	}
	given := p.given.Get().(chan struct{})
	defer p.given.Put(given)
	w := waiter{customer: customer, turn: p.turn, given: given}
	for _, other := range p.waiting {
		if other.customer == customer {
			w.turn++
		}
	}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-given:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.waiting, func(w waiter) bool { return w.given == given }); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return false
	}
	<-given // it was given meanwhile
	p.pass()
	return false
}

// Leave gives a place back.
func (p *Places) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass()
}

// pass gives a place to whose turn is the first, and of those to who came first.
func (p *Places) pass() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	next := 0
	for i := range p.waiting {
		if p.waiting[i].turn < p.waiting[next].turn {
			next = i
		}
	}
	p.turn = p.waiting[next].turn
	p.waiting[next].given <- struct{}{} // it has room
	p.waiting = slices.Delete(p.waiting, next, next+1)
}
