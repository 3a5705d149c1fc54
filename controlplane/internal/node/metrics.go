package node

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

// metrics are a node's counters. Its other figures are read on request (samples.go).
type metrics struct {
	clock                         clock.Clock
	proposals, applies, snapshots prometheus.Observer // seconds
	snapshotBytes                 prometheus.Gauge
	writes                        prometheus.Observer // seconds
	leaders                       prometheus.Counter
	elections                     *prometheus.CounterVec

	seeing sync.Mutex
	seen   leaderOf // the newest

	delivered, errored, other atomic.Uint64 // pages settled
}

func newMetrics(config *Config) *metrics {
	to := config.Metrics
	m := &metrics{
		clock: config.Clock,
		proposals: to.Histogram("shoal_controlplane_propose_seconds",
			"Time from a command's proposal on the leader until the leader has applied it.",
			telemetry.FastSeconds),
		applies: to.Histogram("shoal_controlplane_apply_seconds",
			"Time in which the state machine applies one command.",
			telemetry.FastSeconds),
		snapshots: to.Histogram("shoal_controlplane_snapshot_seconds", "Time to write a snapshot.",
			telemetry.SlowSeconds),
		snapshotBytes: to.Gauge("shoal_controlplane_snapshot_bytes",
			"Size of the newest snapshot that this node wrote."),
		writes: to.Histogram("shoal_controlplane_raft_write_seconds",
			"Time of one synced disk write of Raft's log, term or vote.",
			telemetry.FastSeconds),
		elections: to.Counters("shoal_controlplane_elections_total",
			"Elections that this node started, by outcome.",
			"outcome"),
		leaders: to.Counter("shoal_controlplane_leader_changes_total",
			"New leaderships that this node has seen."),
	}
	for _, outcome := range []string{electionWon, electionLost} {
		m.elections.WithLabelValues(outcome) // show 0, too
	}
	return m
}

func (m *metrics) now() time.Time { return m.clock.Now() }

func (m *metrics) since(began time.Time) float64 { return m.clock.Now().Sub(began).Seconds() }

// proposed records a command that went through this node's log.
func (m *metrics) proposed(began time.Time) { m.proposals.Observe(m.since(began)) }

// applied records a command, on the state machine's goroutine.
func (m *metrics) applied(result fsm.Result, began time.Time) {
	m.applies.Observe(m.since(began))
	if settled, ok := result.Value.(command.Settled); ok {
		m.delivered.Add(uint64(settled.Delivered))
		m.errored.Add(uint64(settled.Errored))
		m.other.Add(uint64(settled.Other))
	}
}

// settled returns the pages settled since the start, and how many of them are errors.
func (m *metrics) settled() (pages, errored uint64) {
	errored = m.errored.Load()
	return m.delivered.Load() + errored, errored
}

// snapshot records a written snapshot.
func (m *metrics) snapshot(bytes int64, began time.Time) {
	m.snapshots.Observe(m.since(began))
	m.snapshotBytes.Set(float64(bytes))
}

// electionEnded counts an election that this node began.
func (m *metrics) electionEnded(outcome string) { m.elections.WithLabelValues(outcome).Inc() }

// leaderChanges counts Raft's leader changes. It never makes Raft wait.
func (m *metrics) leaderChanges() *raft.Observer {
	return raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if seen, changed := o.Data.(raft.LeaderObservation); changed {
			m.sawLeader(leaderOf{seen.LeaderID, o.Raft.CurrentTerm()})
		}
		return false
	})
}

// leaderOf is a leader and its term; node is "" when there is none.
type leaderOf struct {
	node raft.ServerID
	term uint64
}

// sawLeader counts each leadership once, however often this node loses sight of it.
func (m *metrics) sawLeader(now leaderOf) {
	m.seeing.Lock()
	defer m.seeing.Unlock()
	if now.node != "" && now != m.seen {
		m.seen = now
		m.leaders.Inc()
	}
}

// countedWriter counts the bytes written.
type countedWriter struct {
	to    io.Writer
	bytes int64
}

// Write implements io.Writer.
func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.bytes += int64(n)
	return n, err
}
