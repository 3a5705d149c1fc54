package hold

import (
	"slices"
	"time"
)

// A shard is released in order: begun pages are finished and published, all other tasks are laid
// down, then the shard is dropped. No request is repeated, and nobody waits for slow hosts.
// Laid-down tasks are not dropped. Markers still name them, and they are taken up again if the
// leader takes the release back.

// releaseShard begins to release a shard. Begun pages may start requests for one more time-out. It
// needs mu.
func (h *Hold) releaseShard(s *shard) {
	if !s.releasing {
		s.releasing, s.finishBy = true, h.config.Clock.Now().Add(h.config.Timeout)
		h.layDownTasks(s, func(t *Task) bool { return !t.begun })
	}
	h.releaseWhenDone(s)
}

// keepShard cancels a release, unless the process stops. It needs mu.
func (h *Hold) keepShard(s *shard) {
	if !s.releasing || h.leaving {
		return
	}
	s.releasing = false
	now := h.config.Clock.Now()
	for _, tasks := range s.open {
		for _, t := range tasks {
			if h.takeUpTask(t) {
				h.frontier.Add(&t.item, now)
			}
		}
	}
	h.wake.Raise()
}

// layDownTasks lays down the waiting tasks that which selects. It needs mu.
func (h *Hold) layDownTasks(s *shard, which func(*Task) bool) {
	now := h.config.Clock.Now()
	for _, tasks := range s.open {
		for _, t := range tasks {
			if which(t) && h.frontier.Remove(&t.item, now) {
				h.layDownTask(t)
			}
		}
	}
	h.releaseWhenDone(s)
}

// layDownTask lays down a task that is outside the frontier. It needs mu.
func (h *Hold) layDownTask(t *Task) {
	t.down = true
	t.shard.down++
}

// takeUpTask takes up a task; false if it is not laid down. It needs mu.
func (h *Hold) takeUpTask(t *Task) bool {
	if !t.down {
		return false
	}
	t.down = false
	t.shard.down--
	return true
}

// releaseWhenDone drops a releasing shard once no page is begun and all pages are published. It
// needs mu.
func (h *Hold) releaseWhenDone(s *shard) {
	if s.releasing && !s.gone && s.tasks == s.down && len(s.outbox) == 0 && !s.publishing {
		h.counts.released.Add(1)
		h.dropShard(s)
		h.beatNow.Raise()
	}
}

// lapseShards drops all shards whose lease has lapsed. They lapse together when the process was
// suspended. Whoever sees it first tells of all in one line. It needs mu.
func (h *Hold) lapseShards(now time.Time) {
	var numbers []int
	for number, s := range h.shards {
		if !s.isFresh(now) {
			numbers = append(numbers, int(number))
			h.dropShard(s)
		}
	}
	if len(numbers) == 0 {
		return
	}
	h.counts.lapsed.Add(uint64(len(numbers)))
	slices.Sort(numbers)
	h.config.Logger.Warn("fetcher: leases lapsed", "count", len(numbers), "shards", numbers)
}

// dropShard drops a shard with all its open tasks, and ends its requests. It needs mu.
func (h *Hold) dropShard(s *shard) {
	if s.gone {
		return
	}
	s.gone = true
	s.cancel()
	delete(h.shards, s.number)
	now := h.config.Clock.Now()
	for _, tasks := range s.open {
		for _, t := range tasks {
			h.frontier.Remove(&t.item, now)
			h.forgetBytes(t)
		}
	}
	h.open -= s.tasks
	for _, out := range s.outbox {
		h.countBytes(-out.bytes())
	}
	s.open, s.tasks, s.down, s.outbox = nil, 0, 0, nil
}
