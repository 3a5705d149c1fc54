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
	Capacity uint32   `json:"capacity" doc:"Weight of the node's fetcher when shards are assigned; 0: it has no fetcher"`
	Tiers    []string `json:"tiers" doc:"Tiers that its fetcher can use, cheapest first; empty without a fetcher"`
	Boot     ids.ID   `json:"boot" doc:"Id of its newest start"`
	Draining bool     `json:"draining" doc:"It was told to drain, and the drain was not cancelled"`
	State    string   `json:"state" enum:"ALIVE,DRAINING,DRAINED,LEFT,FAILED,UNKNOWN" doc:"State as far as the leader knows"`
	Shards   int      `json:"shards" doc:"Shards that it owns"`
	Moving   int      `json:"moving" doc:"Owned shards that are being handed over"`
	Open     int      `json:"open" doc:"Tasks that the node holds, waiting or under way"`
	// Rates are averages over the last heartbeats, so slightly old.
	PagesPerSecond float64 `json:"pagesPerSecond"`
	LeaseAgeMillis *int64  `json:"leaseAgeMillis" doc:"Time since its newest heartbeat; null without one"`
	GoneMillis     *int64  `json:"goneMillis" doc:"About how long it has been gone, as gossip has told the leader since its own start. Null while it is present. A gone node stays in the list until it is removed"`
	Suffrage       string  `json:"suffrage" enum:",LEADER,VOTER,NONVOTER" doc:"Its Raft suffrage; empty if it is not in Raft"`
	Lag            *uint64 `json:"lag" doc:"Raft entries not yet applied when the leader asked; null if the node did not answer"`
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
		Description: "While the control plane has no leader, the list is what the answering " +
			"node itself knows. Then no node is the LEADER, and heartbeats are unknown.",
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
