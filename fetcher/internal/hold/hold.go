// Package hold owns what this process holds: shards and their leases, open tasks, their turns, and
// what waits for the log. It also releases shards. One lock, private to this package, guards all of
// it. It knows no pages: a task's work is a Unit, and its results are bytes (internal/unit). It
// stores nothing. Markers reveal what never arrives.
package hold

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// maxOpen bounds the open tasks: twice a leader's default window. Further tasks are dropped, and
// the next marker reveals them.
const maxOpen = 1 << 17

// SweepEvery is how often waiting tasks are checked for ended runs.
const SweepEvery = 250 * time.Millisecond

// lookEvery is how often the log is asked for the number of unread records.
const lookEvery = 2 * time.Second

// State is the part of the control plane's state that is read here.
type State interface {
	Job(id ids.ID) *client.Job
	Shards() []*client.Shard
}

// Unit is the work on a task, as its holder sees it.
type Unit interface {
	// Cancel returns the record that answers a task of an ended run. Nobody works on the task then.
	Cancel() []byte
	// Refuse returns the record that answers a task that cannot be begun.
	Refuse() []byte
	// CountPage counts the page of the newest record, which is being passed on.
	CountPage()
}

// Plan says how the work on a task begins.
type Plan struct {
	Unit    Unit
	Refused bool   // the task cannot be begun
	Host    string // of the first request
	Pace    frontier.Pace
}

// Config configures a Hold. All fields are required.
type Config struct {
	Node  string // as registered
	Boot  ids.ID // this start of the process
	Log   stream.Log
	State func() State
	// Heartbeat tells the leader which shards are held, and returns those to hold.
	Heartbeat func(ctx context.Context, beat client.Heartbeat) (client.Leases, error)
	// ShardOf returns the shard of an authority. It must be the same in the whole cluster.
	ShardOf func(host string) int
	// Leave is called with a host at which nothing waits or runs any more.
	Leave func(host string)
	// Plan makes the work on a new task.
	Plan func(task *model.Task) Plan
	// Pages returns the pages passed on since the start, for the leader.
	Pages func() uint64
	// Short says whether the node's disk is below its floor.
	Short func() bool

	Workers    int           // the most concurrent turns
	MaxBytes   int64         // nothing is begun while this many are held
	Timeout    time.Duration // of one try at a page
	StopWithin time.Duration // to release the shards at the end

	Clock  clock.Clock
	Logger *slog.Logger
	Reader *reading.Guard // guards the reading of records
	// Point is called at kill points, for crash tests.
	Point func(name string)
}

// Hold is what one process holds.
type Hold struct {
	config  Config
	wake    wake.Signal // the waiter for a turn must look again
	beatNow wake.Signal // the leader must be told
	running sync.WaitGroup
	counts  counters
	// unread records of our shards' tasks, as the log last said
	behind atomic.Int64

	mu       sync.Mutex // guards the fields below, and those marked so in shards and tasks
	frontier *frontier.Frontier
	told     time.Time // when skipped records were last logged
	untold   uint64    // records skipped since then
	shards   map[uint16]*shard
	opening  map[uint16]*opening
	tailing  map[uint16]bool    // shards whose tasks the log is opening
	beats    uint64             // heartbeats sent
	timed    map[*Task]struct{} // waiting tasks with a time limit, or with kept pages
	keeping  map[*Task]struct{} // those of them with kept pages
	kept     bool               // the last turn began by looking at these
	open     int                // tasks held open
	held     int64              // bytes of bodies and unpublished pages
	fetchers int                // number of fetchers that share the hosts outside our shards
	leaving  bool               // the process stops: no shard is taken, all are released
	leased   time.Time          // when the heartbeat was sent from which leases count
}

// New makes an empty Hold. Start lets it take shards.
func New(config Config) *Hold {
	return &Hold{
		config:   config,
		wake:     wake.NewSignal(),
		beatNow:  wake.NewSignal(),
		frontier: frontier.New(config.Clock.Now(), config.Workers, config.MaxBytes, rand.Float64),
		shards:   map[uint16]*shard{},
		opening:  map[uint16]*opening{},
		tailing:  map[uint16]bool{},
		timed:    map[*Task]struct{}{},
		keeping:  map[*Task]struct{}{},
		fetchers: 1,
	}
}

// Start takes shards as the leader says until ctx ends. It then begins nothing more and releases
// them in order, within StopWithin. work stays alive for that; then Start calls end.
func (h *Hold) Start(ctx, work context.Context, end func()) {
	h.running.Go(func() {
		defer end()
		h.keepLeases(ctx, work)
	})
	h.running.Go(func() { h.sweep(work) })
	h.running.Go(func() { h.lookAhead(work) })
}

