package hold

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/robots"
	"shoal.dev/shoal/pkg/stream"
)

// ErrAbandoned ends the turn of a trial that nobody waits for any more.
var ErrAbandoned = errors.New("fetcher: the trial has ended")

// tellEvery is the least time between two log lines about skipped records.
const tellEvery = time.Minute

// fetchMost is how many tasks are read at once.
const fetchMost = 512

// Task is a task held open: from its arrival until the log has accepted its final page. Only the
// holder of its turn works on its Unit. Its methods may be called during a turn.
type Task struct {
	Unit Unit

	task    *model.Task
	item    frontier.Item
	shard   *shard
	refused bool // the task cannot be begun
	// mu guards the fields below.
	done  bool      // its final page is in the outbox
	begun bool      // while it waits: a request of its page was made
	down  bool      // laid down: another fetcher is to begin its page
	kept  int64     // bytes of pages that wait for another page of their unit
	until time.Time // while it waits: end of its unit's time; zero: no limit
	// abandon ends the turn of a trial, whose caller may go away; nil: no such turn.
	abandon context.CancelCauseFunc
}

// readTasks reads the shard's tasks until it is dropped.
func (h *Hold) readTasks(s *shard) {
	defer s.reader.Close()
	failures := 0
	for {
		messages, err := s.reader.Fetch(s.ctx, fetchMost)
		switch {
		case s.ctx.Err() != nil:
			return
		// the log is closed, or another process has opened the shard
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

// skipRecords counts records that can never be read. Markers reveal their units. It needs mu.
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

// takeInTasks puts tasks into the frontier and markers into the outbox, in order.
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
	h.wake.Raise()
}

// admitTask admits a task, unless it is a repeat or late, its seq is open, or too many tasks are. A
// task whose final page is not accepted yet makes way for its seq's next dispatch. Leaders publish
// a shard's tasks in the order of their numbers, which never count back, and report their progress
// in leases and markers. A number not above the newest is a repeat by the log, or comes from a
// replaced leader. It needs mu.
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
		h.postPage(t, t.Unit.Refuse(), nil, true)
		return
	}
	if s.releasing {
		h.layDownTask(t)
		return
	}
	h.frontier.Add(&t.item, h.config.Clock.Now())
}

// newTask begins a task of a shard.
func (h *Hold) newTask(s *shard, task *model.Task) *Task {
	plan := h.config.Plan(task)
	t := &Task{Unit: plan.Unit, task: task, shard: s, refused: plan.Refused}
	t.item = frontier.Item{Customer: task.Customer, Job: task.Job, Host: plan.Host,
		Pace: plan.Pace, Value: t}
	return t
}

// closeTask ends a task, once the log has accepted its final page. It needs mu.
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

// AwaitTurn returns the next task to work on; nil if ctx has ended. EndTurn ends its turn.
func (h *Hold) AwaitTurn(ctx context.Context) *Task {
	for ctx.Err() == nil {
		task, wait := h.nextTurn()
		if task != nil {
			return task
		}
		var due <-chan time.Time
		if wait != frontier.Forever {
			due = h.config.Clock.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-h.wake:
		case <-due:
		}
	}
	return nil
}

// nextTurn returns the task whose turn it is, or how long to wait for one.
func (h *Hold) nextTurn() (*Task, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it, wait := h.nextItem(h.config.Clock.Now())
	if it == nil {
		return nil, wait
	}
	task := it.Value.(*Task)
	delete(h.timed, task)
	delete(h.keeping, task)
	return task, 0
}

// nextItem returns the item whose turn it is, or how long to wait for one. It needs mu.
func (h *Hold) nextItem(now time.Time) (*frontier.Item, time.Duration) {
	if h.isFull() {
		return h.nextKept(mostLooks, now)
	}
	if h.kept = !h.kept && len(h.keeping) > 0; h.kept {
		if it, _ := h.nextKept(fewLooks, now); it != nil {
			return it, 0
		}
	}
	it, wait := h.frontier.Next(now)
	if it != nil || len(h.keeping) == 0 {
		return it, wait
	}
	it, again := h.nextKept(mostLooks, now)
	return it, min(wait, again)
}

// Bounds of nextKept.
const (
	fewLooks  = 8                     // tasks checked while others may have their turn
	mostLooks = 256                   // tasks checked while nobody else may
	lookAgain = 50 * time.Millisecond // when none of them may start
)

// nextKept is Next for tasks that keep pages while too many bytes are held, by all or by their
// customer. Finishing them releases bytes. It checks a few of them at random. It needs mu.
func (h *Hold) nextKept(looks int, now time.Time) (*frontier.Item, time.Duration) {
	full, wait := h.isFull(), frontier.Forever
	for t := range h.keeping {
		if looks--; looks < 0 {
			return nil, lookAgain
		}
		if !full && !h.frontier.Rests(t.task.Customer) {
			continue
		}
		if h.frontier.TakeItem(&t.item, !full, now) {
			return &t.item, 0
		}
		wait = lookAgain
	}
	return nil, wait
}

