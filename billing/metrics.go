package billing

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/telemetry"
)

// metrics are counted once a batch, whatever its size.
type metrics struct {
	receipts, seconds prometheus.Observer
	markers           prometheus.Counter
	settled           prometheus.Gauge
}

func newMetrics(to *telemetry.Metrics) *metrics {
	return &metrics{
		receipts: to.Histogram("shoal_billing_batch_receipts", "Receipts of a settled batch.",
			telemetry.Sizes),
		seconds: to.Histogram("shoal_billing_settle_seconds",
			"Time to settle a batch, its repeats included.",
			telemetry.FastSeconds),
		markers: to.Counter("shoal_billing_markers_total", "Markers handed to the leader."),
		settled: to.Gauge("shoal_billing_last_batch_timestamp_seconds",
			"When the last batch was settled, in Unix time."),
	}
}

// measure shows what is counted anyway.
func (b *Billing) measure(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (Counts, bool) { return b.Counts(), true }).
		Counter("shoal_billing_receipts_total", "Receipts passed to a settle command.",
			func(c Counts) float64 { return float64(c.Receipts) }).
		Counter("shoal_billing_undecodable_records_total",
			"Records skipped: undecodable, or refused by the control plane for good.",
			func(c Counts) float64 { return float64(c.Undecodable) }).
		Counter("shoal_billing_settle_retries_total",
			"Settle commands that failed and were repeated.",
			func(c Counts) float64 { return float64(c.Retries) }).
		Declare(to)
}

// done notes a batch that is settled.
func (b *Billing) done(full *batch, began time.Time) {
	now := b.config.Clock.Now()
	b.metrics.receipts.Observe(float64(len(full.receipts)))
	b.metrics.seconds.Observe(now.Sub(began).Seconds())
	b.metrics.markers.Add(float64(len(full.markers)))
	b.metrics.settled.Set(float64(now.UnixMilli()) / 1000)
}

// dailyMetrics are of the daily check.
type dailyMetrics struct {
	runs                    prometheus.Counter
	unequal, ended, seconds prometheus.Gauge
}

func newDailyMetrics(to *telemetry.Metrics) *dailyMetrics {
	return &dailyMetrics{
		runs: to.Counter("shoal_billing_recount_runs_total",
			"Runs held against their page records by the daily check."),
		unequal: to.Gauge("shoal_billing_recount_unequal_runs",
			"Runs that the newest daily check found unequal to the ledger; 0 on a node whose "+
				"turn it is not."),
		ended: to.Gauge("shoal_billing_recount_ended_timestamp_seconds",
			"When this node's newest daily check ended, in Unix time; 0: never."),
		seconds: to.Gauge("shoal_billing_recount_last_seconds",
			"How long this node's newest daily check took."),
	}
}

// show tells of the newest check. What one that is under way has found is not kept back until its
// end.
func (m *dailyMetrics) show(c *check, turn bool) {
	unequal := c.Last.Unequal
	if c.Running {
		unequal = max(unequal, c.Unequal)
	}
	if !turn {
		unequal = 0
	}
	m.unequal.Set(float64(unequal))
	m.ended.Set(float64(c.Last.Ended) / 1000)
	m.seconds.Set(float64(c.Last.Took) / 1000)
}
