package egress

import (
	"slices"
	"sync"
)

// places limits the look-ups under way. One caller may have a share of them, by the law for bodies
// held, and the last free place is for callers without one. So a caller's look-ups that hang leave
// places for others. Waiting callers are served in order. It is safe for concurrent use.
type places struct {
	mu      sync.Mutex
	free    int
	of      map[string]int // places by caller, only callers with some
	waiting []*place       // in order; callers limit their number
}

// place is a caller's place once given is closed.
type place struct {
	caller string
	given  chan struct{}
}

func (p *place) isGiven() bool {
	select {
	case <-p.given:
		return true
	default:
		return false
	}
}

// enter queues a caller for a place. Every entered place must leave, given or not.
func (p *places) enter(caller string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := &place{caller: caller, given: make(chan struct{})}
	p.waiting = append(p.waiting, at)
	p.giveLocked()
	return at
}

// leave gives a place back, or ends the wait for it.
func (p *places) leave(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, at); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.free++
	if p.of[at.caller]--; p.of[at.caller] == 0 {
		delete(p.of, at.caller)
	}
	p.giveLocked()
}

// giveLocked gives free places to the waiting callers that may have one.
func (p *places) giveLocked() {
	if p.free == 0 {
		return
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(at *place) bool {
		if !p.hasRoom(at.caller) {
			return false
		}
		p.free--
		p.of[at.caller]++
		close(at.given)
		return true
	})
}

// hasRoom reports whether a caller may have another place. Without a caller any free one will do.
func (p *places) hasRoom(caller string) bool {
	has := p.of[caller]
	return p.free > 0 && (caller == "" || has == 0 || has < shareOfRoom*(p.free-1))
}
