// Package wake owns the way in which a goroutine is told to look again at what it shares. It does
// not know what has changed.
package wake

// Signal wakes a goroutine that receives from it. It holds one notice, so that none is lost between
// looking and waiting. Several notices before the goroutine looks count as one.
type Signal chan struct{}

// NewSignal returns a signal without a notice.
func NewSignal() Signal { return make(Signal, 1) }

// Raise gives a notice. It never waits.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}
