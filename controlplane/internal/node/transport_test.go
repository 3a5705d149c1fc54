package node

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// dialled records the targets that Raft sends to.
type dialled struct {
	Voting
	to []string
}

func (d *dialled) note(to raft.ServerAddress) error {
	d.to = append(d.to, string(to))
	return nil
}

func (d *dialled) AppendEntries(_ raft.ServerID, to raft.ServerAddress,
	_ *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	return d.note(to)
}

func (d *dialled) InstallSnapshot(_ raft.ServerID, to raft.ServerAddress,
	_ *raft.InstallSnapshotRequest, _ *raft.InstallSnapshotResponse, _ io.Reader) error {
	return d.note(to)
}

func (d *dialled) RequestVote(_ raft.ServerID, to raft.ServerAddress, _ *raft.RequestVoteRequest,
	_ *raft.RequestVoteResponse) error {
	return d.note(to)
}

func (d *dialled) RequestPreVote(_ raft.ServerID, to raft.ServerAddress,
	_ *raft.RequestPreVoteRequest, _ *raft.RequestPreVoteResponse) error {
	return d.note(to)
}

func (d *dialled) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, _ *raft.TimeoutNowRequest,
	_ *raft.TimeoutNowResponse) error {
	return d.note(to)
}

// Raft names its targets by node, wherever they are, and requires a role of voters.
func TestRaftNamesWhomItDials(t *testing.T) {
	t.Parallel()
	n := New(Config{Dir: t.TempDir(), Name: "voter-0", Clock: clock.System{},
		IDs:       ids.Random{Now: time.Now},
		Snapshots: Snapshots{Entries: 2048, Every: time.Minute}, Point: func(string) {},
		BeforeWrite: func() {},
		Logger:      slog.New(slog.DiscardHandler)})
	if err := n.Start(nil, func() {}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	sent := &dialled{}
	transport := &named{Voting: sent,
		where: func(id string) (string, bool) { return "now:1", id == "moved" }}
	if err := transport.AppendEntries("voter-0", "old:1", nil, nil); err == nil {
		t.Error("entries are sent by who does not know yet who votes")
	}
	transport.raft.Store(n.raft.Raft)
	for _, err := range []error{
		transport.AppendEntries("voter-0", "old:1", nil, nil),
		transport.AppendEntries("moved", "old:1", nil, nil),
		transport.InstallSnapshot("voter-0", "old:1", nil, nil, nil),
		transport.InstallSnapshot("node-0", "old:1", nil, nil, nil),
		transport.RequestVote("moved", "old:1", nil, nil),
		transport.RequestPreVote("node-0", "old:1", nil, nil),
		transport.TimeoutNow("node-0", "old:1", nil, nil),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"controlplane/voter-0@old:1", "/moved@now:1", "controlplane/voter-0@old:1",
		"/node-0@old:1",
		"controlplane/moved@now:1", "controlplane/node-0@old:1", "controlplane/node-0@old:1"}
	if diff := cmp.Diff(want, sent.to); diff != "" {
		t.Error(diff)
	}
}
