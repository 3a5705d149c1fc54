// Package turns owns who is next where places are few: customers take turns. It does not know what
// the places are for, nor for how long they are held. Places is for those who wait, Line for those
// who come again.
package turns

import (
	"context"
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// Places are for what costs CPU or memory. Among customers who wait, the next is who has had them
// for the shortest time. So many quick pages of one are read for a costly one of another. Who
// comes, or comes back, has had them for as long as who entered last: nobody saves up. It is safe
// for concurrent use.
type Places struct {
	clock    clock.Clock
	mu       sync.Mutex
	free     int
	rests    int           // how many more may rest
	passed   time.Duration // what who entered last had had
	accounts map[string]*account
	waiting  []waiter  // who rests, then who came, each in order; their callers bound them
	given    sync.Pool // channels of those who wait
}

// restsPerPlace bounds how many calls rest: what they have made stays in memory meanwhile. Where as
// many do, the others stay to their end.
const restsPerPlace = 4

// mostAway bounds the customers who are remembered though nothing of them waits or has entered.
const mostAway = 1024

// account is what a customer has had.
type account struct {
	customer string
	had      time.Duration
	here     int // calls that wait or have entered
}

// waiter is a call that waits.
type waiter struct {
	account *account
	given   chan struct{}
	rests   bool
}

// Place is one that a call has entered, and the context of what is done in it, for Yield. It may be
// used again for the next.
type Place struct {
	context.Context
	places  *Places
	account *account
	since   time.Time // it was given, or paid for
	lost    bool      // the context ended while the call rested
}

// New makes so many places.
func New(n int, c clock.Clock) *Places {
	return &Places{clock: c, free: n, rests: restsPerPlace * n, accounts: map[string]*account{},
		given: sync.Pool{New: func() any { return make(chan struct{}, 1) }}}
}

// Enter awaits a place, which h becomes; false: ctx has ended. Who has entered leaves.
func (p *Places) Enter(ctx context.Context, customer string, h *Place) bool {
	if ctx.Err() != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[customer]
	if a == nil {
		a = &account{customer: customer}
		p.accounts[customer] = a
	}
	if a.here == 0 {
		a.had = max(a.had, p.passed)
	}
	a.here++
	switch {
	case p.free > 0:
		p.free--
		p.passed = max(p.passed, a.had)
	case !p.await(ctx, a, false):
		p.goAway(a)
		return false
	}
	*h = Place{Context: ctx, places: p, account: a, since: p.clock.Now()}
	return true
}

// await waits until a place is given; false: ctx has ended. It needs the lock, which is free
// meanwhile.
func (p *Places) await(ctx context.Context, a *account, rests bool) bool {
	given := p.given.Get().(chan struct{})
	defer p.given.Put(given)
	at := len(p.waiting)
	if rests { // before what came later of the same customer: that would rest, too
		at = 0
		for at < len(p.waiting) && p.waiting[at].rests {
			at++
		}
	}
	p.waiting = slices.Insert(p.waiting, at, waiter{a, given, rests})
	p.mu.Unlock()
	select {
	case <-given:
		p.mu.Lock()
		return true
	case <-ctx.Done():
		p.mu.Lock()
	}
	i := slices.IndexFunc(p.waiting, func(w waiter) bool { return w.given == given })
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		<-given // it was given meanwhile
		p.pass()
	}
	return false
}

// Leave gives the place back. What took no time counts, too: customers take turns then.
func (h *Place) Leave() {
	p := h.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if !h.lost {
		h.pay()
		p.pass()
	}
	p.goAway(h.account)
}

// pay counts the time since the place was given, or paid for. It needs the lock.
func (h *Place) pay() {
	now := h.places.clock.Now()
	h.account.had += max(now.Sub(h.since), 1)
	h.since = now
}

// placeKey is what a place has itself under.
type placeKey struct{}

// Value implements context.Context.
func (h *Place) Value(key any) any {
	if key == (placeKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// Yield is called every now and then by the one goroutine that does long work in a place. Whoever
// waits and has had less goes first. Its error is the context's.
func Yield(ctx context.Context) error {
	if h, ok := ctx.Value(placeKey{}).(*Place); ok && ctx.Err() == nil {
		h.yield(ctx)
	}
	return ctx.Err()
}

func (h *Place) yield(ctx context.Context) {
	p := h.places
	p.mu.Lock()
	defer p.mu.Unlock()
	h.pay()
	next := p.next()
	if next < 0 || p.waiting[next].account.had >= h.account.had || p.rests == 0 {
		return
	}
	p.rests--
	p.give(next)
	h.lost = !p.await(ctx, h.account, true)
	p.rests++
	h.since = p.clock.Now()
}

// goAway ends a call. Who has had more than others is remembered, or it would be forgiven.
func (p *Places) goAway(a *account) {
	a.here--
	if a.here == 0 && a.had <= p.passed {
		delete(p.accounts, a.customer)
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

// pass gives a place to who is next.
func (p *Places) pass() {
	if next := p.next(); next >= 0 {
		p.give(next)
	} else {
		p.free++
	}
}

// next is who waits and has had the least, and of those who came first; -1: nobody.
func (p *Places) next() int {
	next := -1
	for i := range p.waiting {
		if next < 0 || p.waiting[i].account.had < p.waiting[next].account.had {
			next = i
		}
	}
	return next
}

// give gives a place to one of those who wait.
func (p *Places) give(to int) {
	p.passed = max(p.passed, p.waiting[to].account.had)
	p.waiting[to].given <- struct{}{} // it has room
	p.waiting = slices.Delete(p.waiting, to, to+1)
}