// BeginTurn returns the context of a turn, which ends with the shard. A trial's also ends with its
// run, with ErrAbandoned, because its caller is gone. Other stopped runs still get what they have
// requested.
func (t *Task) BeginTurn(trial bool) (ctx context.Context, end func()) {
	if !trial {
		return t.shard.ctx, func() {}
	}
	ctx, abandon := context.WithCancelCause(t.shard.ctx)
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	t.abandon = abandon
	return ctx, func() { abandon(nil) }
}

// Outcome is the result of a turn: a page, another turn, or both. The zero Outcome is neither: the
// lease has lapsed, or the process ends.
type Outcome struct {
	Record []byte  // of the page; nil: no page
	Kept   Keeping // bodies that it refers to; nil: none
	Final  bool    // the page ends the task
	Answer frontier.Answer

	Again bool          // the task goes on
	Begun bool          // a request of its page was made
	Host  string        // of the next request; "": none
	Pace  frontier.Pace // of the scraper, at any host
	Open  bool          // a connection to the host is open
	Wait  time.Duration // at least, before the next request
	Until time.Time     // end of the unit's time; zero: no limit
}

// EndTurn applies a turn's outcome. It has no effect once the shard is lost.
func (t *Task) EndTurn(o Outcome) {
	h := t.shard.hold
	var room [4]string
	h.mu.Lock()
	t.endTurn(o)
	left := h.frontier.Left(room[:0])
	h.mu.Unlock()
	for _, host := range left {
		h.config.Leave(host)
	}
}

// endTurn needs mu.
func (t *Task) endTurn(o Outcome) {
	s, h := t.shard, t.shard.hold
	t.abandon = nil
	now := h.config.Clock.Now()
	h.frontier.Done(&t.item, o.Answer, now)
	h.wake.Raise()
	if s.gone {
		return
	}
	if o.Record == nil && !o.Again {
		s.until = now // the turn saw the lease's end, even if it was renewed since
	}
	// A suspended process may wake up here with an answer that another holder must now give.
	if !s.isFresh(now) {
		h.lapseShards(now)
		return
	}
	if o.Record != nil {
		h.postPage(t, o.Record, o.Kept, o.Final)
	}
	if o.Again {
		if t.item.Host, t.item.Pace = o.Host, (frontier.Pace{}); o.Host != "" {
			t.item.Pace = h.paceAt(o.Host, o.Pace)
		}
		t.item.Open = o.Open
		h.waitForTurn(t, o, now)
	}
}

// waitForTurn lets a task wait for its next request, or lays it down if another fetcher must make
// that. It needs mu.
func (h *Hold) waitForTurn(t *Task, o Outcome, now time.Time) {
	s := t.shard
	t.begun, t.until = o.Begun, o.Until
	if !t.until.IsZero() || t.kept > 0 {
		h.timed[t] = struct{}{}
	}
	if t.kept > 0 {
		h.keeping[t] = struct{}{}
	}
	if s.releasing && (!t.begun || !now.Before(s.finishBy)) {
		h.layDownTask(t) // it may be taken up again, with its time and kept pages
		h.releaseWhenDone(s)
		return
	}
	h.frontier.Resume(&t.item, now.Add(o.Wait), now)
}

// IsFresh says whether a request may start: the shard's lease still runs.
func (t *Task) IsFresh() bool {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.shard.isFresh(h.config.Clock.Now())
}

// MayHop says whether a request may start now at the host of a redirect, at the scraper's pace, and
// counts it if so. An unknown host is only remembered from then on, so its robots.txt delay is set
// afterwards.
func (t *Task) MayHop(host string, pace frontier.Pace, delay time.Duration) bool {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	ok := h.frontier.Hop(&t.item, host, h.paceAt(host, pace), h.config.Clock.Now())
	if ok && delay > 0 {
		h.frontier.Delay(host, h.delayAt(host, delay))
	}
	return ok
}

// DelayHost sets the least time between two starts at a host, over all fetchers.
func (t *Task) DelayHost(host string, delay time.Duration) {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frontier.Delay(host, h.delayAt(host, delay))
}

// fetchersAt returns how many fetchers may use a host: all of them if its shard is not ours, since
// redirects lead there from any shard. It needs mu.
func (h *Hold) fetchersAt(host string) int {
	if h.fetchers > 1 && h.shards[uint16(h.config.ShardOf(host))] == nil {
		return h.fetchers
	}
	return 1
}

// paceAt returns this fetcher's part of a scraper's pace at a host. It needs mu.
func (h *Hold) paceAt(host string, pace frontier.Pace) frontier.Pace {
	fetchers := h.fetchersAt(host)
	pace.Rate /= float64(fetchers)
	if pace.Connections > 0 {
		pace.Connections = max(1, pace.Connections/fetchers)
	}
	return pace
}

// delayAt returns the delay between two starts of this fetcher that gives all fetchers together the
// delay asked for. It needs mu.
func (h *Hold) delayAt(host string, delay time.Duration) time.Duration {
	return min(delay, robots.MaxDelay) * time.Duration(h.fetchersAt(host))
}
