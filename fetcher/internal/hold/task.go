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

// tellEvery is how often the log may tell of skipped records.
const tellEvery = time.Minute

// fetchMost is how many tasks are read at once.
const fetchMost = 512

// Task is a task held open: from its arrival until the log has accepted its final page. Whoever has
// its turn works on its Unit alone. Its methods may be called during a turn.
type Task struct {
	Unit Unit

	task    *model.Task
	item    frontier.Item
	shard   *shard
	refused bool // it cannot be begun
	// What follows is guarded by mu.
	done  bool      // its final page is in the outbox
	begun bool      // while it waits: a request of its page has been made
	down  bool      // its shard is being released, and its page is another fetcher's to begin
	kept  int64     // bytes of pages that wait for another one of their unit
	until time.Time // while it waits: its unit's time is over then; zero: it has no limit
	// abandon ends the turn of a trial, whose caller may go away; nil: there is none.
	abandon context.CancelCauseFunc
}

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

// AwaitTurn is the next task to work on; nil when ctx has ended. Its turn ends with EndTurn.
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

// nextTurn is the task whose turn it is, or how long to wait for one.
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

// nextItem is the item whose turn it is, or how long to wait for one. It needs mu.
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
	fewLooks  = 8                     // tasks looked at while others may have their turn
	mostLooks = 256                   // and while nobody else may
	lookAgain = 50 * time.Millisecond // where none of these may be asked for
)

// nextKept is Next for tasks that keep something while too much is held, by all or by their
// customer. Their end gives it back. It looks at a few of them, drawn by lot. It needs mu.
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

// BeginTurn is what a turn runs under. It ends with the shard, and a trial's with its run, too, for
// ErrAbandoned: who waited for it is gone. Other runs that are stopped get what they have asked
// for.
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

// Outcome is what a turn led to: a page, another turn, or both. The zero Outcome is neither: the
// shard is not ours any more, or the process ends.
type Outcome struct {
	Record []byte  // of the page; nil: there is none
	Kept   Keeping // bodies that it names; nil: none
	Final  bool    // the task ends with it
	Answer frontier.Answer

	Again bool          // the task goes on, with
	Begun bool          // a page of which a request has been made
	Host  string        // asked next; "": none
	Pace  frontier.Pace // of the scraper, at any host
	Open  bool          // a connection to the host waits for it
	Wait  time.Duration // before it, at least
	Until time.Time     // when its unit's time is over; zero: it has no limit
}

// EndTurn does what a turn led to. It comes to nothing when the shard is not ours any more.
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
	notify(h.wake)
	if s.gone {
		return
	}
	// A process that was suspended wakes up here with an answer that is another holder's to give by
	// now.
	if !s.isFresh(now) || o.Record == nil && !o.Again {
		h.lapseShards(s)
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

// waitForTurn lets a task wait for its next request, unless that is another fetcher's to make. It
// needs mu.
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
		h.layDownTask(t) // it may be taken up again, in its time and with what it keeps
		h.releaseWhenDone(s)
		return
	}
	h.frontier.Resume(&t.item, now.Add(o.Wait), now)
}

// IsFresh says whether the shard's lease still runs: a request may start.
func (t *Task) IsFresh() bool {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.shard.isFresh(h.config.Clock.Now())
}

// MayHop says whether a request may start now at a host that a redirect leads to, whose pace is the
// scraper's at any host. It is counted there then. A host that nobody asks is known from then on
// only, so the delay that its robots.txt asks for is set behind it.
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

// DelayHost lets at least a time pass between two starts at a host, whichever fetcher's.
func (t *Task) DelayHost(host string, delay time.Duration) {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frontier.Delay(host, h.delayAt(host, delay))
}

// fetchersAt is how many fetchers ask a host: a domain whose shard is somebody else's is shared
// with all. It needs mu.
func (h *Hold) fetchersAt(host string) int {
	if h.fetchers > 1 && h.shards[uint16(h.config.ShardOf(host))] == nil {
		return h.fetchers
	}
	return 1
}

// paceAt is what a scraper gets of one host here. It needs mu.
func (h *Hold) paceAt(host string, pace frontier.Pace) frontier.Pace {
	fetchers := h.fetchersAt(host)
	pace.Rate /= float64(fetchers)
	if pace.Connections > 0 {
		pace.Connections = max(1, pace.Connections/fetchers)
	}
	return pace
}

// delayAt is what has to pass between two starts here, for what a host's robots.txt asks of all
// fetchers together. It needs mu.
func (h *Hold) delayAt(host string, delay time.Duration) time.Duration {
	return min(delay, robots.MaxDelay) * time.Duration(h.fetchersAt(host))
}
