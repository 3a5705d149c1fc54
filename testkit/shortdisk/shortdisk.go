// Package shortdisk makes disks look as full as a test says while the process runs.
package shortdisk

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// File is the environment variable that names the file with the bytes that every disk has left. It
// is for tests only and stands in no help text.
const File = "SHOAL_FREE_BYTES"

// FromEnv is how many bytes the disk of a directory has left. Without the variable, or the file, it
// is what the system says. A number that makes no sense panics, so that a test never takes an empty
// disk for a full one.
func FromEnv(getenv func(string) string,
	system func(dir string) (uint64, bool)) func(dir string) (uint64, bool) {
	path := getenv(File)
	if path == "" {
		return system
	}
	return func(dir string) (uint64, bool) {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return system(dir)
		}
		var free uint64
		if err == nil {
			free, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		}
		if err != nil {
			panic(fmt.Sprintf("shortdisk: %s: %q: want a number of bytes: %v", File, text, err))
		}
		return free, true
	}
}

// Set has every disk of the processes that look at the file have so many bytes left from now on.
func Set(path string, free uint64) error {
	next := path + ".next"
	if err := os.WriteFile(next, strconv.AppendUint(nil, free, 10), 0o600); err != nil {
		return fmt.Errorf("shortdisk: %w", err)
	}
	if err := os.Rename(next, path); err != nil { // never half a number
		return fmt.Errorf("shortdisk: %w", err)
	}
	return nil
}
