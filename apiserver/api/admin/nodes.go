package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// ClusterNode is a process of the cluster as the leader sees it.
type ClusterNode struct {
	Name     string   `json:"name"`
	Roles    []string `json:"roles"`
	Version  string   `json:"version"`
	Capacity uint32   `json:"capacity" doc:"Weight of its fetcher when shards are dealt out, 0: it has none"`
	Tiers    []string `json:"tiers" doc:"Ways in which its fetcher can fetch, cheapest first; empty when it has none"`
	Boot     ids.ID   `json:"boot" doc:"Its newest start"`
	Draining bool     `json:"draining" doc:"It was told to drain, and not taken back"`
	State    string   `json:"state" enum:"ALIVE,DRAINING,DRAINED,LEFT,FAILED,UNKNOWN" doc:"As far as the leader knows it"`
	Shards   int      `json:"shards" doc:"Owned"`
	Moving   int      `json:"moving" doc:"Of these, being handed over"`
	Open     int      `json:"open" doc:"Tasks that it holds, waiting or under way"`
	// Rates are averages over the last heartbeats, so slightly old.
	PagesPerSecond float64 `json:"pagesPerSecond"`
	LeaseAgeMillis *int64  `json:"leaseAgeMillis" doc:"Since its newest heartbeat; null without one"`
	GoneMillis     *int64  `json:"goneMillis" doc:"For how long it has been gone, as far as this leader saw it; null while it is there. A node that is gone stays in the list until it is removed"`
	Suffrage       string  `json:"suffrage" enum:",LEADER,VOTER,NONVOTER" doc:"In Raft; empty when Raft does not have it"`
	Lag            *uint64 `json:"lag" doc:"Raft entries that it had not applied when the leader asked it; null when it did not say"`
}

func newNode(n *client.NodeStatus) ClusterNode {
	node := ClusterNode{Name: n.Name, Roles: append([]string{}, n.Roles...), Tiers: []string{},
		Version: n.Version, Capacity: n.Capacity, Boot: n.Boot,
		Draining: n.Draining, State: string(n.State), Shards: n.Shards, Moving: n.Moving,
		Open:           n.Open,
		PagesPerSecond: n.PagesPerSecond, GoneMillis: n.GoneMillis, Suffrage: string(n.Suffrage),
		Lag: n.Lag}
	for _, tier := range n.Tiers.Tiers() {
		node.Tiers = append(node.Tiers, tier.String())
	}
	if n.HeardMillis >= 0 {
		node.LeaseAgeMillis = &n.HeardMillis
	}
	return node
}

// nodes is GET /api/admin/nodes.
func (r Resource) nodes() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_nodes", Routes: operation.Routes("GET /api/admin/nodes"), Group: group,
		Summary: "Lists the nodes of the cluster by name, as the leader sees them",
		Description: "While the control plane has no leader, it lists what the answering node " +
			"knows by itself. No node is the LEADER then, and nothing is known of heartbeats.",
		Access: auth.Admin, Rate: limits.Read, Leaderless: true,
	}, func(ctx context.Context, _ *operation.Caller, _ *struct{}) ([]ClusterNode, error) {
		found, err := r.Client.Nodes(ctx)
		nodes := make([]ClusterNode, len(found))
		for i := range found {
			nodes[i] = newNode(&found[i])
		}
		return nodes, err
	})
}
