// Package turns decides who is next where places are few: customers take turns. It does not know
// what the places are for, nor for how long they are held. Places is for those who wait, Line for
// those who try again.
package turns

import (
	"context"
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// Places limit what costs CPU or memory. Among waiting customers, the next is the one who has had
// places for the shortest time. Thus one customer's costly page weighs as much as many quick pages
// of another. New and returning customers start with the time of the customer who entered last:
// nobody saves up. Places are safe for concurrent use.
type Places struct {
	clock    clock.Clock
	mu       sync.Mutex
	free     int
	rests    int           // how many more calls may rest
	passed   time.Duration // what the customer who entered last had had
	accounts map[string]*account
	waiting  []waiter  // resting calls, then new ones, each in order; callers limit their number
	given    sync.Pool // channels for waiting calls
}

// restsPerPlace limits how many calls rest, since their results stay in memory meanwhile. Beyond
// it, calls keep their places to the end.
const restsPerPlace = 4

// mostAway is the most customers that are remembered without any waiting or entered call.
const mostAway = 1024

// account is what a customer has had.
type account struct {
	customer string
	had      time.Duration
	here     int // waiting or entered calls
}

// waiter is a call that waits.
type waiter struct {
	account *account
	given   chan struct{}
	rests   bool
}

// Place is a place that a call has entered, and the context for the work in it, for Yield. It may
// be reused.
type Place struct {
	context.Context
	places  *Places
	account *account
	since   time.Time // when it was given, or last paid for
	lost    bool      // the context ended while the call rested
}

// New makes n places.
func New(n int, c clock.Clock) *Places {
	return &Places{clock: c, free: n, rests: restsPerPlace * n, accounts: map[string]*account{},
		given: sync.Pool{New: func() any { return make(chan struct{}, 1) }}}
}

// Enter waits for a place, and fills in h; false: ctx has ended. Whoever has entered must Leave.
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

// await waits until a place is given; false: ctx has ended. The caller holds mu, which is released
// meanwhile.
func (p *Places) await(ctx context.Context, a *account, rests bool) bool {
	given := p.given.Get().(chan struct{})
	defer p.given.Put(given)
	at := len(p.waiting)
	if rests { // ahead of the customer's later calls, which would rest, too
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
		<-given // given meanwhile
		p.pass()
	}
	return false
}

// Leave gives the place back. Stays of no time count, too, so that customers take turns then.
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

// pay counts the time since the place was given, or last paid for. The caller holds mu.
func (h *Place) pay() {
	now := h.places.clock.Now()
	h.account.had += max(now.Sub(h.since), 1)
	h.since = now
}

// placeKey is the context key of a Place.
type placeKey struct{}

// Value implements context.Context.
func (h *Place) Value(key any) any {
	if key == (placeKey{}) {
		return h
	}
	return h.Context.Value(key)
}

// Yield must be called now and then by the one goroutine that does long work in a place. It lets
// waiting customers who have had less go first. Its error is the context's.
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

// goAway ends a call. It remembers customers with more than others, who would else be forgiven.
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

// pass gives a place to the next call.
func (p *Places) pass() {
	if next := p.next(); next >= 0 {
		p.give(next)
	} else {
		p.free++
	}
}

// next returns the waiting call whose customer has had the least, the first of equals; -1: none.
func (p *Places) next() int {
	next := -1
	for i := range p.waiting {
		if next < 0 || p.waiting[i].account.had < p.waiting[next].account.had {
			next = i
		}
	}
	return next
}

// give gives a place to a waiting call.
func (p *Places) give(to int) {
	p.passed = max(p.passed, p.waiting[to].account.had)
	p.waiting[to].given <- struct{}{} // the channel is buffered
	p.waiting = slices.Delete(p.waiting, to, to+1)
}
