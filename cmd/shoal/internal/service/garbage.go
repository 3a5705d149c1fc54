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

// collectRoom is how many bytes, at least, the heap may grow between collections. The loop's live
// heap is small, some 15 MB, and it allocates some kilobytes a page. Go's default lets the heap
// double, and would collect ten times a second. A large heap may still double. Twice the room would
// save one percent of the loop's time, but an upload would take 90 MB.
const collectRoom = 32 << 20

// collectLessOften applies collectRoom to the whole process, unless the operator has set GOGC.
func collectLessOften() {
	if os.Getenv("GOGC") == "" {
		afterCollection(debug.SetGCPercent(100))
	}
}

// afterCollection sets GOGC, the share of the live heap by which it may grow, now and after each
// collection. old is the current share.
func afterCollection(old int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	share := growth(live[0].Value.Uint64(), collectRoom)
	if share > old+old/8 || share < old-old/8 { // each change briefly stops the world
		debug.SetGCPercent(share)
		old = share
	}
	// The cleanup runs after a collection has found the value unreachable.
	runtime.AddCleanup(new([64]byte), afterCollection, old)
}

// growth is the GOGC, in percent, at which a live heap may grow by room, but at least 100.
func growth(live, room uint64) int {
	return int(max(100, 100*room/max(live, 1<<20)))
}

// collectInTime makes the process collect before its control group runs out of memory, unless the
// operator has set GOMEMLIMIT. Otherwise a heap half alive might double past the limit, and the
// kernel would kill the process. files is the machine's file system.
func collectInTime(files fs.FS) {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := memoryOfGroup(files); limit < math.MaxInt64 {
			debug.SetMemoryLimit(limit - limit/8) // a process needs memory beyond Go's heap
		}
	}
}

// memoryOfGroup is the memory limit, in bytes, of the process's control group and its parents;
// math.MaxInt64: no limit. In a container the group's own files may be at the root of the
// hierarchy.
func memoryOfGroup(files fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(files, "proc/self/cgroup") // only Linux has them
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
