package service

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
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

func TestMemoryOfGroup(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {nil, math.MaxInt64},
		"a container": {map[string]string{"proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"one without a bound": {map[string]string{"proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n"}, math.MaxInt64},
		"a group in a smaller one": {map[string]string{"proc/self/cgroup": "0::/a.slice/b\n",
			"sys/fs/cgroup/a.slice/memory.max":   "5\n",
			"sys/fs/cgroup/a.slice/b/memory.max": "9\n"}, 5},
		"a container's name": {map[string]string{"proc/self/cgroup": "0::/docker/x\n",
			"sys/fs/cgroup/memory.max": "7\n"}, 7},
		"version 1": {map[string]string{
			"proc/self/cgroup":                             "7:cpu,cpuacct:/x\n5:memory:/x\n0::/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "8\n"}, 8},
		"no number": {map[string]string{"proc/self/cgroup": "0::/\nx\n",
			"sys/fs/cgroup/memory.max": "-1\n"}, math.MaxInt64},
	} {
		files := fstest.MapFS{}
		for path, text := range c.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memoryOfGroup(files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestCollectInTime(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	files := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("8589934592\n")}}
	t.Setenv("GOMEMLIMIT", "1GiB")
	collectInTime(files)
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the operator's own measure becomes %d", got)
	}
	t.Setenv("GOMEMLIMIT", "")
	collectInTime(files)
	if got := debug.SetMemoryLimit(-1); got != 7<<30 {
		t.Errorf("%d of 8 GiB", got)
	}
}
