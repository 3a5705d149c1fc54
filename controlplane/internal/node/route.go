package node

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// ErrLeaderless says that this node knows of no leader.
var ErrLeaderless = errors.New("controlplane: this node knows of no leader")

// leader is the time of one leader, as this node sees it.
type leader struct {
	ctx context.Context
	end context.CancelFunc
}

// LeaderContext ends when this node hears of another leader, or stops.
func (n *Node) LeaderContext() context.Context { return n.leader.Load().ctx }

// LeaderChanged ends the LeaderContext and begins another.
func (n *Node) LeaderChanged() {
	next := &leader{}
	next.ctx, next.end = context.WithCancel(n.life)
	if last := n.leader.Swap(next); last != nil {
		last.end()
	}
}

// WatchLeaders begins another LeaderContext whenever the leader changes, until ctx ends.
func (n *Node) WatchLeaders(ctx context.Context) {
	changes := make(chan raft.Observation, 1) // what does not fit is seen with what is in it
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

// CallLeader has the leader do something, when that is another node; raft.ErrNotLeader says that
// this one may be the leader. The attempt ends when ctx does, with the patience, or when this node
// hears of another leader.
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
		return raft.ErrNotLeader // it begins, or ends
	case r.Port == nil:
		return ErrUnreachable
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(led, cancel)()
	return r.Port.CallVoter(ctx, string(address), method, request, answer)
}
