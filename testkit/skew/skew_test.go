package skew

import (
	"path/filepath"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

func TestAStepMovesTheWallAlone(t *testing.T) {
	for _, offset := range []time.Duration{10 * time.Minute, -10 * time.Minute, 0} {
		at := time.Now()
		stepped := step(at, int64(offset/time.Second))
		if got := stepped.Round(0).Sub(at.Round(0)); got != offset {
			t.Errorf("the wall moved by %v, want %v", got, offset)
		}
		if got := stepped.Sub(at); got != 0 {
			t.Errorf("the monotonic reading moved by %v", got)
		}
		if stepped.UnixNano() != at.Add(offset).UnixNano() || stepped.Location() != at.Location() {
			t.Errorf("%v stepped by %v is %v", at, offset, stepped)
		}
	}
}

func TestTheFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offset")
	c := FromEnv(func(string) string { return path })
	begin := c.Now()
	if off := time.Until(begin.Round(0)); off > time.Second || off < -time.Minute {
		t.Errorf("without a file the clock is off by %v", off)
	}
	for _, offset := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		if err := Set(path, offset); err != nil {
			t.Fatal(err)
		}
		deadline := time.After(20 * time.Second)
		for {
			now := c.Now()
			if off := now.Round(0).Sub(time.Now().Round(0)); off > offset-time.Second &&
				off < offset+time.Second {
				if passed := now.Sub(begin); passed < 0 || passed > time.Minute {
					t.Errorf("the step shows in a duration: %v", passed)
				}
				break
			}
			select {
			case <-c.After(time.Millisecond):
			case <-deadline:
				t.Fatalf("the clock does not step to %v", offset)
			}
		}
	}
}

func TestWithoutTheVariableItIsTheMachinesClock(t *testing.T) {
	if c := FromEnv(func(string) string { return "" }); c != (clock.System{}) {
		t.Errorf("%T", c)
	}
}

func TestNonsensePanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offset")
	if err := Set(path, 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("half a second was taken")
		}
	}()
	FromEnv(func(string) string { return path }).Now()
}
