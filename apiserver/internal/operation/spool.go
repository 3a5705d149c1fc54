package operation

import (
	"io"
	"sync"

	"shoal.dev/shoal/pkg/fault"
)

// Bounds in bytes of the disk space that bodies take while received and processed, and long answers
// while sent.
const (
	maxSpooled      = 16 << 30 // of all customers together
	maxSpooledOfOne = 4 << 30  // of one customer
	// spoolReserve is what stays free on the disk, whatever else fills it, unless Disk has a floor.
	spoolReserve = 1 << 30
	// spoolStep is how much is taken at a time.
	spoolStep = 4 << 20
)

// spools counts the disk space that bodies and answers take.
type spools struct {
	reserve int64 // bytes that stay free on the disk

	mu    sync.Mutex
	all   int64
	ofOne map[string]int64 // by customer, without zeros
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

// takeBytes takes n bytes for a customer, or nothing. free is what the disk has left, if known.
func (s *spools) takeBytes(customer string, n int64, free func() (uint64, bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch left, known := free(); {
	case s.all+n > maxSpooled, known && left < uint64(s.reserve+n):
		return errSpoolsFull
	case s.ofOne[customer]+n > maxSpooledOfOne+customerShare*spoolStep: // steps may be partly used
		return errCustomerFull
	}
	if s.ofOne == nil {
		s.ofOne = map[string]int64{}
	}
	s.all += n
	s.ofOne[customer] += n
	return nil
}

// leave gives n bytes back; n may be 0.
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

// spool is a file that reserves its space before it is written.
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
