package unit

import (
	"context"
	"slices"
	"sync"
)

// places are for what costs CPU. Customers who wait take turns: the pages of one whose patterns
// are costly wait for each other, and for one of them whoever comes after.
type places struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by customer, the oldest first
	turns   []string                   // who waits, the next first
}

func newPlaces(n int) *places {
	return &places{free: n, waiting: map[string][]chan struct{}{}}
}

// enter awaits a place; false: ctx has ended. Who has entered leaves.
func (p *places) enter(ctx context.Context, customer string) bool {
	if ctx.Err() != nil {
		return false
	}
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return true
	}
	given := make(chan struct{})
	if len(p.waiting[customer]) == 0 {
		p.turns = append(p.turns, customer)
	}
	p.waiting[customer] = append(p.waiting[customer], given)
	p.mu.Unlock()
	select {
	case <-given:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting[customer], given); i >= 0 {
		p.dequeue(customer, i)
		return false
	}
	p.pass() // it was given meanwhile
	return false
}

// leave gives a place back.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass()
}

// pass gives a place to who waits next, whose customer then is the last.
func (p *places) pass() {
	if len(p.turns) == 0 {
		p.free++
		return
	}
	customer := p.turns[0]
	close(p.waiting[customer][0])
	p.turns = append(p.turns[1:], customer)
	p.dequeue(customer, 0)
}

func (p *places) dequeue(customer string, i int) {
	p.waiting[customer] = slices.Delete(p.waiting[customer], i, i+1)
	if len(p.waiting[customer]) == 0 {
		delete(p.waiting, customer)
		p.turns = slices.DeleteFunc(p.turns, func(c string) bool { return c == customer })
	}
}
