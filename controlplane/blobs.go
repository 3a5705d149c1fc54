package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// Blobs is what a node needs of the blob store.
type Blobs interface {
	Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written, error)
	Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key blobstore.Key) error
	List(ctx context.Context, kind blobstore.Kind, owner string,
		next []byte) (blobstore.Page, error)
	Sweep(ctx context.Context, kind blobstore.Kind, how blobstore.Sweeping) (blobstore.Tally,
		error)
}

const (
	blobsEvery = time.Hour
	// blobGrace is how long a blob may exist before a command names it.
	blobGrace = 24 * time.Hour
)

// sweeper sweeps the blob store, and keeps the tallies for the metrics.
type sweeper struct {
	s       *Server
	mu      sync.Mutex
	tallies map[string]blobstore.Tally // by kind
	removed *prometheus.CounterVec
}

func newSweeper(s *Server) *sweeper {
	w := &sweeper{s: s, tallies: map[string]blobstore.Tally{}}
	if s.config.Metrics != nil {
		w.measure(s.config.Metrics)
	}
	return w
}

// Blobs removes expired and orphaned blobs and counts the rest, as background work of the leader.
// Exports and catalogues that the state does not name are orphans. So are the bodies of what was
// deleted. Other kinds have no orphans.
func (s *Server) Blobs() work.Kind {
	return work.Kind{Name: work.Blobs, Recurring: true, AtStart: true,
		Ready: func() bool { return s.holder.Current() != nil },
		Step: func(ctx context.Context, _ work.Item) (work.Outcome, error) {
			switch {
			case s.holder.Current() == nil:
				return work.Rest(nil, 0), nil // the next leader goes on
			case s.config.Blobs == nil:
				return work.Rest(nil, blobsEvery), nil
			}
			return work.Rest(nil, blobsEvery), s.sweeper.sweep(ctx)
		}}
}

