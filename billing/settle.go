// Package billing owns the step from stored pages to settled ones. It reads the topic `receipts`
// and folds receipts into Settle commands. When the state applies a command, it decides what a page
// costs, and whether it was settled before.
package billing

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/telemetry"
)

// Group is the name under which all billing nodes read `receipts` together.
const Group = "billing"

// Bounds of one Settle command, and how long its first receipt waits for others. The more receipts
// came within about the last second, the longer it waits. So a small run settles at once, and a
// large run needs only one command for bulk or more pages. The size of the last batch is no guide:
// within minLinger a large run brings no more receipts than a small one. A batch also ends when
// nothing comes for quiet. When a run begins, its hosts get more work once the first pages are
// settled. When a run ends, nothing follows.
const (
	maxReceipts = 2048 // a batch with this many is full; it overshoots by less than one read
	bulk        = 500  // receipts in the last second that raise the wait to maxLinger
	minLinger   = 25 * time.Millisecond
	maxLinger   = time.Second
	quiet       = 200 * time.Millisecond // some batches of ingest under bulk load
	fetchMost   = 512
)

// tellEvery is the least time between two log lines about skipped records.
const tellEvery = time.Minute

// Config configures a Billing. Logger, Clock, Metrics, Tracer and Point may be left out.
type Config struct {
	Log stream.Log
	// Settle applies a batch and hands on its markers; the control plane's client provides it.
	Settle  func(ctx context.Context, receipts []model.Receipt, markers []model.Marker) error
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	Tracer  *telemetry.Tracer
	Reader  *reading.Guard // guards the decoding of records; nil: keeps no evidence
	// Point is called with the name of each completed step, for tests that end the process there.
	Point func(name string)
}

// Billing is the billing role. Its counts begin at 0 with the process.
type Billing struct {
	config      Config
	metrics     *metrics
	settled     atomic.Uint64
	batches     atomic.Uint64
	undecodable atomic.Uint64
	retries     atomic.Uint64

	recent  float64 // receipts of about the last second, as of the time counted
	counted time.Time

	told   time.Time // when the log last reported skipped records
	untold uint64    // skipped since then
}

// Counts are totals since the start of the process.
type Counts struct {
	Receipts    uint64 // passed to Settle
	Batches     uint64
	Undecodable uint64 // records skipped; markers find their units
	Retries     uint64 // failed calls of Settle
}

// New makes a Billing; Run starts it.
func New(config Config) *Billing {
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Reader == nil {
		config.Reader = reading.New("billing",
			reading.Config{Clock: config.Clock, Logger: config.Logger})
	}
	if config.Point == nil {
		config.Point = func(string) {}
	}
	b := &Billing{config: config, metrics: newMetrics(config.Metrics), counted: config.Clock.Now()}
	b.measure(config.Metrics)
	return b
}

// Counts returns a snapshot of the totals.
func (b *Billing) Counts() Counts {
	return Counts{Receipts: b.settled.Load(), Batches: b.batches.Load(),
		Undecodable: b.undecodable.Load(), Retries: b.retries.Load()}
}

// Run works until ctx ends. It fails only when the log is closed.
func (b *Billing) Run(ctx context.Context) error {
	reader, err := b.config.Log.Consume(stream.Receipts, Group)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }() // whatever was not committed is read again
	for {
		batch, err := b.gather(ctx, reader)
		if err == nil {
			err = b.settleBatch(ctx, batch)
		}
		if err == nil {
			err = reader.Commit(ctx, batch.messages)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, stream.ErrClosed):
			return err
		case err != nil:
			b.config.Logger.Warn("billing: commit failed, the batch comes again", "error", err)
			continue
		}
		b.config.Point("billing.after_commit")
	}
}

// batch is the content of one Settle command.
type batch struct {
	messages []stream.Message
	receipts []model.Receipt
	markers  []model.Marker
	traced   []traced
}

// gather reads until the batch is full or its first record has waited long enough.
func (b *Billing) gather(ctx context.Context, reader stream.Reader) (*batch, error) {
	messages, err := reader.Fetch(ctx, fetchMost)
	if err != nil {
		return nil, err
	}
	var full batch
	b.add(&full, messages)
	for until := b.config.Clock.Now().Add(b.linger(len(full.receipts))); len(
		full.receipts) < maxReceipts; {
		wait := min(until.Sub(b.config.Clock.Now()), quiet)
		if wait <= 0 {
			break
		}
		messages, err := b.fetch(ctx, reader, wait)
		if err != nil {
			break // the time is over; a broken log shows at the next read
		}
		b.add(&full, messages)
	}
	b.count(len(full.receipts))
	return &full, ctx.Err()
}

