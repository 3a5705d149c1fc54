package hold

import (
	"context"
	"errors"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/model"
)

// ErrAbandoned ends the turn of a trial that nobody waits for any more.
var ErrAbandoned = errors.New("fetcher: the trial has ended")

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

// newTask begins a task of a shard.
func (h *Hold) newTask(s *shard, task *model.Task) *Task {
	plan := h.config.Plan(task)
	t := &Task{Unit: plan.Unit, task: task, shard: s, refused: plan.Refused}
	t.item = frontier.Item{Customer: task.Customer, Job: task.Job, Host: plan.Host,
		Pace: plan.Pace, Value: t}
	return t
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
	Record []byte // of the page; nil: there is none
	Final  bool   // the task ends with it
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
		h.postPage(t, o.Record, o.Final)
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
	if s.releasing && (!t.begun || !now.Before(s.finishBy)) {
		h.layDownTask(t)
		h.releaseWhenDone(s)
		return
	}
	if !t.until.IsZero() || t.kept > 0 {
		h.timed[t] = struct{}{}
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
// scraper's at any host. It is counted there then.
func (t *Task) MayHop(host string, pace frontier.Pace) bool {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.frontier.Hop(&t.item, host, h.paceAt(host, pace), h.config.Clock.Now())
}

// DelayHost lets at least a time pass between two starts at a host.
func (t *Task) DelayHost(host string, delay time.Duration) {
	h := t.shard.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frontier.Delay(host, delay)
}

// paceAt is what a scraper gets of one host: a domain whose shard is somebody else's is shared with
// all fetchers. It needs mu.
func (h *Hold) paceAt(host string, pace frontier.Pace) frontier.Pace {
	if h.fetchers > 1 && h.shards[uint16(h.config.ShardOf(host))] == nil {
		pace.Rate /= float64(h.fetchers)
		if pace.Connections > 0 {
			pace.Connections = max(1, pace.Connections/h.fetchers)
		}
	}
	return pace
}
