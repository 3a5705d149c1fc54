package service

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// collectRoom is by how many bytes the heap may grow, at least, from one collection to the next.
// The loop's live heap is small, some 15 MB, and it allocates some kilobytes a page. Go's own
// measure lets the heap double, and would collect it ten times a second. A large heap may double as
// ever. Twice the room would save one percent of the loop's time, and an upload would take 90 MB.
const collectRoom = 32 << 20

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

// collectInTime has the process collect before its control group is out of memory, unless its
// operator has set a bound. A heap that may double would go over that with half of it alive, and
// the kernel would end the process. files are those of the machine.
func collectInTime(files fs.FS) {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := memoryOfGroup(files); limit < math.MaxInt64 {
			debug.SetMemoryLimit(limit - limit/8) // there is more in a process than Go's memory
		}
	}
}

// memoryOfGroup is the memory, in bytes, that the process's control group and those around it may
// have; math.MaxInt64: as much as there is. In a container the own group's files may stand where
// those of all begin.
func memoryOfGroup(files fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(files, "proc/self/cgroup") // there are none but on Linux
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, name := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[0] == "0" && parts[1] == "": // version 2
		case parts[1] == "memory":
			dir, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Join("/", parts[2]); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(files, path.Join(dir, group, name))
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit > 0 {
				least = min(least, limit)
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}
