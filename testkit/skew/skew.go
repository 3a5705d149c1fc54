// Package skew owns a clock whose wall time a test can step while the process runs, like a wrong
// NTP server. A step does not change the monotonic reading. So durations between readings, and
// leases, do not see it, exactly as with the machine's own clock.
package skew

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"shoal.dev/shoal/pkg/clock"
)

// File is the environment variable that names the file with the offset, a Go duration of whole
// seconds ("-10m"). It is for tests only and not in any help text.
const File = "SHOAL_CLOCK_OFFSET"

// readEvery is the greatest age of the offset that a reading uses.
const readEvery = 50 * time.Millisecond

// FromEnv returns the machine's clock, or one that follows the file if the variable names one. A
// missing file is an offset of 0. An invalid one panics, so that a run without a step is never
// taken for one that survived it.
func FromEnv(getenv func(string) string) clock.Clock {
	path := getenv(File)
	if path == "" {
		return clock.System{}
	}
	return &stepped{path: path, began: time.Now()}
}

// stepped is the machine's clock with the file's offset.
type stepped struct {
	path  string
	began time.Time

	readAt atomic.Int64 // last reading of the file, since began; 0 before the first
	offset atomic.Int64 // seconds
	mu     sync.Mutex   // held while reading the file
}

// Now returns the machine's time with a stepped wall reading.
func (s *stepped) Now() time.Time {
	now := time.Now()
	if at := now.Sub(s.began); s.readAt.Load() == 0 ||
		at-time.Duration(s.readAt.Load()) > readEvery {
		s.read(at)
	}
	return step(now, s.offset.Load())
}

// After is time.After: waiting is monotonic.
func (s *stepped) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (s *stepped) read(at time.Duration) {
	if !s.mu.TryLock() {
		return // another caller reads it
	}
	defer s.mu.Unlock()
	s.readAt.Store(max(int64(at), 1))
	text, err := os.ReadFile(s.path)
	if os.IsNotExist(err) {
		s.offset.Store(0)
		return
	}
	var offset time.Duration
	if err == nil {
		offset, err = time.ParseDuration(strings.TrimSpace(string(text)))
	}
	if err != nil || offset%time.Second != 0 {
		panic(fmt.Sprintf("skew: %s: %q: want a duration of whole seconds: %v", File, text, err))
	}
	s.offset.Store(int64(offset / time.Second))
}

// step moves the wall reading of a time that has a monotonic one. The time package cannot move one
// without the other. Its internal layout, which the test checks, keeps the wall seconds above 30
// bits of nanoseconds.
func step(t time.Time, seconds int64) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(seconds) << 30
	return t
}

// Set steps the clock of the processes that read the file. They see it within readEvery.
func Set(path string, offset time.Duration) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(offset.String()), 0o600); err != nil {
		return fmt.Errorf("skew: %w", err)
	}
	if err := os.Rename(next, path); err != nil { // never half a text
		return fmt.Errorf("skew: %w", err)
	}
	return nil
}
