// Package billing owns the way from receipts to money: it folds the receipts of stored pages into batches and has the
// control plane settle them. What a page costs, and whether it was charged before, is decided there, by the ledger; this
// role keeps no state of its own. It also recounts the ledger from page records.
package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/stream"
)

// group is the role's name on the log.
const group = "billing"

// Settler is what the role needs of the control plane.
type Settler interface {
	Settle(ctx context.Context, receipts []model.Receipt, markers []model.Marker) error
}

// Config makes the role. Everything is needed.
type Config struct {
	Settler Settler
	Log     stream.Log
	Clock   clock.Clock
	Point   func(name string) // called at named places, for crash tests
	Logger  *slog.Logger
}

// Bounds of a batch. How long it is gathered grows with what came within about the last second: a small run settles at
// once, and in bulk a batch has bulkReceipts and more.
const (
	maxBatch     = 4096
	minLinger    = 30 * time.Millisecond
	maxLinger    = time.Second
	bulkReceipts = 500
	minRetry     = 50 * time.Millisecond
	maxRetry     = 5 * time.Second
)

// Role is the billing role.
type Role struct {
	cfg     Config
	skipped atomic.Uint64
	recent  float64 // receipts within about the last second
	counted time.Time
}

// New makes the role; Run works.
func New(cfg Config) *Role { return &Role{cfg: cfg, counted: cfg.Clock.Now()} }

// Skipped counts the records that could not be decoded. Their units are found by markers.
func (r *Role) Skipped() uint64 { return r.skipped.Load() }

// Run settles receipts until ctx ends. It fails when the log is closed before that.
func (r *Role) Run(ctx context.Context) error {
	reader, err := r.cfg.Log.Consume(stream.Receipts, group)
	if err != nil {
		return fmt.Errorf("billing: %w", err)
	}
	defer func() { _ = reader.Close() }() // what is not committed comes again
	for {
		b, err := r.gather(ctx, reader)
		if err == nil {
			err = r.settle(ctx, reader, b)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, stream.ErrClosed):
			return fmt.Errorf("billing: %w", err)
		case err != nil:
			r.cfg.Logger.Warn("receipts were not read", "error", err)
			r.pause(ctx, minRetry)
		}
	}
}

// batch is what is settled at once: each marker stands behind all receipts read before it.
type batch struct {
	messages []stream.Message // their values are not kept
	receipts []model.Receipt
	markers  []model.Marker
}

// gather reads a batch: it waits for the first record, then for others as long as it pays.
func (r *Role) gather(ctx context.Context, reader stream.Reader) (*batch, error) {
	b := &batch{}
	if err := r.read(ctx, reader, b); err != nil {
		return nil, err
	}
	lingering, cancel := context.WithTimeout(ctx, r.linger(len(b.receipts)))
	defer cancel()
	for len(b.messages) < maxBatch {
		err := r.read(lingering, reader, b)
		if lingering.Err() != nil && ctx.Err() == nil {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	r.count(len(b.receipts))
	return b, nil
}

// read adds what the reader has.
func (r *Role) read(ctx context.Context, reader stream.Reader, b *batch) error {
	messages, err := reader.Fetch(ctx, maxBatch-len(b.messages))
	if err != nil {
		return err
	}
	undecodable := 0
	for _, message := range messages {
		receipt, marker, err := stream.DecodeReceipts(message.Value)
		switch {
		case err != nil:
			undecodable++
		case marker != nil:
			b.markers = append(b.markers, *marker)
		default:
			b.receipts = append(b.receipts, *receipt)
		}
		message.Value = nil
		b.messages = append(b.messages, message)
	}
	if undecodable > 0 {
		r.skipped.Add(uint64(undecodable))
		r.cfg.Logger.Warn("undecodable receipts were skipped", "records", undecodable)
	}
	return nil
}

// settle has a batch settled, however long it takes, and commits it.
func (r *Role) settle(ctx context.Context, reader stream.Reader, b *batch) error {
	r.cfg.Point("billing.before_settle")
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		err := r.cfg.Settler.Settle(ctx, b.receipts, b.markers)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.cfg.Logger.Warn("receipts were not settled; trying again", "receipts", len(b.receipts), "error", err)
		r.pause(ctx, wait)
	}
	r.cfg.Point("billing.after_settle")
	if err := reader.Commit(ctx, b.messages); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	r.cfg.Point("billing.after_commit")
	return nil
}

// linger is how long to wait for more when more receipts have come.
func (r *Role) linger(more int) time.Duration {
	recent := r.faded() + float64(more)
	return min(max(time.Duration(recent/bulkReceipts*float64(maxLinger)), minLinger), maxLinger)
}

func (r *Role) count(receipts int) {
	r.recent = r.faded() + float64(receipts)
	r.counted = r.cfg.Clock.Now()
}

// faded is recent as of now.
func (r *Role) faded() float64 {
	return r.recent * math.Exp(-r.cfg.Clock.Now().Sub(r.counted).Seconds())
}

func (r *Role) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-r.cfg.Clock.After(d):
	}
}
