// Package hold owns what this process holds. That is shards and their leases, the tasks that are
// open, whose turn it is, and what waits for the log. It also lets go of shards. All of it is
// guarded by one lock, which nobody else knows of. It knows no page: a task's work is a Unit, and
// what it makes is bytes (internal/unit). It stores nothing; what never arrives is found by the
// markers.
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
)

// maxOpen bounds the tasks held open: twice what a leader sends out by default. A task beyond it is
// dropped, and found by the next marker.
const maxOpen = 1 << 17

// SweepEvery is how often ended runs are looked for among the tasks that wait.
const SweepEvery = 250 * time.Millisecond

// lookEvery is how often the log is asked how much of it was not read.
const lookEvery = 2 * time.Second

// State is what is read of the control plane's state.
type State interface {
	Job(id ids.ID) *client.Job
	Shards() []*client.Shard
}

// Unit is the work on a task, as far as its holder has to know it.
type Unit interface {
	// Cancel makes the record that answers the task of an ended run. Nobody works on it then.
	Cancel() []byte
	// Refuse makes the record that answers a task that cannot be begun.
	Refuse() []byte
	// CountPage counts the page of the newest record, which goes on from here.
	CountPage()
}

// Plan is how the work on a task begins.
type Plan struct {
	Unit    Unit
	Refused bool   // it cannot be begun
	Host    string // that is asked first
	Pace    frontier.Pace
}

// Config is what a Hold works with. All of it has to be given.
type Config struct {
	Node  string // as it is registered
	Boot  ids.ID // this start of the process
	Log   stream.Log
	State func() State
	// Heartbeat tells the leader what is held, and is answered what is to be.
	Heartbeat func(ctx context.Context, beat client.Heartbeat) (client.Leases, error)
	// ShardOf is the shard of an authority: the same for everyone in the cluster.
	ShardOf func(host string) int
	// Leave is called with a host that was asked, and at which nothing waits or runs any more.
	Leave func(host string)
	// Plan makes the work on a task that came.
	Plan func(task *model.Task) Plan
	// Pages counts those passed on since the start, for the leader.
	Pages func() uint64
	// Short says whether the node's disk has less than its floor.
	Short func() bool

	Workers    int           // turns at once, at most
	MaxBytes   int64         // nothing is begun while as many are held
	Timeout    time.Duration // of one try at a page
	StopWithin time.Duration // for letting go of the shards at the end

	Clock  clock.Clock
	Logger *slog.Logger
	Reader *reading.Guard // runs what reads records
	// Point is called with the name of each step's end, for tests that end the process there.
	Point func(name string)
}

// Hold is what one process holds.
type Hold struct {
	config  Config
	wake    chan struct{} // who waits for a turn has to look again
	beatNow chan struct{} // the leader has to know
	running sync.WaitGroup
	counts  counters
	// records of our shards' tasks that were not read, when the log was asked last
	behind atomic.Int64

	mu       sync.Mutex // guards what follows, and what shards and tasks say is guarded by it
	frontier *frontier.Frontier
	told     time.Time // when the log told of skipped records
	untold   uint64    // skipped since
	shards   map[uint16]*shard
	opening  map[uint16]*opening
	tailing  map[uint16]bool    // shards whose tasks the log is opening
	beats    uint64             // heartbeats sent
	timed    map[*Task]struct{} // tasks that wait and whose unit has a time limit, or keeps pages
	keeping  map[*Task]struct{} // of these, those that keep pages
	kept     bool               // the last turn was first one of these
	open     int                // tasks held open
	held     int64              // bytes of bodies and unpublished pages
	fetchers int                // that share a host which none of our shards has
	leaving  bool               // the process stops: no shard is taken, all are let go of
	leased   time.Time          // when the heartbeat that the leases count from was sent
}

// New makes a Hold of nothing, which Start lets take shards.
func New(config Config) *Hold {
	return &Hold{
		config:   config,
		wake:     make(chan struct{}, 1),
		beatNow:  make(chan struct{}, 1),
		frontier: frontier.New(config.Clock.Now(), config.Workers, config.MaxBytes, rand.Float64),
		shards:   map[uint16]*shard{},
		opening:  map[uint16]*opening{},
		tailing:  map[uint16]bool{},
		timed:    map[*Task]struct{}{},
		keeping:  map[*Task]struct{}{},
		fetchers: 1,
	}
}

