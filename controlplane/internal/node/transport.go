package node

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/port"
)

// vouching is a transport whose appends commit nothing that they do not vouch for. A follower that
// accepts an append has the leader's log up to the append's last entry, or to the one before it.
// What it has beyond may be a deposed leader's, and not committed. Raft lets the follower apply
// that, too, up to the leader's commit index. Raft reads that index after it has chosen the
// entries, in between it may pause for seconds, and so the index may lie beyond them. Both sides
// see to it, because a leader of an older version may not.
//
// It does not pipeline appends. Raft's pipeline can lock up when a follower refuses an append. The
// leader then sends that follower only heartbeats, and cannot shut down.
type vouching struct {
	Voting
	heard   chan raft.RPC // what other nodes ask
	stopped chan struct{}
	passes  sync.WaitGroup
}

// newVouching starts a vouching transport. The caller stops it once Raft has ended.
func newVouching(over Voting) *vouching {
	v := &vouching{Voting: over, heard: make(chan raft.RPC), stopped: make(chan struct{})}
	v.passes.Go(v.pass)
	return v
}

// stop answers other nodes no more.
func (v *vouching) stop() {
	close(v.stopped)
	v.passes.Wait()
}

// pass hands on what other nodes ask.
func (v *vouching) pass() {
	for {
		var rpc raft.RPC
		select {
		case rpc = <-v.Voting.Consumer():
		case <-v.stopped:
			return
		}
		if request, appends := rpc.Command.(*raft.AppendEntriesRequest); appends {
			rpc.Command = vouch(request)
		}
		select {
		case v.heard <- rpc:
		case <-v.stopped:
			return
		}
	}
}

// Consumer implements raft.Transport.
func (v *vouching) Consumer() <-chan raft.RPC { return v.heard }

// AppendEntries implements raft.Transport.
func (v *vouching) AppendEntries(id raft.ServerID, target raft.ServerAddress,
	request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	return v.Voting.AppendEntries(id, target, vouch(request), response)
}

// vouch returns an append that commits only what it vouches for.
func vouch(request *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	vouched := *request
	vouched.LeaderCommitIndex = min(request.LeaderCommitIndex,
		request.PrevLogEntry+uint64(len(request.Entries)))
	return &vouched
}

// AppendEntriesPipeline implements raft.Transport.
func (v *vouching) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline,
	error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// named is Raft's transport between nodes. It dials a node at the address that the node gossips.
// Raft's configuration learns new addresses only from the leader, so voters that all moved could
// not elect one. An address is not trusted: the certificate there must name the node, and a voter's
// the role controlplane.
type named struct {
	Voting
	where func(id string) (address string, there bool) // nil: as in Raft's configuration
	raft  atomic.Pointer[raft.Raft]                    // nil until it runs
}

var errNotBegun = errors.New("controlplane: raft has not begun")

// target returns where to dial a node, and the name and role that it must have.
func (t *named) target(id raft.ServerID, known raft.ServerAddress, role string) raft.ServerAddress {
	at := string(known)
	if t.where != nil {
		if now, there := t.where(string(id)); there {
			at = now
		}
	}
	return port.Target(string(id), role, at)
}

// replica returns the target for entries sent to a node. A voter's acknowledgement counts, so it
// must have the role.
func (t *named) replica(id raft.ServerID, known raft.ServerAddress) (raft.ServerAddress, error) {
	r := t.raft.Load()
	if r == nil {
		return "", errNotBegun
	}
	for _, server := range r.GetConfiguration().Configuration().Servers {
		if server.ID == id && server.Suffrage == raft.Voter {
			return t.target(id, known, identity.ControlPlane), nil
		}
	}
	return t.target(id, known, ""), nil
}

// AppendEntries implements raft.Transport.
func (t *named) AppendEntries(id raft.ServerID, known raft.ServerAddress,
	request *raft.AppendEntriesRequest,
	response *raft.AppendEntriesResponse) error {
	to, err := t.replica(id, known)
	if err != nil {
		return err
	}
	return t.Voting.AppendEntries(id, to, request, response)
}

// InstallSnapshot implements raft.Transport.
func (t *named) InstallSnapshot(id raft.ServerID, known raft.ServerAddress,
	request *raft.InstallSnapshotRequest,
	response *raft.InstallSnapshotResponse, data io.Reader) error {
	to, err := t.replica(id, known)
	if err != nil {
		return err
	}
	return t.Voting.InstallSnapshot(id, to, request, response, data)
}

// RequestVote implements raft.Transport.
func (t *named) RequestVote(id raft.ServerID, known raft.ServerAddress,
	request *raft.RequestVoteRequest,
	response *raft.RequestVoteResponse) error {
	return t.Voting.RequestVote(id, t.target(id, known, identity.ControlPlane), request, response)
}

// RequestPreVote implements raft.WithPreVote.
func (t *named) RequestPreVote(id raft.ServerID, known raft.ServerAddress,
	request *raft.RequestPreVoteRequest,
	response *raft.RequestPreVoteResponse) error {
	return t.Voting.RequestPreVote(id, t.target(id, known, identity.ControlPlane), request,
		response)
}

// TimeoutNow implements raft.Transport.
func (t *named) TimeoutNow(id raft.ServerID, known raft.ServerAddress,
	request *raft.TimeoutNowRequest,
	response *raft.TimeoutNowResponse) error {
	return t.Voting.TimeoutNow(id, t.target(id, known, identity.ControlPlane), request, response)
}
