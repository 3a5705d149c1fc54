package egress

import (
	"slices"
	"sync"
)

// places are for the names that are asked for at a time. What one caller has of them is bounded as
// what is held of their bodies is, and the last one is for who has none. However long the look-ups
// of some hang, another's finds a place. Those who may have one get it in order. It is safe for
// concurrent use.
type places struct {
	mu      sync.Mutex
	free    int
	of      map[string]int // of those who have some
	waiting []*place       // in order; exchanges and pages bound them
}

// place is one that a caller has once given is closed.
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

// enter puts a caller into the line. Whoever has entered leaves, with a place or without.
func (p *places) enter(caller string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := &place{caller: caller, given: make(chan struct{})}
	p.waiting = append(p.waiting, at)
	p.give()
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
	p.give()
}

// give gives places to who may have them. It needs the lock.
func (p *places) give() {
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

// hasRoom says whether a caller may have another place. What is nobody's may have any that is free.
func (p *places) hasRoom(caller string) bool {
	has := p.of[caller]
	return p.free > 0 && (caller == "" || has == 0 || has < shareOfRoom*(p.free-1))
}