// Start takes shards, as the leader says, until ctx ends. Then it begins nothing any more and lets
// go of them in order, within StopWithin, while work goes on; then it ends work.
func (h *Hold) Start(ctx, work context.Context, end func()) {
	h.running.Go(func() {
		defer end()
		h.keepLeases(ctx, work)
	})
	h.running.Go(func() { h.sweep(work) })
	h.running.Go(func() { h.lookAhead(work) })
}

// Wait returns when all that Start began has ended.
func (h *Hold) Wait() { h.running.Wait() }

// sweep ends the work on shards whose lease has lapsed, requests under way included. It takes back
// what waits in vain: tasks of a release that takes too long, and those of ended runs. The latter
// are answered at once, however slow their hosts are.
func (h *Hold) sweep(ctx context.Context) {
	for clock.Pause(ctx, h.config.Clock, h.untilSweep()) {
		h.sweepLeases()
		h.cancelEnded()
	}
}

// sweepLeases drops what has lapsed, and hands on what has waited for too long.
func (h *Hold) sweepLeases() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.config.Clock.Now()
	var lapsed []*shard
	for _, s := range h.shards {
		switch {
		case !s.isFresh(now):
			lapsed = append(lapsed, s)
		case s.releasing && !now.Before(s.finishBy):
			h.layDownTasks(s, func(*Task) bool { return true })
		}
	}
	h.lapseShards(lapsed...)
	h.endOverdue(now)
}

// untilSweep is how long the next sweep may wait: no lease is outlived.
func (h *Hold) untilSweep() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait, now := SweepEvery, h.config.Clock.Now()
	for _, s := range h.shards {
		wait = min(wait, s.until.Sub(now))
	}
	return wait
}

// endOverdue hands the waiting tasks whose unit's time is over to the workers: nothing is asked any
// more. It needs mu.
func (h *Hold) endOverdue(now time.Time) {
	for t := range h.timed {
		if !t.until.IsZero() && !now.Before(t.until) && h.frontier.Remove(&t.item, now) {
			t.item.Host, t.item.Pace = "", frontier.Pace{} // no host has to be waited for
			h.frontier.Resume(&t.item, now, now)
			notify(h.wake)
		}
	}
}

// cancelEnded answers the waiting tasks of ended runs, and ends the requests under way of ended
// trials.
func (h *Hold) cancelEnded() {
	state := h.config.State()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.config.Clock.Now()
	for _, s := range h.shards {
		for id, tasks := range s.open {
			if job := state.Job(id); job == nil || !job.Ended() {
				continue // a missing one may be new: it is looked up when its turn comes
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

// lookAhead asks the log how much of our tasks was not read, for the heartbeats to tell. The log
// may take seconds to answer, for which they do not wait.
func (h *Hold) lookAhead(ctx context.Context) {
	for clock.Pause(ctx, h.config.Clock, lookEvery) {
		h.behind.Store(h.config.Log.Lag(stream.Tasks))
	}
}

// Counts say what was done since the start, and what is held now.
type Counts struct {
	Markers     uint64        // passed on
	Dropped     uint64        // tasks held already, or beyond what may be held
	Undecodable uint64        // records skipped
	Taken       uint64        // shards taken over
	Released    uint64        // shards handed over in order
	Lapsed      uint64        // shards dropped because their lease had lapsed
	LostBeats   uint64        // heartbeats without an answer
	Open        int           // tasks held open
	Shards      int           // held
	Waiting     int           // tasks that wait for their turn
	Timed       int           // of these, those with a time limit, or that keep pages
	Hosts       int           // hosts in mind
	ReadyHosts  int           // of these, those that may be asked now, and wait for the fetcher
	HeldBytes   int64         // of bodies and unpublished pages
	LeaseAge    time.Duration // since the heartbeat that the leases count from; 0 without shards
}

type counters struct {
	markers, dropped, undecodable, taken, released, lapsed, lostBeats atomic.Uint64
}

// Counts is safe to call at any time.
func (h *Hold) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, now := &h.counts, h.config.Clock.Now()
	counts := Counts{Markers: c.markers.Load(), Dropped: c.dropped.Load(),
		Undecodable: c.undecodable.Load(), Taken: c.taken.Load(), Released: c.released.Load(),
		Lapsed: c.lapsed.Load(), LostBeats: c.lostBeats.Load(),
		Open: h.open, Shards: len(h.shards), Waiting: h.frontier.Waiting(), Timed: len(h.timed),
		Hosts: h.frontier.Hosts(), ReadyHosts: h.frontier.Ready(now), HeldBytes: h.held}
	if len(h.shards) > 0 && !h.leased.IsZero() {
		counts.LeaseAge = now.Sub(h.leased)
	}
	return counts
}
