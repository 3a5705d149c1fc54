package service

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// collectRoom is by how many bytes the heap may grow, at least, from one collection to the next.
// The loop's live heap is small, some 15 MB, and it allocates some kilobytes a page. Go's own
// measure lets the heap double, and would collect it ten times a second. A large heap may double as
// ever.
const collectRoom = 64 << 20

// collectLessOften sets that measure for the whole process, unless its operator has set one.
func collectLessOften() {
	if os.Getenv("GOGC") == "" {
		afterCollection(debug.SetGCPercent(100))
	}
}

// afterCollection sets the share of the live heap by which it may grow, now and after each
// collection. old is the share so far.
func afterCollection(old int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	share := growth(live[0].Value.Uint64(), collectRoom)
	if share > old+old/8 || share < old-old/8 { // each change stops the world for a moment
		debug.SetGCPercent(share)
		old = share
	}
	// The cleanup runs once a collection has found that nobody has the value.
	runtime.AddCleanup(new([64]byte), afterCollection, old)
}

// growth is the share of a live heap, in percent, by which it may grow so that there is room.
func growth(live, room uint64) int {
	return int(max(100, 100*room/max(live, 1<<20)))
}
