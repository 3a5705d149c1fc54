package hold

import (
	"context"
	"testing"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/robots"
)

// A host outside our shards is shared with all fetchers.
func TestPaceAtAHost(t *testing.T) {
	h := New(Config{Clock: clock.System{}, ShardOf: func(host string) int { return len(host) }})
	h.fetchers = 4
	h.shards[3] = &shard{}
	pace := func(rate float64, connections int) frontier.Pace {
		return frontier.Pace{Rate: rate, Connections: connections}
	}
	if got := h.paceAt("abc", pace(2, 2)); got != (pace(2, 2)) {
		t.Errorf("pace at an own host is %+v", got)
	}
	if got := h.paceAt("ab", pace(2, 2)); got != (pace(0.5, 1)) {
		t.Errorf("pace at another's host is %+v", got)
	}
}

// A robots.txt delay applies to all fetchers together, also at a redirect's target.
func TestDelayAtAHost(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		host        string
		delay, want time.Duration
	}{
		"own":       {"abc", 10 * time.Second, 10 * time.Second},
		"another's": {"ab", 10 * time.Second, 20 * time.Second},
		"bounded":   {"ab", time.Hour, 2 * robots.MaxDelay},
	} {
		h := New(Config{Clock: clock.NewManual(now), MaxBytes: 1 << 20,
			ShardOf: func(host string) int { return len(host) }})
		h.fetchers = 2
		s := &shard{hold: h}
		h.shards[3] = s
		add := func(host string) *Task {
			task := &Task{shard: s}
			task.item = frontier.Item{Customer: "a", Job: ids.ID{1}, Host: host, Value: task}
			h.frontier.Add(&task.item, now)
			return task
		}
		add(c.host)
		task, _ := h.nextTurn()
		task.DelayHost(c.host, c.delay)
		add(c.host)
		if task, wait := h.nextTurn(); task != nil || wait != c.want {
			t.Errorf("%s: the next start comes after %v", name, wait)
		}
		target := "www." + c.host + ".test" // not in our shards
		if !task.MayHop(target, frontier.Pace{}, time.Second) {
			t.Errorf("%s: a redirect leads nowhere", name)
		}
		h.frontier.Done(&task.item, frontier.Answer{}, now)
		add(target)
		if _, wait := h.nextTurn(); wait != 2*time.Second {
			t.Errorf("%s: behind a redirect the next start comes after %v", name, wait)
		}
	}
}

// A task laid down and taken up again ends in its time, and can run while too much is held.
func TestTakenUpTasksAreTimed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	h := New(Config{Clock: clock.NewManual(now), MaxBytes: 1 << 20})
	s := &shard{hold: h, releasing: true, finishBy: now, until: now.Add(time.Hour), tasks: 2}
	task := &Task{shard: s, task: &model.Task{Customer: "a"}, kept: 100}
	s.open = map[ids.ID]map[uint32]*Task{{1}: {0: task}}
	task.item = frontier.Item{Customer: "a", Job: ids.ID{1}, Host: "a.test", Value: task}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitForTurn(task, Outcome{Again: true, Begun: true, Until: now.Add(time.Minute)}, now)
	if !task.down {
		t.Fatal("the task is not laid down")
	}
	h.keepShard(s)
	_, timed := h.timed[task]
	if _, keeping := h.keeping[task]; task.down || !timed || !keeping {
		t.Errorf("down %v, timed %v, keeping %v", task.down, timed, keeping)
	}
}

// A shard's end releases what its tasks keep, and a turn that is still running keeps nothing.
func TestBytesOfAShardThatGoes(t *testing.T) {
	h := New(Config{Clock: clock.System{}, MaxBytes: 1 << 20})
	ctx, cancel := context.WithCancel(t.Context())
	s := &shard{hold: h, ctx: ctx, cancel: cancel}
	task := &Task{shard: s, task: &model.Task{Customer: "a"}}
	s.open = map[ids.ID]map[uint32]*Task{{1}: {0: task}}
	task.KeepBytes(100)
	h.mu.Lock()
	h.dropShard(s)
	h.mu.Unlock()
	task.KeepBytes(50) // its turn does not know yet
	if h.held != 0 || task.kept != 0 {
		t.Errorf("%d bytes are held, %d kept", h.held, task.kept)
	}
}
