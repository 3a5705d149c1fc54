package node

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
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

// startVoter runs a node over an in-memory transport.
func startVoter(t *testing.T, over Voting, voters ...raft.Server) *Node {
	t.Helper()
	n := New(Config{Dir: t.TempDir(), Name: string(voters[0].ID), Clock: clock.System{},
		IDs:       ids.Random{Now: time.Now},
		Snapshots: Snapshots{Entries: 2048, Every: time.Minute}, Point: func(string) {},
		BeforeWrite: func() {}, Transport: over, Voters: voters,
		Logger: slog.New(slog.DiscardHandler)})
	if err := n.Start(nil, func() {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// encodeTick encodes a command that sets the state time.
func encodeTick(t *testing.T, stamp int64) []byte {
	t.Helper()
	data, err := fsm.New().Encode(ids.ID{}, stamp, command.TickPayload{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A deposed leader has an entry that nobody else has. Its successor, which has committed another
// one at that index, sends an append without entries. The deposed leader applies only what the
// successor committed, whichever of the two has the version that sees to it.
func TestWhatWasNeverCommittedIsNotApplied(t *testing.T) {
	t.Parallel()
	t.Run("the successor's version", func(t *testing.T) {
		t.Parallel()
		appliesWhatIsCommitted(t, func(v Voting) Voting { return &vouching{Voting: v} })
	})
	t.Run("an older successor", func(t *testing.T) {
		t.Parallel()
		appliesWhatIsCommitted(t, func(v Voting) Voting { return v })
	})
}

func appliesWhatIsCommitted(t *testing.T, sends func(Voting) Voting) {
	t.Helper()
	const patient = time.Minute
	_, own := raft.NewInmemTransportWithTimeout("deposed", patient)
	_, leaders := raft.NewInmemTransportWithTimeout("successor", patient)
	leaders.Connect(own.LocalAddr(), own)
	deposed := startVoter(t, own, raft.Server{ID: "deposed", Address: own.LocalAddr()},
		raft.Server{ID: "successor", Address: leaders.LocalAddr()})
	send := func(term, committed uint64, entries ...*raft.Log) {
		t.Helper()
		var answer raft.AppendEntriesResponse
		if err := sends(leaders).AppendEntries("deposed", own.LocalAddr(),
			&raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{
				ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("successor"),
				Addr: []byte(leaders.LocalAddr())}, Term: term, PrevLogEntry: 1, PrevLogTerm: 1,
				Entries: entries, LeaderCommitIndex: committed}, &answer); err != nil ||
			!answer.Success {
			t.Fatalf("an append is answered with %+v, %v", answer, err)
		}
	}
	entry := func(term uint64, stamp int64) *raft.Log {
		return &raft.Log{Index: 2, Term: term, Data: encodeTick(t, stamp)}
	}
	const undone, committed = 2000, 1000
	send(2, 1, entry(2, undone))
	send(3, 2)
	send(3, 2, entry(3, committed))
	if err := deposed.WaitFor(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if index, now := deposed.Store().Progress(); index != 2 || now != committed {
		t.Fatalf("the state is of %d at index %d, want %d at 2", now, index, committed)
	}
}

// absent is a follower that answers no append, and checks all of them.
type absent struct {
	Voting
	t       *testing.T
	appends chan struct{}
}

func (f *absent) AppendEntries(_ raft.ServerID, _ raft.ServerAddress,
	request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	vouched := request.PrevLogEntry + uint64(len(request.Entries))
	if request.LeaderCommitIndex > vouched {
		f.t.Errorf("an append vouches for %d entries and commits %d", vouched,
			request.LeaderCommitIndex)
	}
	if request.PrevLogEntry == 0 { // a heartbeat
		response.Success = true
		return nil
	}
	select {
	case f.appends <- struct{}{}:
	case <-f.t.Context().Done():
	}
	return errors.New("no answer")
}

// Raft pauses before it repeats an append that failed. What it commits meanwhile must not be
// committed by that append, whose entries were chosen before.
func TestAppendsCommitWhatTheyVouchFor(t *testing.T) {
	t.Parallel()
	address, over := raft.NewInmemTransport("leader")
	follower := &absent{Voting: over, t: t, appends: make(chan struct{})}
	leader := startVoter(t, follower, raft.Server{ID: "leader", Address: address})
	<-leader.LeaderChanges()
	if _, err := Ask(t.Context(), leader, func(r *Raft) (struct{}, error) {
		return struct{}{}, r.AddNonvoter("follower", "nowhere", 0, 0).Error()
	}); err != nil {
		t.Fatal(err)
	}
	for range 6 { // each pause is twice as long, from 10 ms
		for failed := false; !failed; {
			if _, err := leader.Append(t.Context(), encodeTick(t, 1)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-follower.appends:
				failed = true
			default:
			}
		}
	}
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
