// Package shortdisk makes disks appear as full as a test says while the process runs.
package shortdisk

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// File is the environment variable that names the file with the free bytes of every disk. It is for
// tests only and not in any help text.
const File = "SHOAL_FREE_BYTES"

// FromEnv returns a function for the free bytes of a directory's disk. Without the variable, or the
// file, it is the system's. An invalid number panics, so that an empty disk is never taken for a
// full one.
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

// Set sets the free bytes of every disk, as seen by the processes that read the file.
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
