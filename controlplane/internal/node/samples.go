package node

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// countEvery is the least time between two counts of the state's records, which visit all of them.
const countEvery = time.Minute

// raftSample is Raft at one moment.
type raftSample struct {
	commit, applied, term uint64
	entries               uint64
	version               uint32 // of the cluster
	leads, led            bool
	voters, others        int
	logBytes              int64
}

func (n *Node) sampleRaft() (sample raftSample, ok bool) {
	r, err := n.Enter()
	if err != nil {
		return sample, false
	}
	defer n.Leave()
	_, leader := r.LeaderWithID()
	sample = raftSample{commit: r.CommitIndex(), term: r.CurrentTerm(),
		leads: r.State() == raft.Leader, led: leader != ""}
	if first, err := r.logs.FirstIndex(); err == nil && first > 0 {
		sample.entries = r.LastIndex() - first + 1
	}
	for _, server := range r.GetConfiguration().Configuration().Servers {
		if server.Suffrage == raft.Voter {
			sample.voters++
		} else {
			sample.others++
		}
	}
	if info, err := os.Stat(filepath.Join(n.config.Dir, raftFolder, "log.db")); err == nil {
		sample.logBytes = info.Size()
	}
	store := n.Store()
	sample.applied, _ = store.Progress()
	sample.version, _ = store.ClusterVersion()
	return sample, true
}

func (n *Node) measureRaft(to *telemetry.Metrics) {
	telemetry.NewSamples(n.sampleRaft).
		Gauge("shoal_controlplane_commit_index", "Index of the newest log entry that this node "+
			"knows to be on a majority.",
			func(r raftSample) float64 { return float64(r.commit) }).
		Gauge("shoal_controlplane_applied_index", "Index of the newest command applied to this "+
			"node's copy of the state.",
			func(r raftSample) float64 { return float64(r.applied) }).
		Gauge("shoal_controlplane_term", "Current Raft term.",
			func(r raftSample) float64 { return float64(r.term) }).
		Gauge("shoal_controlplane_cluster_version",
			"Active cluster version in this node's copy of the state.",
			func(r raftSample) float64 { return float64(r.version) }).
		Gauge("shoal_controlplane_leading", "1 on the leader.",
			func(r raftSample) float64 { return telemetry.Truth(r.leads) }).
		Gauge("shoal_controlplane_leader_known", "1 on nodes that know a leader.",
			func(r raftSample) float64 { return telemetry.Truth(r.led) }).
		Gauge("shoal_controlplane_voters", "Nodes that vote.",
			func(r raftSample) float64 { return float64(r.voters) }).
		Gauge("shoal_controlplane_nonvoters", "Nodes that have a copy of the state but no vote.",
			func(r raftSample) float64 { return float64(r.others) }).
		Gauge("shoal_controlplane_log_entries", "Entries kept in this node's log.",
			func(r raftSample) float64 { return float64(r.entries) }).
		Gauge("shoal_controlplane_log_bytes", "Size of this node's log file.",
			func(r raftSample) float64 { return float64(r.logBytes) }).
		Declare(to)
}

// measureRefusals exports how many connections and calls this node's port refused.
func (n *Node) measureRefusals(to *telemetry.Metrics) {
	type refused struct{ connections, calls uint64 }
	telemetry.NewSamples(func() (r refused, ok bool) {
		r.connections, r.calls = n.Refused()
		return r, true
	}).
		Counter("shoal_controlplane_refused_connections_total",
			"Connections refused at the node's cluster port.",
			func(r refused) float64 { return float64(r.connections) }).
		Counter("shoal_controlplane_refused_calls_total",
			"Calls from other nodes refused because their roles do not allow them.",
			func(r refused) float64 { return float64(r.calls) }).
		Declare(to)
}

// objects caches a count of the state's records.
type objects struct {
	node *Node

	mu      sync.Mutex
	counted time.Time
	counts  map[string]int
}

func (o *objects) count() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.node.config.Clock.Now(); o.counts == nil || now.Sub(o.counted) >= countEvery {
		o.counts, o.counted = o.node.Store().View().Counts(), now
	}
	return o.counts
}

// measureObjects exports the number of records by kind.
func (n *Node) measureObjects(to *telemetry.Metrics) {
	objects := &objects{node: n}
	telemetry.NewSamples(func() (map[string]int, bool) { return objects.count(), true }).
		Gauges("shoal_controlplane_state_objects",
			"Records in this node's copy of the state, counted once a minute.",
			[]string{"table"}, func(counts map[string]int, emit func(float64, ...string)) {
				for table, n := range counts {
					emit(float64(n), table)
				}
			}).
		Declare(to)
}

// measurePages exports the pages settled.
func (n *Node) measurePages(to *telemetry.Metrics) {
	telemetry.NewSamples(func() (*metrics, bool) { return n.metrics, true }).
		Counters("shoal_controlplane_settled_pages_total",
			"Pages settled in this node's copy of the state, by outcome.",
			[]string{"outcome"}, func(m *metrics, emit func(float64, ...string)) {
				emit(float64(m.delivered.Load()), "delivered")
				emit(float64(m.errored.Load()), "errored")
				emit(float64(m.other.Load()), "other")
			}).
		Declare(to)
}

// workSample is the background work of one kind.
type workSample struct {
	items  map[state.WorkState]int
	oldest int64 // longest time that an item has stood still, milliseconds
}

// sampleWork counts the open background work.
func (n *Node) sampleWork() (map[string]*workSample, bool) {
	store := n.Store()
	_, now := store.Progress()
	kinds := map[string]*workSample{}
	of := func(kind string) *workSample {
		if kinds[kind] == nil {
			kinds[kind] = &workSample{items: map[state.WorkState]int{}}
		}
		return kinds[kind]
	}
	for _, kind := range work.Kinds() {
		of(kind) // show 0, too
	}
	view := store.View()
	view.EachWork(func(w *state.Work) bool {
		of(w.Kind).items[w.State]++
		return true
	})
	for kind, stood := range view.WorkStoodStill(now) {
		of(kind).oldest = stood
	}
	return kinds, true
}

// measureWork exports the open background work.
func (n *Node) measureWork(to *telemetry.Metrics) {
	telemetry.NewSamples(n.sampleWork).
		Gauges("shoal_work_items", "Items of background work in this node's copy of the state.",
			[]string{"kind", "state"},
			func(kinds map[string]*workSample, emit func(float64, ...string)) {
				for name, kind := range kinds {
					for _, state := range state.WorkStates() {
						emit(float64(kind.items[state]), name, state.String())
					}
				}
			}).
		Gauges("shoal_work_oldest_seconds",
			"Longest time that an item has made no progress since it was due.",
			[]string{"kind"},
			func(kinds map[string]*workSample, emit func(float64, ...string)) {
				for name, kind := range kinds {
					emit(float64(kind.oldest)/1000, name)
				}
			}).
		Declare(to)
}
