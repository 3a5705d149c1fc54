// Package allocs guards the number of allocations in code that runs for every page. Tests compare
// it with a number recorded beside them. Counts, unlike times, are the same on every machine. It
// owns the comparison; each package decides which functions are worth it.
//
// The race detector allocates for itself, so tests that use this package exclude it with the build
// tag !race.
package allocs

import (
	"math"
	"runtime"
	"testing"
)

// slack is how much a count may differ without any change: a collection now and then drops pooled
// memory.
const slack = 0.05

// calls is how many calls the average is taken over.
const calls = 200

// Check fails if a call allocates more often than recorded, or so much less often that the record
// is stale. It runs the call on one processor, and alone.
func Check(t testing.TB, name string, recorded float64, call func()) {
	t.Helper()
	compare(t, name, recorded, testing.AllocsPerRun(calls, call))
}

// rounds is how often CheckEach runs the work, at most.
const rounds = 3

// CheckEach is Check for work done by goroutines. work does it n times; the allocations of the
// whole process count, divided by n. On a busy machine more goroutines wait at once, which adds
// some, so the round with the fewest counts.
func CheckEach(t testing.TB, name string, recorded float64, n int, work func()) {
	t.Helper()
	fewest := math.Inf(1)
	for round := 0; round < rounds && fewest > recorded*(1+slack); round++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work()
		runtime.ReadMemStats(&after)
		fewest = min(fewest, float64(after.Mallocs-before.Mallocs)/float64(n))
	}
	compare(t, name, recorded, fewest)
}

func compare(t testing.TB, name string, recorded, counted float64) {
	t.Helper()
	switch most, least := recorded*(1+slack), recorded*(1-slack); {
	case counted > most:
		t.Errorf("%s: %.4g allocations, %.4g were recorded: each page pays for them", name, counted,
			recorded)
	case counted < least:
		t.Errorf("%s: %.4g allocations, %.4g were recorded: record the smaller number, so "+
			"that it stays", name, counted, recorded)
	}
}
