// Package turns owns who is next where places are few: customers take turns. It does not know what
// the places are for, nor for how long they are held. Places is for those who wait, Line for those
// who come again.
package turns

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Places are for what costs CPU or memory. Among customers who wait, the next is who has had them
// for the shortest time. So many quick pages of one are read for a costly one of another. Who
// comes, or comes back, has had them for as long as who entered last: nobody saves up. It is safe
// for concurrent use.
type Places struct {
	mu       sync.Mutex
	free     int
	passed   time.Duration // what who entered last had had
	accounts map[string]*account
	waiting  []waiter  // in the order in which they came; their callers bound them
	given    sync.Pool // channels of those who wait
}

// mostAway bounds the customers who are remembered though nothing of them waits or has entered.
const mostAway = 1024

// account is what a customer has had.
type account struct {
	had  time.Duration
	here int // calls that wait or have entered
}

// waiter is a call that waits.
type waiter struct {
	account *account
	given   chan struct{}
}

// New makes so many places.
func New(n int) *Places {
	return &Places{free: n, accounts: map[string]*account{},
		given: sync.Pool{New: func() any { return make(chan struct{}, 1) }}}
}

// Enter awaits a place; false: ctx has ended. Who has entered leaves.
func (p *Places) Enter(ctx context.Context, customer string) bool {
	if ctx.Err() != nil {
		return false
	}
	p.mu.Lock()
	a := p.accounts[customer]
	if a == nil {
		a = &account{}
		p.accounts[customer] = a
	}
	if a.here == 0 {
		a.had = max(a.had, p.passed)
	}
	a.here++
	if p.free > 0 {
		p.free--
		p.passed = max(p.passed, a.had)
		p.mu.Unlock()
		return true
	}
	given := p.given.Get().(chan struct{})
	defer p.given.Put(given)
	p.waiting = append(p.waiting, waiter{a, given})
	p.mu.Unlock()
	select {
	case <-given:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.waiting, func(w waiter) bool { return w.given == given })
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		<-given // it was given meanwhile
		p.pass()
	}
	p.goAway(customer, a)
	return false
}

// Leave gives a place back that a customer has had for a time. What took none counts, too:
// customers take turns then.
func (p *Places) Leave(customer string, had time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[customer]
	a.had += max(had, 1)
	p.pass()
	p.goAway(customer, a)
}

// goAway ends a call. Who has had more than others is remembered, or it would be forgiven.
func (p *Places) goAway(customer string, a *account) {
	a.here--
	if a.here == 0 && a.had <= p.passed {
		delete(p.accounts, customer)
	}
	if len(p.accounts) <= mostAway+len(p.waiting) {
		return
	}
	for name, other := range p.accounts {
		if other.here == 0 {
			delete(p.accounts, name)
		}
	}
}

// pass gives a place to who has had the least, and of those to who came first.
func (p *Places) pass() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	next := 0
	for i := range p.waiting {
		if p.waiting[i].account.had < p.waiting[next].account.had {
			next = i
		}
	}
	p.passed = max(p.passed, p.waiting[next].account.had)
	p.waiting[next].given <- struct{}{} // it has room
	p.waiting = slices.Delete(p.waiting, next, next+1)
}
