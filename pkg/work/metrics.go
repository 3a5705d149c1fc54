package work

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/pkg/telemetry"
)

// metrics count a node's work. The control plane exports what is open.
type metrics struct {
	exchanges, lapsed prometheus.Counter
	steps             *prometheus.CounterVec
	seconds           *prometheus.HistogramVec
}

func newMetrics(to *telemetry.Metrics) *metrics {
	return &metrics{
		exchanges: to.Counter("shoal_work_exchanges_total",
			"Turns of this node at the table of background work. Each turn is a command."),
		lapsed: to.Counter("shoal_work_leases_lapsed_total",
			"Times that this node's lease on its background work lapsed because no turn renewed "+
				"it."),
		steps: to.Counters("shoal_work_steps_total",
			"Steps of background work on this node, by outcome: done, cut or failed.",
			"kind", "outcome"),
		seconds: to.Histograms("shoal_work_step_seconds", "Time of a step of background work.",
			telemetry.SlowSeconds, "kind"),
	}
}

// stepped counts a step.
func (m *metrics) stepped(kind string, err error, cut bool, took time.Duration) {
	outcome := "done"
	switch {
	case err != nil && cut:
		outcome = "cut"
	case err != nil:
		outcome = "failed"
	}
	m.steps.WithLabelValues(kind, outcome).Inc()
	m.seconds.WithLabelValues(kind).Observe(took.Seconds())
}