// sweep sweeps every kind, even when one fails. While the time is uncertain, it removes nothing.
func (w *sweeper) sweep(ctx context.Context) error {
	var failed []error
	now, ok := w.s.holder.Clocks().Safe()
	if !ok {
		now = time.Time{}
	}
	for _, kind := range blobstore.Kinds() {
		how := blobstore.Sweeping{Now: now, Grace: blobGrace}
		switch kind {
		case blobstore.Exports:
			how.Named = w.named(namesExport)
		case blobstore.Bodies:
			// A run exists before its packs do, so no grace is needed.
			how.Lifetime, how.Grace, how.Named = bodies.Lifetime, 0, w.named(namesPack)
		case blobstore.Catalogues:
			how.Named = w.named(namesCatalogue)
		}
		tally, err := w.s.config.Blobs.Sweep(ctx, kind, how)
		if w.removed != nil {
			w.removed.WithLabelValues(kind.Name, "expired").Add(float64(tally.Expired))
			w.removed.WithLabelValues(kind.Name, "orphan").Add(float64(tally.Orphans))
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		w.mu.Lock()
		w.tallies[kind.Name] = tally
		w.mu.Unlock()
	}
	return errors.Join(failed...)
}

// named returns what asks the newest state whether it names a blob. In the grace period after a
// restore it names all.
func (w *sweeper) named(names func(*state.View, blobstore.Key) bool) func(
	context.Context) (func(blobstore.Key) bool, error) {
	return func(ctx context.Context) (func(blobstore.Key) bool, error) {
		spared, err := w.s.Spare(ctx)
		if err != nil {
			return nil, err
		}
		view, err := w.s.proposer.Fresh(ctx)
		if err != nil {
			return nil, err
		}
		return func(key blobstore.Key) bool { return spared > 0 || names(view, key) }, nil
	}
}

// namesExport reports whether the state names an export's file: ID-BLOB, each 24 hex digits.
func namesExport(view *state.View, key blobstore.Key) bool {
	id, blob, _ := strings.Cut(key.ID, "-")
	parsed, err := ids.Parse(id)
	if err != nil {
		return false
	}
	e := view.Export(parsed)
	return e != nil && e.Customer == key.Owner && e.Blob.String() == blob
}

// namesPack reports whether a pack's scraper and group exist and its run was not deleted.
func namesPack(view *state.View, key blobstore.Key) bool {
	p, ok := bodies.ParsePack(key)
	scraper, group := view.Scraper(p.Scraper), view.Group(p.Group)
	return ok && scraper != nil && scraper.Customer == key.Owner && group != nil &&
		view.DeletedRun(p.Job) == nil && view.UndoneRun(p.Job) == nil
}

// namesCatalogue reports whether the state names a catalogue's file.
func namesCatalogue(view *state.View, key blobstore.Key) bool {
	id, err := ids.Parse(key.ID)
	return err == nil && view.Catalogue(id) != nil
}

// dropBodies removes the kept bodies of runs that a restore undid. The marks of the runs go soon
// afterwards, and nothing else tells a sweep that these packs are of no run.
func (w *sweeper) dropBodies(ctx context.Context, undone []*state.Undone) error {
	if w.s.config.Blobs == nil {
		return nil
	}
	runs := map[string]map[ids.ID]bool{} // by customer
	for _, u := range undone {
		if runs[u.Customer] == nil {
			runs[u.Customer] = map[ids.ID]bool{}
		}
		runs[u.Customer][u.Job] = true
	}
	for customer, jobs := range runs {
		for at := []byte(nil); ; {
			page, err := w.s.config.Blobs.List(ctx, blobstore.Bodies, customer, at)
			if err != nil {
				return fmt.Errorf("bodies of customer %s: %w", customer, err)
			}
			for _, info := range page.Blobs {
				if p, ok := bodies.ParsePack(info.Key); !ok || !jobs[p.Job] {
					continue
				}
				if err := w.s.config.Blobs.Delete(ctx, info.Key); err != nil {
					return fmt.Errorf("bodies of a run that a restore undid: %w", err)
				}
			}
			if at = page.Next; at == nil {
				break
			}
		}
	}
	return nil
}

// shown returns the tally of each kind. It is ok only on the leader.
func (w *sweeper) shown() (found map[string]blobstore.Tally, ok bool) {
	if w.s.holder.Current() == nil {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	found = map[string]blobstore.Tally{}
	for kind, tally := range w.tallies {
		found[kind] = tally
	}
	return found, true
}

// measure exports the tallies by kind. A label per customer would be unbounded, so only the largest
// customer's bytes are shown.
func (w *sweeper) measure(to *telemetry.Metrics) {
	w.removed = to.Counters("shoal_blob_removed_total",
		"Blobs removed because they had expired, or were orphans that nothing refers "+
			"to.", "kind", "reason")
	each := func(value func(t blobstore.Tally) float64) func(map[string]blobstore.Tally,
		func(float64, ...string)) {
		return func(found map[string]blobstore.Tally, emit func(float64, ...string)) {
			for kind, tally := range found {
				emit(value(tally), kind)
			}
		}
	}
	telemetry.NewSamples(w.shown).
		Gauges("shoal_blob_objects", "Blobs in the blob store at the last hourly count, on the "+
			"leader.", []string{"kind"},
			each(func(t blobstore.Tally) float64 { return float64(t.Blobs) })).
		Gauges("shoal_blob_bytes", "Bytes in the blob store at the last hourly count, on the "+
			"leader.", []string{"kind"},
			each(func(t blobstore.Tally) float64 { return float64(t.Bytes) })).
		Gauges("shoal_blob_largest_customer_bytes", "Bytes of the customer with the most bytes "+
			"in the blob store, on the leader.", []string{"kind"},
			each(func(t blobstore.Tally) float64 { return float64(t.Largest()) })).
		Declare(to)
}
