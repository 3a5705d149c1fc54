// Package fetcher owns the step from tasks to fetched pages: which shards this process holds, when
// each request starts, what becomes of its answer, and the pages and markers that go on from here.
// It stores nothing and charges nothing; a page that never arrives is found by the markers
// (DESIGN.md).
package fetcher

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
)

// Defaults of Config.
const (
	DefaultWorkers    = 256
	DefaultQuestions  = 16
	DefaultMaxBytes   = 64 << 20
	DefaultTimeout    = 30 * time.Second
	DefaultStopWithin = 30 * time.Second
)

// maxOpen bounds the tasks held open: twice what a leader sends out by default. A task beyond it is
// dropped, and found by the next marker.
const maxOpen = 1 << 17

// sweepEvery is how often ended runs are looked for among the tasks that wait.
const sweepEvery = 250 * time.Millisecond

// lookEvery is how often the log is asked how much of it was not read.
const lookEvery = 2 * time.Second

// Pace is what a host may be asked: request starts per second and requests under way; 0 sets no
// bound.
type Pace = frontier.Pace

// Config is what a Fetcher works with. Zero values take the defaults; Clock, Logger and Crash may
// be left out.
type Config struct {
	Node    string // as it is registered
	Boot    ids.ID // this start of the process
	Log     stream.Log
	Control Control
	Web     Web
	IDs     ids.Source // safe for concurrent use
	// ShardOf is the shard of an authority: the same for everyone in the cluster.
	ShardOf func(host string) int

	Pace    Pace // of a host, unless a scraper asks for another
	MaxPace Pace // the most that a scraper may ask for

	Model     Model // answers the prompts of extractions; nil: nobody does
	Questions int   // to the model at once, DefaultQuestions when 0; each takes one of Workers

	Rates ecb.Rates // for currency rules; the bundled table when nil

	Workers     int // requests under way, at most
	Extractions int // extractions at once; GOMAXPROCS when 0
	// nothing is started while as many bytes of bodies and unpublished pages are held
	MaxBytes int64
	Timeout  time.Duration // of one try at a page, redirects included
	// for letting go of the shards at the end; what is left then is dropped
	StopWithin time.Duration

	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil
	Tracer  *telemetry.Tracer  // nil: no traces
	// Crash is called with the name of each step's end, for tests that end the process there.
	Crash func(point string)
	// Reading is called as a page is read, for tests that panic there; it may be left out.
	Reading func(p extract.Page)
	// Reader runs what reads pages; nil: one that keeps none whose reading panics.
	Reader *Reader
}

