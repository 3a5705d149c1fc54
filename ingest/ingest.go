// Package ingest owns the step from fetched pages to stored rows. It reads the topic `pages`,
// stores each page's rows and page record, and only then proves it with a receipt. It decides
// neither what a page costs nor when a run ends. The row store decides which of two fetches of a
// unit stands.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
)

// Group is the name under which all ingest nodes read `pages` together.
const Group = "ingest"

// Defaults of Config: the bounds of one batch, which is one transaction of the row store.
const (
	DefaultMaxPages = 2000
	DefaultMaxBytes = 8 << 20
	DefaultLinger   = 50 * time.Millisecond
)

// tellEvery is the least time between two log lines about skipped records.
const tellEvery = time.Minute

// pauses is the backoff between tries of a failing call.
var pauses = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// Jobs looks up runs in one state of the control plane.
type Jobs interface {
	Job(id ids.ID) *client.Job
}

// Control is what ingest needs from the control plane.
type Control interface {
	// View returns this node's copy of the state.
	View() Jobs
	// Fresh returns a state with everything that was applied anywhere before the call.
	Fresh(ctx context.Context) (Jobs, error)
}

// FromClient narrows a client to what ingest needs.
func FromClient(c client.Client) Control { return control{c} }

type control struct{ client client.Client }

func (c control) View() Jobs { return c.client.View() }

func (c control) Fresh(ctx context.Context) (Jobs, error) {
	view, err := c.client.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	return view, nil
}

// Config configures an Ingest. Zero bounds take the defaults; Logger, Clock and Point may
// be left out.
type Config struct {
	Log     stream.Log
	Store   rowstore.Pages
	Control Control

	MaxPages int           // pages of one batch, at most
	MaxBytes int           // a batch is closed once it has this many encoded bytes
	Linger   time.Duration // how long the first page of a batch waits for others

	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics // may be nil
	Tracer  *telemetry.Tracer  // nil: no traces
	Reader  *reading.Guard     // guards the reading of records and rows; nil: keeps no evidence
	// Reading, if set, is called before a page's rows are completed, for tests in which reading
	// fails.
	Reading func(p *model.Page)
	// Point is called with the name of each completed step, for tests that end the process there.
	Point func(name string)
}

// Counts are totals since the start.
type Counts struct {
	Stored      uint64 // pages stored, or found stored
	Rows        uint64 // rows of these pages
	Dropped     uint64 // pages of unknown or closed runs
	Undecodable uint64 // records skipped: undecodable, malformed, or beyond the run's list
	Retries     uint64 // failed calls of the store, the log and the control plane
	Batches     uint64
}

// Ingest is one member of the group.
type Ingest struct {
	config  Config
	metrics *metrics
	counts  struct{ stored, rows, dropped, undecodable, retries, batches atomic.Uint64 }

	told   time.Time // when the log last reported skipped records
	untold uint64    // skipped since then
}

// New makes a member; Run starts it.
func New(config Config) *Ingest {
	if config.MaxPages <= 0 {
		config.MaxPages = DefaultMaxPages
	}
	if config.MaxBytes <= 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.Linger <= 0 {
		config.Linger = DefaultLinger
	}
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Reader == nil {
		config.Reader = reading.New("ingest",
			reading.Config{Clock: config.Clock, Logger: config.Logger})
	}
	if config.Reading == nil {
		config.Reading = func(*model.Page) {}
	}
	if config.Point == nil {
		config.Point = func(string) {}
	}
	g := &Ingest{config: config, metrics: newMetrics(config.Metrics)}
	g.measure(config.Metrics)
	return g
}

// Counts returns the totals. It is safe to call at any time.
func (g *Ingest) Counts() Counts {
	c := &g.counts
	return Counts{Stored: c.stored.Load(), Rows: c.rows.Load(), Dropped: c.dropped.Load(),
		Undecodable: c.undecodable.Load(), Retries: c.retries.Load(), Batches: c.batches.Load()}
}

// Run works until ctx ends, which is not an error, or the log is closed. It commits a page only
// after the page is stored and its receipt is published. So whatever an end cuts off is read again
// at the next start.
func (g *Ingest) Run(ctx context.Context) error {
	reader, err := g.config.Log.Consume(stream.Pages, Group)
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	defer reader.Close()
	for {
		if err := g.work(ctx, reader); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("ingest: %w", err)
		}
	}
}

