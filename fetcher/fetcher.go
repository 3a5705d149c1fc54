// Package fetcher owns the step from tasks to fetched pages. It decides which shards this process
// holds, when each request starts, and what follows from its answer. It passes pages and markers
// on. It stores nothing and charges nothing. Markers reveal pages that never arrive (DESIGN.md).
package fetcher

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/fetcher/internal/hold"
	"shoal.dev/shoal/fetcher/internal/keeping"
	"shoal.dev/shoal/fetcher/internal/unit"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
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
	DefaultBodyQuota  = 10 << 30
	DefaultTimeout    = 30 * time.Second
	DefaultStopWithin = 30 * time.Second
)

// Pace bounds a host's request starts per second and concurrent requests; 0 sets no bound.
type Pace = frontier.Pace

// Config configures a Fetcher. Zero values mean the defaults; Clock, Logger and Point are optional.
type Config struct {
	Node    string // as registered
	Boot    ids.ID // this start of the process
	Log     stream.Log
	Control Control
	Web     Web
	IDs     ids.Source // safe for concurrent use
	// ShardOf returns the shard of an authority. It must be the same in the whole cluster.
	ShardOf func(host string) int

	Pace    Pace // of a host, unless a scraper asks for another
	MaxPace Pace // the most that a scraper may ask for

	Model     Model // answers the prompts of extractions; nil: no model
	Questions int   // concurrent questions to it, DefaultQuestions when 0; each takes a worker

	Disk *telemetry.Disk // of the node; nil: it is never short

	// Bodies is where page bodies are kept; nil: none are kept.
	Bodies Bodies
	// BodyQuota is how many bytes of bodies a customer may have, DefaultBodyQuota when 0. The
	// oldest are removed to make room.
	BodyQuota int64

	Rates ecb.Rates // for currency rules; the bundled table when nil

	Workers     int // the most concurrent requests
	Extractions int // concurrent extractions; GOMAXPROCS when 0
	// nothing starts while this many bytes of bodies and unpublished pages are held
	MaxBytes int64
	Timeout  time.Duration // of one try at a page, redirects included
	// time to release the shards at the end; what is left is dropped
	StopWithin time.Duration

	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil
	Tracer  *telemetry.Tracer  // nil: no traces
	// Point is called at kill points, for crash tests.
	Point func(name string)
	// Reading is called when a page is read, for tests that panic there; optional.
	Reading func(p extract.Page)
	// Reader guards the reading of pages; nil: one that keeps no pages that caused a panic.
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
	if c.BodyQuota <= 0 {
		c.BodyQuota = DefaultBodyQuota
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
	if c.Point == nil {
		c.Point = func(string) {}
	}
	if c.Reader == nil {
		c.Reader = NewReader(ReaderConfig{Clock: c.Clock, Logger: c.Logger})
	}
	if c.Reading == nil {
		c.Reading = func(extract.Page) {}
	}
}

// Reader guards the reading of what sites send: a panic ends the page, never the process.
type Reader = reading.Guard

// ReaderConfig configures a Reader. Its Dir keeps the newest 32 pages whose reading panicked, 64
// MiB at most.
type ReaderConfig = reading.Config

// NewReader makes the reader of a process.
func NewReader(config ReaderConfig) *Reader { return reading.New("fetcher", config) }

// Fetcher is one fetching process. Its workers take tasks from hold and work on them with units.
type Fetcher struct {
	config  Config
	hold    *hold.Hold
	units   *unit.Units
	keeper  *keeping.Keeper // nil: no bodies are kept
	workers sync.WaitGroup
}

// New makes a fetcher; Run starts it.
func New(config Config) *Fetcher {
	config.setDefaults()
	f := &Fetcher{config: config}
	if config.Bodies != nil {
		f.keeper = keeping.New(keeping.Config{Store: config.Bodies, IDs: config.IDs,
			Quota: config.BodyQuota, Clock: config.Clock, Logger: config.Logger,
			Point: config.Point})
	}
	f.units = unit.New(unitConfig(config, f.keeper))
	f.hold = hold.New(hold.Config{
		Node: config.Node, Boot: config.Boot, Log: config.Log,
		State:     func() hold.State { return config.Control.View() },
		Heartbeat: config.Control.Heartbeat, ShardOf: config.ShardOf,
		Leave: config.Web.Leave, Plan: f.plan, Pages: f.units.PagesPassed,
		Short:   config.Disk.Short,
		Workers: config.Workers, MaxBytes: config.MaxBytes, Timeout: config.Timeout,
		StopWithin: config.StopWithin,
		Clock:      config.Clock, Logger: config.Logger, Reader: config.Reader, Point: config.Point,
	})
	f.measure(config.Metrics)
	return f
}

func unitConfig(config Config, keeper *keeping.Keeper) unit.Config {
	return unit.Config{
		View: func() unit.View { return config.Control.View() },
		Fresh: func(ctx context.Context) (unit.View, error) {
			return config.Control.Fresh(ctx)
		},
		Web: config.Web, IDs: config.IDs, Pace: config.Pace, MaxPace: config.MaxPace,
		Model: config.Model, Questions: config.Questions, Rates: config.Rates, Keeper: keeper,
		Extractions: config.Extractions, Timeout: config.Timeout,
		Clock: config.Clock, Logger: config.Logger, Metrics: config.Metrics,
		Tracer: config.Tracer, Reader: config.Reader, Reading: config.Reading,
		Point: config.Point,
	}
}

// plan begins the work on a new task.
func (f *Fetcher) plan(task *model.Task) hold.Plan {
	chain, host, pace := f.units.BeginChain(task)
	return hold.Plan{Unit: chain, Refused: host == "", Host: host, Pace: pace}
}

// Run works until ctx ends, which is not an error. It then begins no more pages, and finishes and
// publishes those that have begun. It releases its shards and tells the leader, all within
// StopWithin. It returns when everything that it started has ended. Markers of the next owners
// reveal the pages that it did not begin.
func (f *Fetcher) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	f.hold.Start(ctx, work, cancel)
	f.startRequests(work)
	f.workers.Wait()
	f.hold.Wait()
	if f.keeper != nil {
		f.keeper.Close()
	}
	return nil
}

