package turns

import (
	"sync"
	"time"
)

// Line is for places that nobody waits at: a customer who gets none tries again later. The last
// free place is for customers without any, so one customer's long stays cost no other the first
// place. Among refused customers, the next is the one who has had places for the shortest time, as
// in Places. It is safe for concurrent use.
type Line struct {
	within time.Duration

	mu        sync.Mutex
	free      int
	passed    time.Duration // what the customer who entered last had had
	customers map[string]*visitor
}

// visitor is a customer who holds a place, or tried recently.
type visitor struct {
	places  int           // held
	had     time.Duration // in all places together, until since
	since   time.Time
	tried   time.Time
	refused time.Time // zero: not yet
}

// NewLine makes a Line of places. Refused customers keep their turn for the time within.
func NewLine(places int, within time.Duration) *Line {
	return &Line{within: within, free: places, customers: map[string]*visitor{}}
}

// Enter reports whether the customer gets a place. It gets none while a refused customer has had
// less: the next place is theirs, if they try in time. Whoever has entered must Leave.
func (l *Line) Enter(customer string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	me := l.customers[customer]
	if me == nil {
		me = &visitor{since: now}
		l.customers[customer] = me
	}
	me.pay(now)
	if me.places == 0 && !l.waits(me, now) { // new or returning: nobody saves up
		me.had = max(me.had, l.passed)
	}
	me.tried = now
	first := l.hasPlace(me)
	for name, other := range l.customers {
		if other.places == 0 && now.Sub(other.tried) > l.within {
			delete(l.customers, name)
			continue
		}
		other.pay(now)
		if other.had < me.had && l.waits(other, now) && l.hasPlace(other) {
			first = false
		}
	}
	if !first {
		me.refused = now
		return false
	}
	l.free--
	me.places++
	me.refused = time.Time{} // its other attempts can be refused again
	l.passed = max(l.passed, me.had)
	return true
}

// Leave gives a place back. Stays of no time count, too, so that customers take turns then.
func (l *Line) Leave(customer string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	me := l.customers[customer]
	me.pay(now)
	me.had++
	me.places--
	l.free++
}

// waits reports whether a customer was refused, and may still come back.
func (l *Line) waits(v *visitor, now time.Time) bool {
	return !v.refused.IsZero() && now.Sub(v.refused) <= l.within
}

// hasPlace reports whether there is a place for a customer.
func (l *Line) hasPlace(v *visitor) bool { return l.free > 1 || l.free > 0 && v.places == 0 }

// pay counts the time until now.
func (v *visitor) pay(now time.Time) {
	v.had += time.Duration(v.places) * now.Sub(v.since)
	v.since = now
}
