package turns

import (
	"sync"
	"time"
)

// Line is for places that nobody waits at: whoever finds none comes again, some time later. Without
// it, those who come most often would get them. It is safe for concurrent use.
type Line struct {
	within time.Duration

	mu        sync.Mutex
	turn      uint64
	customers map[string]*visitor
}

// visitor is a customer who has tried lately.
type visitor struct {
	served  uint64 // the turn in which a place was last found; 0: none
	tried   time.Time
	refused time.Time // zero: not yet
}

// NewLine makes a line in which who was refused comes again within a time.
func NewLine(within time.Duration) *Line {
	return &Line{within: within, customers: map[string]*visitor{}}
}

// Try is a try of a customer that has begun.
type Try struct {
	customer      string
	before, after uint64
}

// Begin says whether a customer may try to find a place at a time. It may not while somebody else
// was refused who has been served less recently: the next free place is theirs, if they come in
// time. A try that finds no place is given to Refuse.
func (l *Line) Begin(customer string, now time.Time) (Try, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	me := l.customers[customer]
	if me == nil {
		me = &visitor{}
		l.customers[customer] = me
	}
	me.tried = now
	first := true
	for name, other := range l.customers {
		switch {
		case now.Sub(other.tried) > l.within:
			delete(l.customers, name)
		case other.served < me.served && !other.refused.IsZero() &&
			now.Sub(other.refused) <= l.within:
			first = false
		}
	}
	if !first {
		me.refused = now
		return Try{}, false
	}
	l.turn++
	try := Try{customer: customer, before: me.served, after: l.turn}
	me.served = l.turn
	return try, true
}

// Refuse notes that a try has found no place: the turn is still its customer's.
func (l *Line) Refuse(try Try, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.customers[try.customer]; v != nil {
		v.refused = now
		if v.served == try.after {
			v.served = try.before
		}
	}
}
