package service

import (
	"runtime/debug"
	"testing"
)

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 6400, 1 << 20: 6400, 16 << 20: 400, 64 << 20: 100,
		1 << 30: 100} {
		if got := growth(live, 64<<20); got != want {
			t.Errorf("%d MB may grow by %d%%, want %d%%", live>>20, got, want)
		}
	}
}

func TestTheOperatorsOwnMeasureStays(t *testing.T) {
	t.Setenv("GOGC", "77")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	collectLessOften()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("%d%%", got)
	}
}