// work takes one batch through its steps. Their order ensures that nothing is lost.
func (g *Ingest) work(ctx context.Context, reader stream.Reader) error {
	b, err := g.collect(ctx, reader)
	if err != nil {
		return err
	}
	began := g.config.Clock.Now()
	if err := g.timed(ctx, lookUpStep, func() error { return g.admit(ctx, b) }); err != nil {
		return err
	}
	g.config.Point("ingest.before_store")
	storing := g.config.Clock.Now()
	if err := g.timed(ctx, storeStep, func() error { return g.store(ctx, b) }); err != nil {
		return err
	}
	g.config.Point("ingest.after_store")
	g.trace(b, storing)
	if err := g.publish(ctx, b); err != nil {
		return err
	}
	g.config.Point("ingest.after_publish")
	g.commit(ctx, reader, b)
	g.config.Point("ingest.after_commit")
	g.counts.batches.Add(1)
	g.done(b, began)
	return nil
}

// publish passes on a batch's receipts and markers.
func (g *Ingest) publish(ctx context.Context, b *batch) error {
	began := g.config.Clock.Now()
	for partition, records := range b.outgoing() {
		// A failed try may have published a part. The repeat publishes all of it again in the same
		// order. A receipt seen twice changes nothing, and each marker again follows the receipts
		// before it.
		err := g.retry(ctx, publishStep, func() error {
			return g.config.Log.Publish(ctx, stream.Receipts, partition, records...)
		})
		if err != nil {
			return err
		}
	}
	g.metrics.steps[publishStep].Observe(g.config.Clock.Now().Sub(began).Seconds())
	return nil
}

// collect gathers a batch: it waits for the first messages, then until the batch is full or the
// linger is over.
func (g *Ingest) collect(ctx context.Context, reader stream.Reader) (*batch, error) {
	b := &batch{}
	err := g.retry(ctx, readStep, func() error { return g.fetch(ctx, reader, b) })
	if err != nil {
		return nil, err
	}
	linger, cancel := context.WithTimeout(ctx, g.config.Linger)
	defer cancel()
	for len(b.messages) < g.config.MaxPages && b.bytes < g.config.MaxBytes {
		if g.fetch(linger, reader, b) != nil {
			break // the linger is over; any other error recurs at the next batch
		}
	}
	return b, nil
}

func (g *Ingest) fetch(ctx context.Context, reader stream.Reader, b *batch) error {
	messages, err := reader.Fetch(ctx, min(fetchMost, g.config.MaxPages-len(b.messages)))
	if err != nil {
		return err
	}
	g.skip(b.add(messages, g.config.Reader))
	return nil
}

// skip counts records that are refused for good. A retry would not help, and markers find their
// units.
func (g *Ingest) skip(records uint64) {
	if records == 0 {
		return
	}
	g.untold += records
	g.counts.undecodable.Add(records)
	if now := g.config.Clock.Now(); g.told.IsZero() || now.Sub(g.told) >= tellEvery {
		g.config.Logger.Warn("ingest: records skipped that cannot be decoded, or are of no page "+
			"of their run", "records", g.untold)
		g.told, g.untold = now, 0
	}
}

// commit only saves repeats: a batch that it fails to commit is read again and changes nothing.
func (g *Ingest) commit(ctx context.Context, reader stream.Reader, b *batch) {
	if err := reader.Commit(ctx, b.messages); err != nil && ctx.Err() == nil {
		g.counts.retries.Add(1)
		g.metrics.retries[commitStep].Inc()
		g.config.Logger.Warn("ingest: commit failed", "error", err)
	}
}

// retry calls try until it succeeds. It gives up only when ctx ends or the log is closed.
func (g *Ingest) retry(ctx context.Context, what step, try func() error) error {
	for failures := 1; ; failures++ {
		err := try()
		if err == nil {
			return nil
		}
		if errors.Is(err, stream.ErrClosed) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g.counts.retries.Add(1)
		g.metrics.retries[what].Inc()
		g.config.Logger.Warn("ingest: will try again", "step", what, "in", pauses.After(failures),
			"error", err)
		if !pauses.Wait(ctx, g.config.Clock, failures) {
			return ctx.Err()
		}
	}
}
