package state

import "shoal.dev/shoal/pkg/model"

var clusterTable = define(1, "cluster", index("id", true, func(*Cluster) []any { return []any{"cluster"} }))

// Cluster is nil before the cluster's first command.
func (v *View) Cluster() *Cluster { return clusterTable.first(v, "id", "cluster") }

// ClusterVersion is the version that all members can apply, 1 or more.
func (v *View) ClusterVersion() uint32 {
	if cluster := v.Cluster(); cluster != nil {
		return max(cluster.Version, 1)
	}
	return 1
}

// PutCluster sets it.
func (t *Tx) PutCluster(c *Cluster) {
	clusterTable.put(t, c)
	t.cluster = c
}

var nodesTable = define(1, "nodes", index("id", true, func(n *Node) []any { return []any{n.Name} }))

// Node is nil when it never registered.
func (v *View) Node(name string) *Node { return nodesTable.first(v, "id", name) }

// WatchNode is Node with a channel that is closed when the answer may have changed.
func (v *View) WatchNode(name string) (*Node, <-chan struct{}) {
	return nodesTable.watch(v, "id", name)
}

// Nodes lists the registered nodes by name.
func (v *View) Nodes() []*Node { return nodesTable.all(v, "id_prefix") }

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
func (t *Tx) PutNode(n *Node) { nodesTable.put(t, n) }

// RemoveNode removes.
func (t *Tx) RemoveNode(n *Node) { nodesTable.remove(t, n) }

var shardsTable = define(1, "shards", index("id", true, func(s *Shard) []any { return []any{s.Number} }))

// Shard is nil for a number the cluster does not have.
func (v *View) Shard(number uint16) *Shard { return shardsTable.first(v, "id", number) }

// Shards lists them by number.
func (v *View) Shards() []*Shard { return shardsTable.all(v, "id_prefix") }

// PutShard adds or replaces.
func (t *Tx) PutShard(s *Shard) { shardsTable.put(t, s) }
