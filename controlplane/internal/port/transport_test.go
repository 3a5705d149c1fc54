package port

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
)

// transport makes a transport over a port; its consumer answers every request.
func transport(t *testing.T, p *Port) (*Transport, <-chan any) {
	t.Helper()
	reached := make(chan any, 1)
	answer := func(rpc raft.RPC) {
		reached <- rpc.Command
		switch rpc.Command.(type) {
		case *raft.AppendEntriesRequest:
			rpc.Respond(&raft.AppendEntriesResponse{Success: true}, nil)
		case *raft.RequestVoteRequest:
			rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
		case *raft.RequestPreVoteRequest:
			rpc.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
		case *raft.InstallSnapshotRequest:
			rpc.Respond(&raft.InstallSnapshotResponse{Success: true}, nil)
		case *raft.TimeoutNowRequest:
			rpc.Respond(&raft.TimeoutNowResponse{}, nil)
		default:
			rpc.Respond(nil, errors.New("what is this?"))
		}
	}
	tr := p.NewTransport(p.Raft(),
		raft.NetworkTransportConfig{MaxPool: 3, Timeout: 10 * time.Second,
			Logger: hclog.NewNullLogger()})
	tr.SetHeartbeatHandler(answer)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case rpc := <-tr.Consumer():
				answer(rpc)
			case <-tr.ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return tr, reached
}

// Raft does not wait for the heartbeats that it handles when it shuts down. Its files must not be
// closed before their end.
func TestCloseWaitsForHeartbeats(t *testing.T) {
	c := newCluster(t, "prod")
	voter := c.port(t, "cp-1", identity.ControlPlane)
	tr, _ := transport(t, voter)
	asking, _ := transport(t, c.port(t, "cp-2", identity.ControlPlane))
	entered, handled := make(chan struct{}), false
	tr.SetHeartbeatHandler(func(raft.RPC) {
		close(entered)
		<-tr.ctx.Done()
		for range 1000 { // Close has every chance to end before
			runtime.Gosched()
		}
		handled = true
	})
	var asked sync.WaitGroup
	asked.Go(func() {
		_ = asking.AppendEntries("cp-1", Target("cp-1", identity.ControlPlane, voter.Address()),
			&raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3,
				ID: []byte("cp-2"), Addr: []byte("somewhere")}, Term: 3},
			&raft.AppendEntriesResponse{}) // it gets no answer
	})
	<-entered
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if !handled {
		t.Error("a heartbeat is under way after the transport is closed")
	}
	asked.Wait()
}

// told counts log lines about requests in another node's name.
type told struct {
	slog.Handler
	refusals atomic.Uint64
}

func (*told) Enabled(context.Context, slog.Level) bool { return true }

func (h *told) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && strings.Contains(r.Message, "in another node's name") {
		h.refusals.Add(1)
	}
	return nil
}

// A node with the role controlplane speaks Raft only in its own name.
func TestRaftIsSpokenInOnesOwnName(t *testing.T) {
	c := newCluster(t, "prod")
	log := &told{Handler: slog.DiscardHandler}
	voter := c.portTelling(t, log, "cp-1", identity.ControlPlane)
	other := c.port(t, "cp-2", identity.ControlPlane)
	_, reached := transport(t, voter)
	asking, _ := transport(t, other)
	to := Target("cp-1", identity.ControlPlane, voter.Address())
	header := func(name string) raft.RPCHeader {
		return raft.RPCHeader{ProtocolVersion: 3, ID: []byte(name), Addr: []byte("somewhere")}
	}
	requests := map[string]func(h raft.RPCHeader) error{
		"heartbeat": func(h raft.RPCHeader) error {
			return asking.AppendEntries("cp-1", to,
				&raft.AppendEntriesRequest{RPCHeader: h, Term: 3},
				&raft.AppendEntriesResponse{})
		},
		"entries": func(h raft.RPCHeader) error {
			return asking.AppendEntries("cp-1", to,
				&raft.AppendEntriesRequest{RPCHeader: h, Term: 3, PrevLogEntry: 7,
					Entries: []*raft.Log{{Index: 8, Term: 3}}}, &raft.AppendEntriesResponse{})
		},
		"pipelined entries": func(h raft.RPCHeader) error {
			pipeline, err := asking.AppendEntriesPipeline("cp-1", to)
			if err != nil {
				return err
			}
			defer func() { _ = pipeline.Close() }()
			future, err := pipeline.AppendEntries(&raft.AppendEntriesRequest{RPCHeader: h, Term: 3,
				PrevLogEntry: 7},
				&raft.AppendEntriesResponse{})
			if err != nil {
				return err
			}
			return future.Error()
		},
		"vote": func(h raft.RPCHeader) error {
			return asking.RequestVote("cp-1", to, &raft.RequestVoteRequest{RPCHeader: h, Term: 4},
				&raft.RequestVoteResponse{})
		},
		"poll": func(h raft.RPCHeader) error {
			return asking.RequestPreVote("cp-1", to,
				&raft.RequestPreVoteRequest{RPCHeader: h, Term: 4},
				&raft.RequestPreVoteResponse{})
		},
		"snapshot": func(h raft.RPCHeader) error {
			return asking.InstallSnapshot("cp-1", to,
				&raft.InstallSnapshotRequest{RPCHeader: h, Term: 4},
				&raft.InstallSnapshotResponse{}, strings.NewReader(""))
		},
		"handing over": func(h raft.RPCHeader) error {
			return asking.TimeoutNow("cp-1", to, &raft.TimeoutNowRequest{RPCHeader: h},
				&raft.TimeoutNowResponse{})
		},
	}
	for name, ask := range requests {
		if err := ask(header("cp-2")); err != nil {
			t.Errorf("%s in one's own name: %v", name, err)
		} else {
			<-reached
		}
		for _, foreign := range []string{"cp-3", "cp-1", "cp-2 ", ""} {
			_, before := voter.Refused()
			if err := ask(header(foreign)); err == nil {
				t.Errorf("%s in the name of %q is answered", name, foreign)
			}
			await(t, "the refusal",
				func() bool { _, now := voter.Refused(); return now == before+1 })
		}
		select {
		case request := <-reached:
			t.Errorf("%s: Raft heard %T in another's name", name, request)
		default:
		}
		if err := ask(header("cp-2")); err != nil { // over another connection
			t.Errorf("%s in one's own name, later: %v", name, err)
		} else {
			<-reached
		}
	}
	if _, counted := voter.Refused(); log.refusals.Load() != counted {
		t.Errorf("the log tells of %d refusals of %d", log.refusals.Load(), counted)
	}
}
