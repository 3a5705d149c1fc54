// Package allocs guards the number of allocations of what is done for every page: tests hold it
// against the number that was recorded beside them. Numbers, not times, since they are the same on
// every machine. It owns the comparison; which functions are worth it is their packages' to say.
//
// The race detector allocates for itself: tests that use this package leave it out by the build tag
// !race.
package allocs

import (
	"math"
	"runtime"
	"testing"
)

// slack is what a number may differ by without anybody having changed anything: memory that is
// pooled is lost to a collection now and then.
const slack = 0.05

// calls are how many the average is taken of.
const calls = 200

// Check fails when a call allocates more often than recorded, or so much less often that the record
// means nothing any more. The call is made on one processor, and without others beside it.
func Check(t testing.TB, name string, recorded float64, call func()) {
	t.Helper()
	compare(t, name, recorded, testing.AllocsPerRun(calls, call))
}

// rounds are how often CheckEach has work done, at most.
const rounds = 3

// CheckEach is Check for work that goroutines of its own do. work does it n times, and the
// allocations of the whole process count, by n. A busy machine lets more goroutines wait at once,
// which adds some, so the round with the fewest counts.
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
