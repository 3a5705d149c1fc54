package state

import (
	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/model"
)

func clusterTable() *memdb.TableSchema {
	return table("cluster", index("id", true, func(*Cluster) []any { return []any{"cluster"} }))
}

// Cluster is nil before the cluster's first command.
func (v *View) Cluster() *Cluster { return first[Cluster](v, "cluster", "id", "cluster") }

// ClusterVersion is the version that all members can apply, 1 or more.
func (v *View) ClusterVersion() uint32 {
	if cluster := v.Cluster(); cluster != nil {
		return max(cluster.Version, 1)
	}
	return 1
}

// PutCluster sets it.
func (t *Tx) PutCluster(c *Cluster) {
	put(t, "cluster", c)
	t.cluster = c
}

func nodesTable() *memdb.TableSchema {
	return table("nodes", index("id", true, func(n *Node) []any { return []any{n.Name} }))
}

// Node is nil when it never registered.
func (v *View) Node(name string) *Node { return first[Node](v, "nodes", "id", name) }

// WatchNode is Node with a channel that is closed when the answer may have changed.
func (v *View) WatchNode(name string) (*Node, <-chan struct{}) {
	return watch[Node](v, "nodes", "id", name)
}

// Nodes lists the registered nodes by name.
func (v *View) Nodes() []*Node { return all[Node](v, "nodes", "id_prefix") }

// Tiers are the ways in which every shard's owner can fetch: what a run may rely on, wherever its hosts are. While no
// shard has an owner (a cluster that has just begun), all nodes with a fetcher count.
func (v *View) Tiers() model.TierSet {
	owners := map[string]bool{}
	for _, shard := range v.Shards() {
		if shard.Owner != "" {
			owners[shard.Owner] = true
		}
	}
	tiers, counted := model.AllTiers, false
	for _, node := range v.Nodes() {
		if owners[node.Name] || len(owners) == 0 && node.Capacity > 0 {
			tiers &= node.Tiers | model.TiersOf(model.Plain)
			counted = true
		}
	}
	if !counted {
		return model.TiersOf(model.Plain)
	}
	return tiers
}

// PutNode adds or replaces.
func (t *Tx) PutNode(n *Node) { put(t, "nodes", n) }

// RemoveNode removes.
func (t *Tx) RemoveNode(n *Node) { remove(t, "nodes", n) }

func shardsTable() *memdb.TableSchema {
	return table("shards", index("id", true, func(s *Shard) []any { return []any{s.Number} }))
}

// Shard is nil for a number the cluster does not have.
func (v *View) Shard(number uint16) *Shard { return first[Shard](v, "shards", "id", number) }

// Shards lists them by number.
func (v *View) Shards() []*Shard { return all[Shard](v, "shards", "id_prefix") }

// PutShard adds or replaces.
func (t *Tx) PutShard(s *Shard) { put(t, "shards", s) }
