package hold

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
)

// pauses are between two tries of a failing call.
var pauses = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// tellEvery is how often the log may tell of skipped records.
const tellEvery = time.Minute

// fetchMost is how many tasks are read at once.
const fetchMost = 512

// shard is a shard that this process holds. mu guards what is below reader.
type shard struct {
	hold   *Hold
	number uint16
	epoch  uint64
	ctx    context.Context // ends when the shard is dropped; requests of its pages end with it
	cancel context.CancelFunc
	wake   chan struct{} // the outbox has something
	reader stream.Reader

	until      time.Time // the lease's end
	releasing  bool      // no page is begun
	finishBy   time.Time // while releasing: until then pages that have begun may start requests
	gone       bool      // dropped
	publishing bool
	// number of the newest dispatch that came, or had been sent by what lease or marker say
	newest uint64
	// open are the tasks that a marker must name: from their arrival until the log has accepted
	// their final page.
	open   map[ids.ID]map[uint32]*Task
	tasks  int        // in open
	down   int        // of them, those laid down
	outbox []outgoing // in the order in which the log gets it
}

func (h *Hold) newShard(held client.ShardEpoch, until time.Time, reader stream.Reader) *shard {
	s := &shard{hold: h, number: held.Shard, epoch: held.Epoch, newest: held.Newest, until: until,
		reader: reader, wake: make(chan struct{}, 1),
		open: map[ids.ID]map[uint32]*Task{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// isFresh says whether the shard may be worked on. It needs mu.
func (s *shard) isFresh(now time.Time) bool { return !s.gone && now.Before(s.until) }

// readTasks takes in what comes, until the shard is dropped.
func (h *Hold) readTasks(s *shard) {
	defer s.reader.Close()
	failures := 0
	for {
		messages, err := s.reader.Fetch(s.ctx, fetchMost)
		switch {
		case s.ctx.Err() != nil:
			return
		// the log is closed, or somebody else has opened the shard
		case errors.Is(err, stream.ErrClosed):
			h.mu.Lock()
			h.dropShard(s)
			h.mu.Unlock()
			return
		case err != nil:
			h.config.Logger.Warn("fetcher: cannot read tasks", "shard", s.number, "error", err)
			failures++
			if !pauses.Wait(s.ctx, h.config.Clock, failures) {
				return
			}
			continue
		}
		failures = 0
		h.takeInTasks(s, messages)
	}
}

// skipRecords notes records that would be refused each time: their units are found by markers. It
// needs mu.
func (h *Hold) skipRecords(records uint64) {
	if records == 0 {
		return
	}
	h.counts.undecodable.Add(records)
	h.untold += records
	if now := h.config.Clock.Now(); h.told.IsZero() || now.Sub(h.told) >= tellEvery {
		h.config.Logger.Warn("fetcher: tasks skipped that cannot be decoded, or have no budget",
			"records", h.untold)
		h.told, h.untold = now, 0
	}
}

// takeInTasks puts tasks into the frontier and markers into the outbox, in their order.
func (h *Hold) takeInTasks(s *shard, messages []stream.Message) {
	type arrival struct {
		task   *Task
		marker *model.Marker
	}
	arrivals := make([]arrival, 0, len(messages))
	skipped := uint64(0)
	for _, m := range messages {
		var task *model.Task
		var marker *model.Marker
		var err error
		read := func() { task, marker, err = stream.DecodeTasks(m.Value) }
		if panicked := h.config.Reader.Run(reading.Page{URL: "a record of tasks", Body: m.Value},
			read); panicked != nil {
			err = panicked
		}
		switch {
		case err != nil || task != nil && task.Budget == 0:
			skipped++
		case marker != nil:
			arrivals = append(arrivals, arrival{marker: marker})
		default:
			arrivals = append(arrivals, arrival{task: h.newTask(s, task)})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skipRecords(skipped)
	if s.gone {
		return
	}
	for _, a := range arrivals {
		if a.marker != nil {
			s.newest = max(s.newest, a.marker.Newest)
			h.enqueue(s, outgoing{marker: a.marker})
		} else {
			h.admitTask(s, a.task)
		}
	}
	notify(h.wake)
}

// admitTask takes a task in, unless it comes again or late, its seq is held open, or too many are.
// One whose final page is not accepted yet gives its place to its next dispatch. Leaders publish a
// shard's tasks in the order of their numbers, which never count back, and say in leases and
// markers how far they are. What is not above the newest is a repeat of the log's, or from a leader
// that has been replaced. It needs mu.
func (h *Hold) admitTask(s *shard, t *Task) {
	job, seq := t.task.Job, t.task.Seq
	held := s.open[job][seq]
	late := t.task.Number <= s.newest
	s.newest = max(s.newest, t.task.Number)
	if late || held != nil && !held.done || held == nil && h.open >= maxOpen {
		h.counts.dropped.Add(1)
		return
	}
	if s.open[job] == nil {
		s.open[job] = map[uint32]*Task{}
	}
	s.open[job][seq] = t
	if held == nil {
		s.tasks++
		h.open++
	}
	if t.refused {
		h.postPage(t, t.Unit.Refuse(), true)
		return
	}
	if s.releasing {
		h.layDownTask(t)
		return
	}
	h.frontier.Add(&t.item, h.config.Clock.Now())
}

// closeTask takes a task whose final page the log has accepted out of the open ones. It needs mu.
func (h *Hold) closeTask(s *shard, t *Task) {
	job, seq := t.task.Job, t.task.Seq
	if s.open[job][seq] != t {
		return
	}
	delete(s.open[job], seq)
	if len(s.open[job]) == 0 {
		delete(s.open, job)
	}
	s.tasks--
	h.open--
}
