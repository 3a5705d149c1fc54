package leadership

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/controlplane/internal/steps"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// metrics are a node's counters over all its leaderships.
type metrics struct {
	moves            prometheus.Counter
	archived         prometheus.Counter
	routines, closed *prometheus.CounterVec
	steps            steps.Counts
}

func newMetrics(to *telemetry.Metrics) *metrics {
	return &metrics{
		moves: to.Counter("shoal_controlplane_shard_moves_total",
			"Shards that this node gave to another owner as leader."),
		archived: to.Counter("shoal_archive_records_total",
			"Runs, ledger entries and audit entries that this node moved from the state to the "+
				"archive as leader."),
		routines: to.Counters("shoal_controlplane_routine_failures_total",
			"Failures of the leader's routines. A routine resumes after a pause.", "routine"),
		closed: to.Counters("shoal_controlplane_runs_closed_total",
			"Runs that this node closed as leader, by outcome.",
			"outcome"),
	}
}

// assigned counts the shards that changed owners: their epochs have increased.
func (m *metrics) assigned(view *state.View, changes []command.ShardChange) {
	for _, change := range changes {
		if shard := view.Shard(change.Number); shard != nil && shard.Epoch > change.Epoch {
			m.moves.Inc()
		}
	}
}

// runClosed logs and counts a run that the leader closed.
func (l *Leadership) runClosed(id ids.ID) {
	job := l.view().Job(id)
	if job == nil || !job.Closed {
		return
	}
	outcome := strings.ToLower(string(job.State))
	if job.State == model.Stopped && job.Reason != "" {
		outcome = strings.ToLower(string(job.Reason))
	}
	l.metrics.closed.WithLabelValues(outcome).Inc()
	l.config.Logger.Info("run closed", "job", job.ID, "outcome", outcome, "pages", job.Pages,
		"delivered", job.Delivered,
		"errors", job.Errors, "items", job.Items)
}
