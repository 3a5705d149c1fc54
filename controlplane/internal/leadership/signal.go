package leadership

// signal wakes a routine. Several signals before it looks count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (g signal) raise() {
	select {
	case g <- struct{}{}:
	default:
	}
}
