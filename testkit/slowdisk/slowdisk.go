// Package slowdisk delays the writes that a process waits for, like a network disk in a bad minute.
// A test sets the delay while the process runs.
package slowdisk

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// File is the environment variable that names the file with the delay of each write, a Go duration
// ("700ms"). It is for tests only and not in any help text.
const File = "SHOAL_WRITE_DELAY"

// FromEnv returns the function to call before each write. Without the variable, or the file, it
// does nothing. An invalid delay panics, so that a fast disk is never taken for a slow one.
func FromEnv(getenv func(string) string) func() {
	path := getenv(File)
	if path == "" {
		return func() {}
	}
	return func() {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return
		}
		var delay time.Duration
		if err == nil {
			delay, err = time.ParseDuration(strings.TrimSpace(string(text)))
		}
		if err != nil || delay < 0 {
			panic(fmt.Sprintf("slowdisk: %s: %q: want a duration: %v", File, text, err))
		}
		<-time.After(delay)
	}
}

// Set sets the delay of every write, for the processes that read the file.
func Set(path string, delay time.Duration) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(delay.String()), 0o600); err != nil {
		return fmt.Errorf("slowdisk: %w", err)
	}
	if err := os.Rename(next, path); err != nil { // never half a text
		return fmt.Errorf("slowdisk: %w", err)
	}
	return nil
}
