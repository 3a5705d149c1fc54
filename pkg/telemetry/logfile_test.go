package telemetry

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second start goes on where the first one ended
		l, err := OpenLogFile(dir, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"aaaa\n", "bbbb\n", "cccc\n"} {
			if _, err := l.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	newest, err := os.ReadFile(filepath.Join(dir, "shoal.log"))
	if err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(filepath.Join(dir, "shoal.log.1"))
	if err != nil {
		t.Fatal(err)
	}
	if string(newest) != "bbbb\ncccc\n" || string(older) != "cccc\naaaa\n" {
		t.Fatalf("got %q and before it %q", newest, older)
	}
}
