package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/fault"
)

// leaderPatience is how long a query of the leader waits for its answer.
const leaderPatience = 2 * time.Second

// Nodes implements client.Client.
func (c caller) Nodes(ctx context.Context) ([]client.NodeStatus, error) {
	var nodes []client.NodeStatus
	asking, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	err := c.s.proposer.retry(asking, func() (err error) {
		nodes, err = c.s.nodesHere(asking)
		if errors.Is(err, raft.ErrNotLeader) {
			nodes = nil
			err = c.s.proposer.forward(asking, methodNodes, node.Nothing{}, &nodes)
		}
		return err
	})
	switch {
	case err == nil || asking.Err() == nil || ctx.Err() != nil:
		return nodes, err
	case c.s.node.Leader() != "":
		return nil, fault.Wrap(fault.Unavailable, err, "the control plane's leader does not answer")
	}
	return c.s.nodesAlone(ctx)
}

// nodesAlone describes the nodes while there is no leader, from what this node knows: its copy of
// the state, Raft's servers and the gossip members.
func (s *Server) nodesAlone(ctx context.Context) ([]client.NodeStatus, error) {
	suffrages, err := s.node.Suffrages(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the control plane has no leader")
	}
	view := s.node.View()
	owned := map[string]int{}
	for _, shard := range view.Shards() {
		owned[shard.Owner]++
	}
	list := make([]client.NodeStatus, 0, len(view.Nodes()))
	for _, node := range view.Nodes() {
		status := leadership.Describe(node)
		status.State, status.Suffrage = s.node.Presence(node.Name), suffrages[node.Name]
		status.Shards, status.HeardMillis = owned[node.Name], -1
		list = append(list, status)
	}
	return list, nil
}

// nodesHere describes the nodes as the leader. It is one attempt.
func (s *Server) nodesHere(ctx context.Context) ([]client.NodeStatus, error) {
	// a leader deposed meanwhile must not report stale facts
	if _, err := s.proposer.confirmHere(ctx); err != nil {
		return nil, err
	}
	l := s.holder.Current()
	if l == nil {
		return nil, raft.ErrNotLeader
	}
	return l.Nodes(ctx)
}
