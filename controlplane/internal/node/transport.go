package node

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/port"
)

// named is Raft's transport between nodes. A node is dialled where it says that it is now, which
// Raft's configuration learns from the leader alone. So voters that all came back with other
// addresses find a leader. What anybody says of addresses is believed no further than that: the
// certificate there has to name the node, and a voter's the role controlplane.
type named struct {
	Voting
	where func(id string) (address string, there bool) // nil: where Raft's configuration has it
	raft  atomic.Pointer[raft.Raft]                    // nil until it runs
}

var errNotBegun = errors.New("controlplane: raft has not begun")

// target is where a node is dialled, and as whom.
func (t *named) target(id raft.ServerID, known raft.ServerAddress, role string) raft.ServerAddress {
	at := string(known)
	if t.where != nil {
		if now, there := t.where(string(id)); there {
			at = now
		}
	}
	return port.Target(string(id), role, at)
}

// replica is the target of a node that entries are sent to: what it acknowledges counts if it
// votes.
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
