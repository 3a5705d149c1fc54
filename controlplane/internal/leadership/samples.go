package leadership

import (
	"time"

	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/telemetry"
)

// measure declares the figures that are read on request.
func (h *Holder) measure(to *telemetry.Metrics) {
	h.measureSteps(to)
	h.measureWindow(to)
	h.measureMoney(to)
	h.measureShards(to)
	h.measureArchive(to)
	h.measureSpace(to)
	h.clocks.measure(to, func() bool { return h.Current() != nil })
}

func (h *Holder) measureSteps(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*metrics, bool) { return h.metrics, true }).
		Counter("shoal_controlplane_tasks_published_total",
			"Tasks that this node published to the log as leader.",
			func(m *metrics) float64 { return float64(m.steps.Published.Load()) }).
		Counter("shoal_controlplane_tasks_refused_total",
			"Task publications refused because a shard's log was full.",
			func(m *metrics) float64 { return float64(m.steps.Full.Load()) }).
		Counter("shoal_controlplane_markers_sent_total", "Markers that this node sent as leader.",
			func(m *metrics) float64 { return float64(m.steps.MarkersSent.Load()) }).
		Counter("shoal_controlplane_markers_returned_total", "Markers that came back to this "+
			"node as leader.",
			func(m *metrics) float64 { return float64(m.steps.MarkersBack.Load()) }).
		Counter("shoal_controlplane_redispatches_total", "Dispatches found lost and sent again.",
			func(m *metrics) float64 { return float64(m.steps.Redispatched.Load()) }).
		Counter("shoal_controlplane_attempts_exhausted_total",
			"Links given up after repeated losses.",
			func(m *metrics) float64 { return float64(m.steps.Exhausted.Load()) }).
		Declare(to)
}