func (c *Config) setDefaults() {
	if c.Workers <= 0 {
		c.Workers = DefaultWorkers
	}
	if c.Questions <= 0 {
		c.Questions = DefaultQuestions
	}
	if c.Extractions <= 0 {
		c.Extractions = runtime.GOMAXPROCS(0)
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.StopWithin <= 0 {
		c.StopWithin = DefaultStopWithin
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Rates == nil {
		c.Rates = ecb.Bundled()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Crash == nil {
		c.Crash = func(string) {}
	}
	if c.Reader == nil {
		c.Reader = NewReader(ReaderConfig{Clock: c.Clock, Logger: c.Logger})
	}
	if c.Reading == nil {
		c.Reading = func(extract.Page) {}
	}
}

// Reader runs whatever reads what sites send: a panic in it is the page's end, never the process's.
type Reader = reading.Guard

// ReaderConfig is what a Reader works with. The newest 32 pages whose reading panicked are kept in
// its Dir, 64 MiB at most.
type ReaderConfig = reading.Config

// NewReader makes the reader of a process.
func NewReader(config ReaderConfig) *Reader { return reading.New("fetcher", config) }

// tellEvery is how often the log may tell of skipped records.
const tellEvery = time.Minute

// Fetcher is one fetching process.
type Fetcher struct {
	config  Config
	reader  *reading.Guard
	recipes *recipeCache
	tokens  *tokens
	hosts   *hostMemory
	extract chan struct{} // one for each extraction
	asking  chan struct{} // one for each question to the model
	wake    chan struct{} // the starter has to look again
	beatNow chan struct{} // the leader has to know
	running sync.WaitGroup
	counts  counters
	// records of our shards' tasks that were not read, when the log was asked last
	behind  atomic.Int64
	metrics *metrics

	mu       sync.Mutex // guards what follows, and what shards and chains say is guarded by it
	frontier *frontier.Frontier
	told     time.Time // when the log told of skipped records
	untold   uint64    // skipped since
	shards   map[uint16]*shard
	opening  map[uint16]*opening
	beats    uint64              // heartbeats sent
	timed    map[*chain]struct{} // chains that wait and whose unit has a time limit, or keeps pages
	open     int                 // tasks held open
	held     int64               // bytes of bodies and unpublished pages
	fetchers int                 // that share a host which none of our shards has
	leaving  bool                // the process stops: no shard is taken, all are let go of
	leased   time.Time           // when the heartbeat that the leases count from was sent
}

// New makes a fetcher that Run starts.
func New(config Config) *Fetcher {
	config.setDefaults()
	f := &Fetcher{
		config:   config,
		metrics:  newMetrics(config.Metrics),
		reader:   config.Reader,
		recipes:  newRecipeCache(maxRecipes, config.Reader),
		tokens:   newTokens(config.Clock),
		hosts:    newHostMemory(maxRemembered),
		extract:  make(chan struct{}, config.Extractions),
		asking:   make(chan struct{}, config.Questions),
		wake:     make(chan struct{}, 1),
		beatNow:  make(chan struct{}, 1),
		frontier: frontier.New(config.Clock.Now(), rand.Float64),
		shards:   map[uint16]*shard{},
		opening:  map[uint16]*opening{},
		timed:    map[*chain]struct{}{},
		fetchers: 1,
	}
	f.measure(config.Metrics)
	return f
}

// Run works until ctx ends, which is no error. Then it begins no page any more, finishes and
// publishes those that have begun, lets go of its shards and tells the leader, all within
// StopWithin. It returns when all that it started has ended; what it did not begin is found by the
// markers of whoever takes the shards over.
func (f *Fetcher) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	f.running.Go(func() {
		defer cancel()
		f.keepLeases(ctx, work)
	})
	f.running.Go(func() { f.sweep(work) })
	f.running.Go(func() { f.lookAhead(work) })
	f.startRequests(work)
	f.running.Wait()
	return nil
}

// startRequests hands what is ready to the workers. They are started as they are needed and kept: a
// goroutine of its own for each request would grow its stack anew each time.
func (f *Fetcher) startRequests(ctx context.Context) {
	turns := make(chan *chain)
	defer close(turns)
	ready := make(chan struct{}, f.config.Workers) // one for each worker that waits for its turn
	for started := 0; ; {
		if len(ready) == 0 && started < f.config.Workers {
			started++
			f.running.Go(func() { f.serve(ready, turns) })
		}
		select {
		case <-ctx.Done():
			return
		case <-ready:
		}
		c := f.awaitTurn(ctx)
		if c == nil {
			return
		}
		turns <- c
	}
}

// serve is a worker.
func (f *Fetcher) serve(ready chan<- struct{}, turns <-chan *chain) {
	for {
		ready <- struct{}{}
		c, ok := <-turns
		if !ok {
			return
		}
		f.work(c)
	}
}

// awaitTurn is the next chain to work on; nil when ctx has ended.
func (f *Fetcher) awaitTurn(ctx context.Context) *chain {
	for ctx.Err() == nil {
		f.mu.Lock()
		var it *frontier.Item
		var wait time.Duration
		if f.held < f.config.MaxBytes {
			it, wait = f.frontier.Next(f.config.Clock.Now())
		} else {
			it, wait = f.nextKept(f.config.Clock.Now())
		}
		if it != nil {
			delete(f.timed, it.Value.(*chain))
		}
		f.mu.Unlock()
		if it != nil {
			return it.Value.(*chain)
		}
		var due <-chan time.Time
		if wait != frontier.Forever {
			due = f.config.Clock.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-due:
		}
	}
	return nil
}

// sweep ends the work on shards whose lease has lapsed, requests under way included, and takes back
// what waits in vain: tasks of a release that takes too long, and those of ended runs, which are
// answered at once, however slow their hosts are.
func (f *Fetcher) sweep(ctx context.Context) {
	for clock.Pause(ctx, f.config.Clock, f.untilSweep()) {
		f.mu.Lock()
		now := f.config.Clock.Now()
		var lapsed []*shard
		for _, s := range f.shards {
			switch {
			case !s.fresh(now):
				lapsed = append(lapsed, s)
			case s.releasing && !now.Before(s.finishBy):
				f.layDown(s, func(*chain) bool { return true })
			}
		}
		f.lapse(lapsed...)
		f.endOverdue(now)
		f.mu.Unlock()
		f.cancelEnded()
	}
}

// untilSweep is how long the next sweep may wait: no lease is outlived.
func (f *Fetcher) untilSweep() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait, now := sweepEvery, f.config.Clock.Now()
	for _, s := range f.shards {
		wait = min(wait, s.until.Sub(now))
	}
	return wait
}

// lookAhead asks the log how much of our tasks was not read, for the heartbeats to tell. The log
// may take seconds to answer, for which they do not wait.
func (f *Fetcher) lookAhead(ctx context.Context) {
	for clock.Pause(ctx, f.config.Clock, lookEvery) {
		f.behind.Store(f.config.Log.Lag(stream.Tasks))
	}
}

// cancelEnded answers the waiting tasks of ended runs, and ends the requests under way of ended
// trials.
func (f *Fetcher) cancelEnded() {
	view := f.config.Control.View()
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.config.Clock.Now()
	for _, s := range f.shards {
		for id, chains := range s.open {
			if job := view.Job(id); job == nil || !ended(job) {
				continue // a missing one may be new: it is looked up when its turn comes
			}
			for _, c := range chains {
				switch {
				case f.takeUp(c) || f.frontier.Remove(&c.item, now):
					f.finish(c, cancelledPage(c))
				case c.abandon != nil:
					c.abandon(errAbandoned)
				}
			}
		}
	}
}

func ended(job *client.Job) bool { return job == nil || job.Closed || job.State.Final() }

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// errStale ends a request whose shard is not ours any more.
var errStale = errors.New("fetcher: the shard's lease has lapsed")

// Counts say what was done since the start, and what is held now.
type Counts struct {
	Pages       uint64 // pages passed on, whatever their outcome
	Delivered   uint64
	Errored     uint64
	Cancelled   uint64
	Retries     uint64        // tries after the first of a page
	Bytes       uint64        // of bodies, off the wire
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
	Hosts       int           // hosts in mind
	ReadyHosts  int           // of these, those that may be asked now, and wait for the fetcher
	HeldBytes   int64         // of bodies and unpublished pages
	Asking      int64         // requests under way, extraction included
	LeaseAge    time.Duration // since the heartbeat that the leases count from; 0 without shards
}

type counters struct {
	pages, delivered, errored, cancelled, retries, bytes, markers, dropped,
	undecodable atomic.Uint64
	taken, released, lapsed,
	lostBeats atomic.Uint64
	asking atomic.Int64
}

// Counts is safe to call at any time.
func (f *Fetcher) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, now := &f.counts, f.config.Clock.Now()
	return Counts{Pages: c.pages.Load(), Delivered: c.delivered.Load(), Errored: c.errored.Load(),
		Cancelled: c.cancelled.Load(), Retries: c.retries.Load(), Bytes: c.bytes.Load(),
		Markers: c.markers.Load(),
		Dropped: c.dropped.Load(), Undecodable: c.undecodable.Load(), Taken: c.taken.Load(),
		Released: c.released.Load(),
		Lapsed:   c.lapsed.Load(), LostBeats: c.lostBeats.Load(), Open: f.open,
		Shards:  len(f.shards),
		Waiting: f.frontier.Waiting(), Hosts: f.frontier.Hosts(), ReadyHosts: f.frontier.Ready(now),
		HeldBytes: f.held,
		Asking:    c.asking.Load(), LeaseAge: f.leaseAge(now)}
}
