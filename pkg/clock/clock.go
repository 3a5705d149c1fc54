// Package clock defines the current time: the system's clock in production, a hand-moved one in
// tests. Nothing else in the program reads the time. Replicated state takes it from the leader's
// stamp instead.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock tells the time and makes timers. Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time; the system clock's has a monotonic reading.
	Now() time.Time
	// After sends the time once, d from now. The channel is buffered and never closed.
	After(d time.Duration) <-chan time.Time
}

// System is the machine's clock.
type System struct{}

// Now returns time.Now.
func (System) Now() time.Time { return time.Now() }

// After returns time.After.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Pause waits for d; false if ctx has ended, even if the time is up, too.
func Pause(ctx context.Context, c Clock, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.After(d):
		return ctx.Err() == nil
	}
}

// Manual is a clock that moves only by Advance.
type Manual struct {
	mu     sync.Mutex
	now    time.Time
	timers []timer
}

type timer struct {
	at time.Time
	ch chan time.Time
}

// NewManual starts a clock at the given time.
func NewManual(at time.Time) *Manual { return &Manual{now: at} }

// Now returns the time to which the clock was last moved.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// After fires when Advance passes d from now.
func (m *Manual) After(d time.Duration) <-chan time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- m.now
		return ch
	}
	m.timers = append(m.timers, timer{at: m.now.Add(d), ch: ch})
	return ch
}

// Advance moves the clock and fires the timers that are due.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	kept := m.timers[:0]
	for _, t := range m.timers {
		if t.at.After(m.now) {
			kept = append(kept, t)
			continue
		}
		t.ch <- m.now
	}
	m.timers = kept
}

// Waiting returns how many timers are set for a time.
func (m *Manual) Waiting(at time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.timers {
		if t.at.Equal(at) {
			n++
		}
	}
	return n
}
