package operation

import (
	"io"
	"sync"

	"shoal.dev/shoal/pkg/fault"
)

// Bounds of what bodies take on disk while they are received and worked on, and long answers while
// they are sent, in bytes.
const (
	maxSpooled      = 16 << 30 // of all customers together
	maxSpooledOfOne = 4 << 30  // of one customer
	// spoolReserve is what stays free on the disk, whatever else fills it, unless told.
	spoolReserve = 1 << 30
	// spoolStep is taken at a time.
	spoolStep = 4 << 20
)

// spools counts what bodies take on disk.
type spools struct {
	reserve int64 // bytes that stay free on the disk

	mu    sync.Mutex
	all   int64
	ofOne map[string]int64 // by customer, of those that have some
}

var (
	errSpoolsFull = fault.New(fault.Unavailable,
		"bodies and answers that are under way take all the disk there is for them; try again later")
	errDiskShort = fault.New(fault.OutOfSpace,
		"the disk has too little room for bodies of this length; try again later")
	errCustomerFull = fault.New(fault.Unavailable,
		"the customer's other bodies and answers that are under way leave no room for this one; "+
			"try again after them")
)

// takeBytes takes n bytes for a customer, or none. free is what the disk has left, as far as that
// is known.
func (s *spools) takeBytes(customer string, n int64, free func() (uint64, bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch left, known := free(); {
	case s.all+n > maxSpooled, known && left < uint64(s.reserve+n):
		return errSpoolsFull
	case s.ofOne[customer]+n > maxSpooledOfOne+customerShare*spoolStep: // steps that are not full
		return errCustomerFull
	}
	if s.ofOne == nil {
		s.ofOne = map[string]int64{}
	}
	s.all += n
	s.ofOne[customer] += n
	return nil
}

// leave gives back what was taken, which may be nothing.
func (s *spools) leave(customer string, n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	if s.ofOne[customer] -= n; s.ofOne[customer] == 0 {
		delete(s.ofOne, customer)
	}
}

// spool is a file that takes its room before it is written.
type spool struct {
	io.Writer
	take           func(n int64) error
	taken, written int64
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	for s.written+int64(len(p)) > s.taken {
		if err := s.take(spoolStep); err != nil {
			return 0, err
		}
		s.taken += spoolStep
	}
	n, err := s.Writer.Write(p)
	s.written += int64(n)
	return n, err
}
