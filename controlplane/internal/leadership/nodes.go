package leadership

import (
	"context"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/model"
)

// lagPatience is how long the leader waits for the reports of all nodes.
const lagPatience = 500 * time.Millisecond

// Nodes describes the registered nodes, by their heartbeats, the assignment of shards, Raft, gossip
// and their own reports.
func (l *Leadership) Nodes(ctx context.Context) ([]client.NodeStatus, error) {
	suffrages, err := l.node.Suffrages(ctx)
	if err != nil {
		return nil, err
	}
	view := l.view()
	applied, _ := l.node.Store().Progress()
	shards := view.Shards()
	list := make([]client.NodeStatus, 0, len(view.Nodes()))
	ask := map[string]string{}
	for _, node := range view.Nodes() {
		status := Describe(node)
		status.Suffrage = suffrages[node.Name]
		l.tracker.Describe(node, shards, &status)
		status.GoneMillis = l.goneFor(node.Name)
		presence := l.node.Presence(node.Name)
		if status.State == "" {
			status.State = presence
		}
		// a node that is gone would use up the time for the others
		if presence != client.NodeFailed && node.Name != l.node.Name() {
			ask[node.Name] = node.Address
		}
		list = append(list, status)
	}
	asking, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	answers := l.node.Statuses(asking, ask)
	answers[l.node.Name()] = node.Answer{
		Report: node.Report{Status: client.Status{Applied: applied}}}
	for at := range list {
		if answer, heard := answers[list[at].Name]; heard {
			lag := applied - min(applied, answer.Status.Applied)
			list[at].Lag = &lag
		}
	}
	return list, nil
}

// goneFor returns how long a node has been gone, in milliseconds; nil: it is there. The autopilot
// knows this leadership only. Gossip knows since when this node runs.
func (l *Leadership) goneFor(node string) *int64 {
	gone := l.gone.Load()
	if gone == nil {
		return nil
	}
	since, ok := (*gone)[node]
	if !ok {
		return nil
	}
	if silent, ok := l.node.GoneSince(node); ok && silent.Before(since) {
		since = silent
	}
	millis := l.config.Clock.Now().Sub(since).Milliseconds()
	return &millis
}

// Describe returns what the record of a node says.
func Describe(node *client.Node) client.NodeStatus {
	return client.NodeStatus{Name: node.Name, Roles: node.Roles, Version: node.Version,
		Capacity: node.Capacity,
		Tiers:    tiersOf(node), Boot: node.Boot, Draining: node.Draining}
}

// tiersOf returns the tiers that a node's fetcher supports; none without a fetcher.
func tiersOf(node *client.Node) model.TierSet {
	if node.Capacity == 0 {
		return 0
	}
	return node.Tiers | model.TiersOf(model.Plain)
}
