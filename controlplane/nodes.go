package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// leaderPatience is how long a look at the nodes waits for the leader's answer.
const leaderPatience = 2 * time.Second

// lagPatience is how long the leader waits, within that, until all nodes have said how far they are.
const lagPatience = 500 * time.Millisecond

// Nodes implements client.Client.
func (c caller) Nodes(ctx context.Context) ([]client.NodeStatus, error) {
	var nodes []client.NodeStatus
	asking, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	err := c.s.retry(asking, func() (err error) {
		nodes, err = c.s.nodesHere(asking)
		if errors.Is(err, raft.ErrNotLeader) {
			nodes = nil
			err = c.s.forward(asking, methodNodes, node.Nothing{}, &nodes)
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

// nodesAlone describes the nodes while there is no leader, by what this node knows: its copy of the state, Raft's servers
// and who gossips.
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
		list = append(list, client.NodeStatus{Name: node.Name, Roles: node.Roles, Version: node.Version,
			Capacity: node.Capacity, Tiers: tiersOf(node), Boot: node.Boot, Draining: node.Draining, State: s.node.Presence(node.Name),
			Shards: owned[node.Name], HeardMillis: -1, Suffrage: suffrages[node.Name]})
	}
	return list, nil
}

// nodesHere describes the nodes, which the leader alone can. It is one attempt.
func (s *Server) nodesHere(ctx context.Context) ([]client.NodeStatus, error) {
	if _, err := s.confirmHere(ctx); err != nil { // a leader deposed meanwhile must not tell what it thought
		return nil, err
	}
	l := s.leading.Load()
	if l == nil {
		return nil, raft.ErrNotLeader
	}
	return l.nodes(ctx)
}

// nodes describes the registered nodes by their heartbeats, the assignment, Raft, what the cluster's members see and what
// they say of themselves.
func (l *leadership) nodes(ctx context.Context) ([]client.NodeStatus, error) {
	suffrages, err := l.s.node.Suffrages(ctx)
	if err != nil {
		return nil, err
	}
	view := l.view()
	applied, _ := l.s.node.Store().Progress()
	shards := view.Shards()
	list := make([]client.NodeStatus, 0, len(view.Nodes()))
	ask := map[string]string{}
	for _, node := range view.Nodes() {
		status := client.NodeStatus{Name: node.Name, Roles: node.Roles, Version: node.Version, Capacity: node.Capacity,
			Tiers: tiersOf(node), Boot: node.Boot, Draining: node.Draining, Suffrage: suffrages[node.Name]}
		l.tracker.Describe(node, shards, &status)
		status.GoneMillis = l.goneFor(node.Name)
		presence := l.s.node.Presence(node.Name)
		if status.State == "" {
			status.State = presence
		}
		if presence != client.NodeFailed && node.Name != l.s.config.Node { // who is gone would use up the others' time
			ask[node.Name] = node.Address
		}
		list = append(list, status)
	}
	asking, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	answers := l.s.node.Statuses(asking, ask)
	answers[l.s.config.Node] = node.Answer{Report: node.Report{Status: client.Status{Applied: applied}}}
	for at := range list {
		if answer, heard := answers[list[at].Name]; heard {
			lag := applied - min(applied, answer.Status.Applied)
			list[at].Lag = &lag
		}
	}
	return list, nil
}

// goneFor is for how many milliseconds a node has been gone; nil: it is there.
func (l *leadership) goneFor(node string) *int64 {
	gone := l.gone.Load()
	if gone == nil {
		return nil
	}
	since, ok := (*gone)[node]
	if !ok {
		return nil
	}
	millis := l.s.config.Clock.Now().Sub(since).Milliseconds()
	return &millis
}

// tiersOf are the ways in which a node's fetcher can fetch; none without one.
func tiersOf(node *client.Node) model.TierSet {
	if node.Capacity == 0 {
		return 0
	}
	return node.Tiers | model.TiersOf(model.Plain)
}
