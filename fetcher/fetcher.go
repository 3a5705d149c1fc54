// Package fetcher owns the step from tasks to fetched pages. It decides which shards this process
// holds, when each request starts, and what becomes of its answer. Pages and markers go on from
// here. It stores nothing and charges nothing; a page that never arrives is found by the markers
// (DESIGN.md).
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

// Pace is what a host may be asked: request starts per second and requests under way; 0 sets no
// bound.
type Pace = frontier.Pace

// Config is what a Fetcher works with. Zero values take the defaults; Clock, Logger and Point may
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

	Disk *telemetry.Disk // of the node; nil: it is never short

	// Bodies is where bodies are kept that are to be kept; nil: they are not.
	Bodies Bodies
	// BodyQuota is how many bytes of them a customer may have, DefaultBodyQuota when 0. The oldest
	// make room.
	BodyQuota int64

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
	// Point is called with the name of each step's end, for tests that end the process there.
	Point func(name string)
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

// Reader runs whatever reads what sites send: a panic in it is the page's end, never the process's.
type Reader = reading.Guard

// ReaderConfig is what a Reader works with. The newest 32 pages whose reading panicked are kept in
// its Dir, 64 MiB at most.
type ReaderConfig = reading.Config

// NewReader makes the reader of a process.
func NewReader(config ReaderConfig) *Reader { return reading.New("fetcher", config) }

// Fetcher is one fetching process: workers, between what it holds and the units that they work on.
type Fetcher struct {
	config  Config
	hold    *hold.Hold
	units   *unit.Units
	keeper  *keeping.Keeper // nil: no bodies are kept
	workers sync.WaitGroup
}

// New makes a fetcher that Run starts.
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

// plan begins the work on a task that came.
func (f *Fetcher) plan(task *model.Task) hold.Plan {
	chain, host, pace := f.units.BeginChain(task)
	return hold.Plan{Unit: chain, Refused: host == "", Host: host, Pace: pace}
}

// Run works until ctx ends, which is no error. Then it begins no page any more, and finishes and
// publishes those that have begun. It lets go of its shards and tells the leader, all within
// StopWithin. It returns when all that it started has ended. What it did not begin is found by the
// markers of the next holder of the shards.
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

// startRequests hands what is ready to the workers. They are started as they are needed and kept: a
// goroutine of its own for each request would grow its stack anew each time.
func (f *Fetcher) startRequests(ctx context.Context) {
	turns := make(chan *hold.Task)
	defer close(turns)
	ready := make(chan struct{}, f.config.Workers) // one for each worker that waits for its turn
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

// serve is a worker.
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

// work takes one turn of a task: a request, and what follows from it. It ends when the shard is
// dropped, at the lease's end at the latest.
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
		if kept := chain.Keep(next.Page); kept != nil { // and no interface that holds a nil pointer
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

// Counts say what was done since the start, and what is held now.
type Counts struct {
	unit.Tally
	hold.Counts
	Kept keeping.Counts
}

// Counts is safe to call at any time.
func (f *Fetcher) Counts() Counts {
	counts := Counts{Tally: f.units.Tally(), Counts: f.hold.Counts()}
	if f.keeper != nil {
		counts.Kept = f.keeper.Counts()
	}
	return counts
}
