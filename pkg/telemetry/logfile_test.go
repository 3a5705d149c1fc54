package telemetry

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLogIsBounded(t *testing.T) {
	for files, want := range map[int][]string{
		1: {"eeee\n"},
		2: {"eeee\n", "cccc\ndddd\n"},
		3: {"eeee\n", "cccc\ndddd\n", "bbbb\ncccc\n"},
	} {
		dir := t.TempDir()
		// the second start continues where the first one ended
		for _, lines := range [][]string{{"aaaa\n", "bbbb\n"},
			{"bbbb\n", "cccc\n", "cccc\n", "dddd\n", "eeee\n"}} {
			l, err := OpenLogFile(dir, 10, files)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if _, err := l.Write([]byte(line)); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := os.ReadDir(dir) // shoal.log, shoal.log.1, ...
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d files: %q, want %q", files, got, want)
		}
	}
}