// startRequests hands ready tasks to workers. Workers are started on demand and reused: a new
// goroutine per request would have to grow its stack each time.
func (f *Fetcher) startRequests(ctx context.Context) {
	turns := make(chan *hold.Task)
	defer close(turns)
	ready := make(chan struct{}, f.config.Workers) // one for each idle worker
	for started := 0; ; {
		if len(ready) == 0 && started < f.config.Workers {
			started++
			f.workers.Go(func() { f.serve(ready, turns) })
		}
		select {
		case <-ctx.Done():
			return
		case <-ready:
		}
		task := f.hold.AwaitTurn(ctx)
		if task == nil {
			return
		}
		turns <- task
	}
}

// serve runs one worker.
func (f *Fetcher) serve(ready chan<- struct{}, turns <-chan *hold.Task) {
	var turn unit.Turn
	for {
		ready <- struct{}{}
		task, ok := <-turns
		if !ok {
			return
		}
		f.work(&turn, task)
	}
}

// work takes one turn of a task: a request and what follows from it. The turn ends when the shard
// is dropped, or at the latest with the lease.
func (f *Fetcher) work(turn *unit.Turn, task *hold.Task) {
	chain := task.Unit.(*unit.Chain)
	ctx, end := task.BeginTurn(chain.IsTrial())
	defer end()
	next := turn.TakeStep(ctx, chain, task)
	if errors.Is(context.Cause(ctx), hold.ErrAbandoned) {
		next = chain.Abandon(next)
	}
	outcome := hold.Outcome{Answer: next.Answer}
	if next.Page != nil {
		if kept := chain.Keep(next.Page); kept != nil { // no nil pointer in an interface
			outcome.Kept = kept
		}
		outcome.Record, outcome.Final = chain.Encode(next.Page), next.IsLast()
	}
	if outcome.Again = next.GoesOn(); outcome.Again {
		outcome.Begun = next.Again && chain.HasBegun()
		outcome.Open = next.Again && chain.HasPermit()
		outcome.Host, outcome.Pace = chain.Host(), next.Pace
		outcome.Wait, outcome.Until = next.Wait, chain.Until()
	}
	task.EndTurn(outcome)
}

// Counts says what was done since the start, and what is held now.
type Counts struct {
	unit.Tally
	hold.Counts
	Kept keeping.Counts
}

// Counts returns the present counts. It is safe to call at any time.
func (f *Fetcher) Counts() Counts {
	counts := Counts{Tally: f.units.Tally(), Counts: f.hold.Counts()}
	if f.keeper != nil {
		counts.Kept = f.keeper.Counts()
	}
	return counts
}