// measureWindow exports the dispatcher's figures, on the leader only.
func (h *Holder) measureWindow(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (stats dispatch.Stats, ok bool) {
		if l := h.Current(); l != nil {
			return l.dispatcher.Stats(), true
		}
		return stats, false
	}).
		Gauge("shoal_controlplane_window_out_units", "Units that are out, or proposed for "+
			"dispatch, on the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Out) }).
		Gauge("shoal_controlplane_window_room_units", "Units that may still be dispatched, on "+
			"the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Window - d.Out) }).
		Gauge("shoal_controlplane_window_aside_units",
			"Units set aside until their host has room, on the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Aside) }).
		Gauge("shoal_controlplane_window_unsent_units",
			"Units out whose task is not published yet, on the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Unsent) }).
		Gauge("shoal_controlplane_window_hosts",
			"Hosts with units out or set aside, on the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Hosts) }).
		Gauge("shoal_controlplane_runs_open", "Runs that are not closed, on the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Runs) }).
		Gauge("shoal_controlplane_markers_out", "Markers that have not come back, on the leader.",
			func(d dispatch.Stats) float64 { return float64(d.Markers) }).
		Gauge("shoal_controlplane_oldest_marker_age_seconds",
			"Age of the oldest marker that has not come back, on the leader.",
			func(d dispatch.Stats) float64 { return d.OldestMarker.Seconds() }).
		Declare(to)
}

// money sums up what open runs have reserved and been charged, and the unmatched payments.
type money struct {
	reserved, accrued int64 // micros
	unmatched         int64 // micros
	freeHeld          int64
}

// measureMoney exports reserved, charged and unmatched money, on the leader only. Only customers
// with open runs have reservations.
func (h *Holder) measureMoney(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (sum money, ok bool) {
		l := h.Current()
		if l == nil {
			return sum, false
		}
		view, seen := l.view(), map[string]bool{}
		sum.unmatched = view.Books().Unmatched
		for _, job := range view.OpenJobs() {
			sum.accrued += job.Charged
			if seen[job.Customer] {
				continue
			}
			seen[job.Customer] = true
			if wallet := view.Wallet(job.Customer); wallet != nil {
				sum.reserved += wallet.Reserved
				sum.freeHeld += wallet.FreeHeld
			}
		}
		return sum, true
	}).
		Gauge("shoal_controlplane_reserved_micros",
			"Money reserved for units that are out, in micros (millionths of a euro), on the "+
				"leader.",
			func(m money) float64 { return float64(m.reserved) }).
		Gauge("shoal_controlplane_reserved_free_requests",
			"Free requests reserved for units that are out, on the leader.",
			func(m money) float64 { return float64(m.freeHeld) }).
		Gauge("shoal_controlplane_accrued_micros",
			"Charges of runs that are not closed, in micros (millionths of a euro), on the leader.",
			func(m money) float64 { return float64(m.accrued) }).
		Gauge("shoal_controlplane_unmatched_micros",
			"Money paid in for a customer that does not exist, in micros (millionths of a euro), "+
				"on the leader.",
			func(m money) float64 { return float64(m.unmatched) }).
		Declare(to)
}

// measureArchive exports how far the archive lags, on the leader only.
func (h *Holder) measureArchive(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (age time.Duration, ok bool) {
		l := h.Current()
		if l == nil {
			return 0, false
		}
		view := l.view()
		view.ClosedAfter(view.ArchivedTo(), func(job *state.Job) bool {
			age = max(l.config.Clock.Now().Sub(time.UnixMilli(job.Finished)), 0)
			return false
		})
		view.MadeSealedAfter(view.ArchivedTo(), func(e *state.Entry) bool {
			age = max(l.config.Clock.Now().Sub(time.UnixMilli(e.CreatedAt)), age)
			return false
		})
		view.EachAudit(func(e *state.AuditEntry) bool {
			age = max(l.config.Clock.Now().Sub(time.UnixMilli(e.At)), age)
			return false
		})
		return age, true
	}).
		Gauge("shoal_archive_age_seconds",
			"Age of the oldest ended run, ledger entry or audit entry that is not archived yet, "+
				"on the leader; 0: all are archived.", func(age time.Duration) float64 { return age.Seconds() }).
		Declare(to)
}

// holders says which nodes own which shards.
type holders struct {
	nodes   []*state.Node
	ages    map[string]time.Duration
	shards  map[string]int
	unowned int
	moving  int
}

// measureShards exports owners and their leases, on the leader only.
func (h *Holder) measureShards(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (held holders, ok bool) {
		l := h.Current()
		if l == nil {
			return held, false
		}
		view := l.view()
		held = holders{nodes: view.Nodes(), ages: l.tracker.Ages(), shards: map[string]int{}}
		for _, shard := range view.Shards() {
			if shard.Owner == "" {
				held.unowned++
			} else {
				held.shards[shard.Owner]++
			}
			if shard.Next != "" {
				held.moving++
			}
		}
		return held, true
	}).
		Gauges("shoal_controlplane_shards_owned", "Shards owned by each node that has shards or "+
			"the capacity for them, on the leader.",
			[]string{"node"}, func(h holders, emit func(float64, ...string)) {
				for _, node := range h.nodes {
					if n := h.shards[node.Name]; n > 0 || node.Capacity > 0 {
						emit(float64(n), node.Name)
					}
				}
			}).
		Gauge("shoal_controlplane_shards_unowned", "Shards without an owner, on the leader.",
			func(h holders) float64 { return float64(h.unowned) }).
		Gauge("shoal_controlplane_shards_moving", "Shards waiting to be handed over, on the "+
			"leader.",
			func(h holders) float64 { return float64(h.moving) }).
		Gauges("shoal_controlplane_lease_age_seconds",
			"Time since the last heartbeat of each shard owner, on the leader.",
			[]string{"node"}, func(h holders, emit func(float64, ...string)) {
				for _, node := range h.nodes {
					if age, heard := h.ages[node.Name]; heard && h.shards[node.Name] > 0 {
						emit(age.Seconds(), node.Name)
					}
				}
			}).
		Declare(to)
}
