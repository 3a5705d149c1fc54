// Package skew owns a clock whose wall time a test can step while the process runs, as a wrong NTP
// server would. A step leaves the monotonic reading alone: durations between two readings, and so
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
// seconds ("-10m"). It is for tests only and stands in no help text.
const File = "SHOAL_CLOCK_OFFSET"

// readEvery is how old the offset may be that a reading goes by.
const readEvery = 50 * time.Millisecond

// FromEnv is the machine's clock, or one that follows the file when the variable names one. A
// missing file is an offset of 0. One that makes no sense panics, so that a test never takes a run
// without a step for one that survived it.
func FromEnv(getenv func(string) string) clock.Clock {
	path := getenv(File)
	if path == "" {
		return clock.System{}
	}
	return &stepped{path: path, began: time.Now()}
}

// stepped is the machine's clock, off by what the file says.
type stepped struct {
	path  string
	began time.Time

	readAt atomic.Int64 // since began, of the last reading of the file; 0 before the first
	offset atomic.Int64 // seconds
	mu     sync.Mutex   // held by who reads the file
}

// Now is the machine's time with its wall reading stepped.
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
		return // somebody reads it
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

// step moves the wall reading of a time that has a monotonic one. The time package has no way to
// move one without the other. Its own layout, which the test holds this against, keeps the wall
// seconds above 30 bits of nanoseconds.
func step(t time.Time, seconds int64) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(seconds) << 30
	return t
}

// Set steps the clock of the processes that read the file. They see it within a moment of their
// next reading.
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
