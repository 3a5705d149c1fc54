package node

import (
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	dto "github.com/prometheus/client_model/go"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

func TestSettledPagesAreCounted(t *testing.T) {
	t.Parallel()
	m := newMetrics(&Config{Clock: clock.System{}})
	m.applied(fsm.Result{Value: command.Settled{Delivered: 3, Errored: 1, Other: 2}}, m.now())
	m.applied(fsm.Result{Value: command.None{}}, m.now())
	m.applied(fsm.Result{Err: io.ErrUnexpectedEOF}, m.now())
	if pages, errored := m.settled(); pages != 4 || errored != 1 {
		t.Errorf("%d pages, %d of them errors", pages, errored)
	}
}

// TestLeaderChangesAreCountedInPassing: Raft must never wait for an observer.
func TestLeaderChangesAreCountedInPassing(t *testing.T) {
	t.Parallel()
	to := telemetry.NewMetrics()
	m := newMetrics(&Config{Clock: clock.System{}, Metrics: to})
	if m.leaderChanges() == nil {
		t.Fatal("nobody watches")
	}
	inm, transport := raft.NewInmemTransport("n1")
	store := raft.NewInmemStore()
	config := raft.DefaultConfig()
	config.LocalID, config.LogOutput = "n1", io.Discard
	err := raft.BootstrapCluster(config, store, store, raft.NewDiscardSnapshotStore(), transport,
		raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: inm}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := raft.NewRaft(config, &raft.MockFSM{}, store, store, raft.NewDiscardSnapshotStore(),
		transport)
	if err != nil {
		t.Fatal(err)
	}
	r.RegisterObserver(m.leaderChanges())
	<-r.LeaderCh()
	if err := r.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	families, err := to.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "shoal_controlplane_leader_changes_total" &&
			family.GetMetric()[0].GetCounter().GetValue() > 0 {
			return
		}
	}
	t.Error("no change of the leader is counted")
}

// TestLeadershipsAreCountedOnce: a leader that is lost from sight and seen again has not changed.
func TestLeadershipsAreCountedOnce(t *testing.T) {
	t.Parallel()
	to := telemetry.NewMetrics()
	m := newMetrics(&Config{Clock: clock.System{}, Metrics: to})
	for _, seen := range []leaderOf{{"a", 1}, {"", 1}, {"a", 1}, {"", 2}, {"b", 2}, {"", 2},
		{"a", 3}, {"a", 3}, {"a", 4}} {
		m.sawLeader(seen)
	}
	var counted dto.Metric
	if err := m.leaders.Write(&counted); err != nil || counted.GetCounter().GetValue() != 4 {
		t.Errorf("%v leaderships are counted, want 4 (%v)", counted.GetCounter().GetValue(), err)
	}
}

func TestCountedWriterCounts(t *testing.T) {
	t.Parallel()
	var to strings.Builder
	w := countedWriter{to: &to}
	for _, part := range []string{"ab", "", "cde"} {
		if _, err := io.WriteString(&w, part); err != nil {
			t.Fatal(err)
		}
	}
	if w.bytes != 5 || to.String() != "abcde" {
		t.Errorf("%d bytes of %q", w.bytes, to.String())
	}
}