// fetch reads the messages that come within wait.
func (b *Billing) fetch(ctx context.Context, reader stream.Reader,
	wait time.Duration) ([]stream.Message, error) {
	waiting, stop := context.WithCancel(ctx)
	timer := b.config.Clock.After(wait)
	released := make(chan struct{})
	go func() {
		defer close(released)
		select {
		case <-timer:
			stop()
		case <-waiting.Done():
		}
	}()
	messages, err := reader.Fetch(waiting, fetchMost)
	stop()
	<-released
	return messages, err
}

// linger returns how long a batch waits for more after come receipts have come.
func (b *Billing) linger(come int) time.Duration {
	wait := time.Duration((b.faded() + float64(come)) / bulk * float64(maxLinger))
	return min(max(wait, minLinger), maxLinger)
}

func (b *Billing) count(receipts int) {
	b.recent = b.faded() + float64(receipts)
	b.counted = b.config.Clock.Now()
}

// faded returns recent, decayed until now: it falls to 1/e in a second.
func (b *Billing) faded() float64 {
	return b.recent * math.Exp(-b.config.Clock.Now().Sub(b.counted).Seconds())
}

func (b *Billing) add(to *batch, messages []stream.Message) {
	for _, m := range messages {
		var receipt *model.Receipt
		var marker *model.Marker
		var err error
		read := func() { receipt, marker, err = stream.DecodeReceipts(m.Value) }
		if panicked := b.config.Reader.Run(reading.Page{URL: "a record of receipts", Body: m.Value},
			read); panicked != nil {
			err = panicked
		}
		switch {
		case err != nil:
			b.skip(1, err)
		case marker != nil:
			to.markers = append(to.markers, *marker)
		default:
			to.detach(receipt)
			to.receipts = append(to.receipts, *receipt)
		}
		m.Value = nil // the value is not ours after the next Fetch
		to.messages = append(to.messages, m)
	}
}

// settleBatch repeats the batch until it is applied or ctx ends. An error leaves open whether it
// was applied, and repeating is harmless.
func (b *Billing) settleBatch(ctx context.Context, full *batch) error {
	b.config.Point("billing.before_settle")
	began := b.config.Clock.Now()
	if err := b.apply(ctx, full.receipts, full.markers); err != nil {
		return err
	}
	b.config.Point("billing.after_settle")
	b.batches.Add(1)
	b.done(full, began)
	b.trace(full, began)
	return nil
}

// settleAgain is the backoff after failures. apply adds jitter, so nodes do not retry in step.
var settleAgain = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// apply settles receipts and then hands on the markers behind them. It finds receipts that are
// refused for good by bisection, and skips them, so that the others do not wait. Markers find the
// skipped units.
func (b *Billing) apply(ctx context.Context, receipts []model.Receipt,
	markers []model.Marker) error {
	for failures := 1; ; failures++ {
		err := b.config.Settle(ctx, receipts, markers)
		switch {
		case err == nil:
			b.settled.Add(uint64(len(receipts)))
			return nil
		case refusedForGood(err) && len(receipts) > 1:
			half := len(receipts) / 2
			if err := b.apply(ctx, receipts[:half], nil); err != nil {
				return err
			}
			return b.apply(ctx, receipts[half:], markers)
		case refusedForGood(err) && len(receipts) == 1:
			b.skip(1, err)
			receipts = nil
			continue
		}
		b.retries.Add(1)
		b.config.Logger.Warn("billing: settle failed, trying again", "error", err)
		wait := settleAgain.After(failures)
		if !clock.Pause(ctx, b.config.Clock, wait/2+rand.N(wait/2)) {
			return ctx.Err()
		}
	}
}

// refusedForGood says whether a command would be refused every time: it is too large, or no node
// could decode it.
func refusedForGood(err error) bool {
	return errors.Is(err, fault.New(fault.InvalidRequest, "")) ||
		errors.Is(err, fault.New(fault.PayloadTooLarge, ""))
}

// skip counts records that are refused for good.
func (b *Billing) skip(records uint64, why error) {
	b.untold += records
	b.undecodable.Add(records)
	if now := b.config.Clock.Now(); b.told.IsZero() || now.Sub(b.told) >= tellEvery {
		b.config.Logger.Warn("billing: records skipped that are refused for good", "records",
			b.untold, "error", why)
		b.told, b.untold = now, 0
	}
}