// Wait returns when everything that Start began has ended.
func (h *Hold) Wait() { h.running.Wait() }

// sweep drops shards whose lease has lapsed, with their requests. It lays down the tasks of a
// release that takes too long. It answers the tasks of ended runs at once, however slow their hosts
// are.
func (h *Hold) sweep(ctx context.Context) {
	for clock.Pause(ctx, h.config.Clock, h.untilSweep()) {
		h.sweepLeases()
		h.cancelEnded()
	}
}

// sweepLeases drops lapsed shards, ends late releases, and hands on overdue tasks.
func (h *Hold) sweepLeases() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.config.Clock.Now()
	h.lapseShards(now)
	for _, s := range h.shards {
		if s.releasing && !now.Before(s.finishBy) {
			h.layDownTasks(s, func(*Task) bool { return true })
		}
	}
	h.endOverdue(now)
}

// untilSweep returns the time until the next sweep, at most until the end of a lease.
func (h *Hold) untilSweep() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait, now := SweepEvery, h.config.Clock.Now()
	for _, s := range h.shards {
		wait = min(wait, s.until.Sub(now))
	}
	return wait
}

// endOverdue hands waiting tasks whose unit's time is over to the workers, without another request.
// It needs mu.
func (h *Hold) endOverdue(now time.Time) {
	for t := range h.timed {
		if !t.until.IsZero() && !now.Before(t.until) && h.frontier.Remove(&t.item, now) {
			t.item.Host, t.item.Pace = "", frontier.Pace{} // no host to wait for
			h.frontier.Resume(&t.item, now, now)
			h.wake.Raise()
		}
	}
}

// cancelEnded answers the waiting tasks of ended runs, and ends the requests of ended trials.
func (h *Hold) cancelEnded() {
	state := h.config.State()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.config.Clock.Now()
	for _, s := range h.shards {
		for id, tasks := range s.open {
			if job := state.Job(id); job == nil || !job.Ended() {
				continue // a missing run may be new: its turn looks it up
			}
			for _, t := range tasks {
				switch {
				case h.takeUpTask(t) || h.frontier.Remove(&t.item, now):
					h.postPage(t, t.Unit.Cancel(), nil, true)
				case t.abandon != nil:
					t.abandon(ErrAbandoned)
				}
			}
		}
	}
}

// lookAhead asks the log for the number of unread tasks, for heartbeats. The log may take seconds,
// so heartbeats do not wait for it.
func (h *Hold) lookAhead(ctx context.Context) {
	for clock.Pause(ctx, h.config.Clock, lookEvery) {
		h.behind.Store(h.config.Log.Lag(stream.Tasks))
	}
}

// Counts says what was done since the start, and what is held now.
type Counts struct {
	Markers     uint64        // passed on
	Dropped     uint64        // tasks already held, or beyond the bound
	Undecodable uint64        // records skipped
	Taken       uint64        // shards taken over
	Released    uint64        // shards handed over in order
	Lapsed      uint64        // shards dropped because their lease had lapsed
	LostBeats   uint64        // heartbeats without an answer
	Refused     uint64        // pages whose rows the log refused for their size
	Open        int           // tasks held open
	Shards      int           // held
	Waiting     int           // tasks waiting for their turn
	Timed       int           // those of them with a time limit or kept pages
	Hosts       int           // hosts remembered
	ReadyHosts  int           // those of them that may start now and wait for a worker
	HeldBytes   int64         // of bodies and unpublished pages
	LeaseAge    time.Duration // since the heartbeat from which leases count; 0 without shards
}

type counters struct {
	markers, dropped, undecodable, taken, released, lapsed, lostBeats, refused atomic.Uint64
}

// Counts returns the present counts. It is safe to call at any time.
func (h *Hold) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, now := &h.counts, h.config.Clock.Now()
	counts := Counts{Markers: c.markers.Load(), Dropped: c.dropped.Load(),
		Undecodable: c.undecodable.Load(), Taken: c.taken.Load(), Released: c.released.Load(),
		Lapsed: c.lapsed.Load(), LostBeats: c.lostBeats.Load(), Refused: c.refused.Load(),
		Open: h.open, Shards: len(h.shards), Waiting: h.frontier.Waiting(), Timed: len(h.timed),
		Hosts: h.frontier.Hosts(), ReadyHosts: h.frontier.Ready(now), HeldBytes: h.held}
	if len(h.shards) > 0 && !h.leased.IsZero() {
		counts.LeaseAge = now.Sub(h.leased)
	}
	return counts
}
