package measure

import (
	"syscall"
	"time"
)

// sleep is time.Sleep with a precision of some 10 µs, for a goroutine with its own thread. In an
// idle process Go's timers end at the next whole millisecond. At 2,000 calls a second, two would be
// due at once.
func sleep(d time.Duration) {
	length := syscall.NsecToTimespec(d.Nanoseconds())
	// A signal ends it early, and the caller checks the clock again.
	_ = syscall.Nanosleep(&length, nil)
}
