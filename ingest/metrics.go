package ingest

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/telemetry"
)

// step names a step of a batch, in logs and metrics.
type step string

const (
	readStep    step = "read"
	lookUpStep  step = "look-up"
	storeStep   step = "store"
	publishStep step = "publish"
	commitStep  step = "commit"
)

// metrics are updated once per batch, whatever its size.
type metrics struct {
	pages, bytes, seconds prometheus.Observer
	steps                 map[step]prometheus.Observer // seconds
	retries               map[step]prometheus.Counter
	fresh                 prometheus.Counter
	stored                prometheus.Gauge
}

func newMetrics(to *telemetry.Metrics) *metrics {
	m := &metrics{
		pages: to.Histogram("shoal_ingest_batch_pages", "Records in a batch.", telemetry.Sizes),
		bytes: to.Histogram("shoal_ingest_batch_bytes", "Encoded bytes of a batch.",
			telemetry.Bytes),
		seconds: to.Histogram("shoal_ingest_batch_seconds",
			"Time from a batch's last record to its commit.",
			telemetry.FastSeconds),
		steps:   map[step]prometheus.Observer{},
		retries: map[step]prometheus.Counter{},
		fresh: to.Counter("shoal_ingest_fresh_lookups_total",
			"Batches that needed the control plane's newest state to look up a run."),
		stored: to.Gauge("shoal_ingest_last_batch_timestamp_seconds",
			"When the last batch was committed, in Unix time."),
	}
	seconds := to.Histograms("shoal_ingest_step_seconds",
		"Time of one step of a batch, retries included.",
		telemetry.FastSeconds, "step")
	retries := to.Counters("shoal_ingest_retries_total", "Steps that failed and were retried.",
		"step")
	for _, s := range []step{readStep, lookUpStep, storeStep, publishStep, commitStep} {
		m.retries[s] = retries.WithLabelValues(string(s))
	}
	for _, s := range []step{lookUpStep, storeStep, publishStep} {
		m.steps[s] = seconds.WithLabelValues(string(s))
	}
	return m
}

// measure exports the counts as metrics.
func (g *Ingest) measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (Counts, bool) { return g.Counts(), true }).
		Counter("shoal_ingest_pages_total", "Pages stored, or found to be stored already.",
			func(c Counts) float64 { return float64(c.Stored) }).
		Counter("shoal_ingest_rows_total", "Rows of the pages that were stored, or found to be "+
			"stored already.",
			func(c Counts) float64 { return float64(c.Rows) }).
		Counter("shoal_ingest_dropped_pages_total", "Pages dropped because their run is unknown "+
			"or closed.",
			func(c Counts) float64 { return float64(c.Dropped) }).
		Counter("shoal_ingest_undecodable_records_total",
			"Records skipped: undecodable, malformed, or beyond the end of their run's list.",
			func(c Counts) float64 { return float64(c.Undecodable) }).
		Declare(to)
}

// timed is retry, and records how long it took.
func (g *Ingest) timed(ctx context.Context, what step, try func() error) error {
	began := g.config.Clock.Now()
	err := g.retry(ctx, what, try)
	g.metrics.steps[what].Observe(g.config.Clock.Now().Sub(began).Seconds())
	return err
}

// done records a committed batch.
func (g *Ingest) done(b *batch, began time.Time) {
	now := g.config.Clock.Now()
	g.metrics.pages.Observe(float64(len(b.messages)))
	g.metrics.bytes.Observe(float64(b.bytes))
	g.metrics.seconds.Observe(now.Sub(began).Seconds())
	g.metrics.stored.Set(float64(now.UnixMilli()) / 1000)
}
