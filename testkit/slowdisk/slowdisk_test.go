package slowdisk

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWritesTakeAsLongAsTheFileSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delay")
	before := FromEnv(func(string) string { return path })
	before() // without the file
	const delay = 20 * time.Millisecond
	if err := Set(path, delay); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	before()
	if took := time.Since(began); took < delay {
		t.Errorf("a write takes %v longer, want %v", took, delay)
	}
	FromEnv(func(string) string { return "" })() // without the variable
}

func TestSenselessDelaysPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "delay")
	for _, text := range []string{"", "5", "-1s", "slow"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", text)
				}
			}()
			FromEnv(func(string) string { return path })()
		}()
	}
}
