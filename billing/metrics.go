package billing

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// metrics are updated once per batch, whatever its size.
type metrics struct {
	receipts, seconds prometheus.Observer
	markers           prometheus.Counter
	settled           prometheus.Gauge
}

func newMetrics(to *telemetry.Metrics) *metrics {
	return &metrics{
		receipts: to.Histogram("shoal_billing_batch_receipts", "Receipts in a settled batch.",
			telemetry.Sizes),
		seconds: to.Histogram("shoal_billing_settle_seconds",
			"Time to settle a batch, retries included.",
			telemetry.FastSeconds),
		markers: to.Counter("shoal_billing_markers_total", "Markers handed to the leader."),
		settled: to.Gauge("shoal_billing_last_batch_timestamp_seconds",
			"When the last batch was settled, in Unix time."),
	}
}

// measure exports the counts as metrics.
func (b *Billing) measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (Counts, bool) { return b.Counts(), true }).
		Counter("shoal_billing_receipts_total", "Receipts passed to a settle command.",
			func(c Counts) float64 { return float64(c.Receipts) }).
		Counter("shoal_billing_undecodable_records_total",
			"Records skipped: undecodable, or permanently refused by the control plane.",
			func(c Counts) float64 { return float64(c.Undecodable) }).
		Counter("shoal_billing_settle_retries_total",
			"Settle commands that failed and were retried.",
			func(c Counts) float64 { return float64(c.Retries) }).
		Declare(to)
}

// done records a settled batch.
func (b *Billing) done(full *batch, began time.Time) {
	now := b.config.Clock.Now()
	b.metrics.receipts.Observe(float64(len(full.receipts)))
	b.metrics.seconds.Observe(now.Sub(began).Seconds())
	b.metrics.markers.Add(float64(len(full.markers)))
	b.metrics.settled.Set(float64(now.UnixMilli()) / 1000)
}

// measure exports the newest check, from this node's copy of the state. A running check already
// shows what it has found.
func (d *Daily) measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (c check, ok bool) {
		for _, item := range d.config.Control.View().WorkOf(work.Recount, "") {
			c = d.read(item.Progress)
		}
		return c, true
	}).
		Gauge("shoal_billing_recount_unequal_runs",
			"Runs whose page records and ledger entry differed in the newest daily check.",
			func(c check) float64 {
				if c.Running {
					return float64(max(c.Unequal, c.Last.Unequal))
				}
				return float64(c.Last.Unequal)
			}).
		Gauge("shoal_billing_books_unequal_accounts",
			"Accounts of the ledger, such as wallets, that were not the sum of their entries in "+
				"the newest daily check.",
			func(c check) float64 { return float64(c.Last.Books + c.Wallets.unequal()) }).
		Gauge("shoal_billing_recount_ended_timestamp_seconds",
			"When the newest daily check ended, in Unix time; 0: never.",
			func(c check) float64 { return float64(c.Last.Ended) / 1000 }).
		Gauge("shoal_billing_recount_round_ended_timestamp_seconds",
			"When the daily checks had last read all older runs since the first, in Unix time; "+
				"0: never.",
			func(c check) float64 { return float64(c.RoundEnded) / 1000 }).
		Gauge("shoal_billing_recount_last_seconds", "How long the newest daily check took.",
			func(c check) float64 { return float64(c.Last.Took) / 1000 }).
		Declare(to)
}
