package measure

import (
	"syscall"
	"time"
)

// sleep is time.Sleep to some hundredths of a millisecond, for a goroutine that has its thread to
// itself. Go's timers end at the next whole millisecond in a process that has nothing else to do.
// With 2,000 calls a second two would be due at once.
func sleep(d time.Duration) {
	length := syscall.NsecToTimespec(d.Nanoseconds())
	// a signal ends it early, and the caller looks at the clock again
	_ = syscall.Nanosleep(&length, nil)
}
