package node

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// ErrLeaderless says that this node knows of no leader.
var ErrLeaderless = errors.New("controlplane: this node knows of no leader")

// leader is the time of one leader as this node sees it.
type leader struct {
	ctx context.Context
	end context.CancelFunc
}

// LeaderContext ends when this node hears of another leader, or stops.
func (n *Node) LeaderContext() context.Context { return n.leader.Load().ctx }

// LeaderChanged ends the LeaderContext and begins a new one.
func (n *Node) LeaderChanged() {
	next := &leader{}
	next.ctx, next.end = context.WithCancel(n.life)
	if last := n.leader.Swap(next); last != nil {
		last.end()
	}
}

// WatchLeaders calls LeaderChanged whenever the leader changes, until ctx ends.
func (n *Node) WatchLeaders(ctx context.Context) {
	changes := make(chan raft.Observation, 1) // one pending change stands for all
	observer := raft.NewObserver(changes, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			n.LeaderChanged()
		}
	}
}

// CallLeader calls the leader on another node. It returns raft.ErrNotLeader if this node may be the
// leader. The attempt ends with ctx, after patience, or when this node hears of another leader.
func (n *Node) CallLeader(ctx context.Context, patience time.Duration, method string, request,
	answer any) error {
	led := n.LeaderContext()
	r, err := n.Enter()
	if err != nil {
		return err
	}
	address, id := r.LeaderWithID()
	n.Leave()
	switch {
	case address == "":
		return ErrLeaderless
	case id == raft.ServerID(n.config.Name):
		return raft.ErrNotLeader // its leadership begins or ends
	case r.Port == nil:
		return ErrUnreachable
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(led, cancel)()
	return r.Port.CallVoter(ctx, string(address), method, request, answer)
}
