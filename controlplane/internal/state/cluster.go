package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"slices"
)

// Cluster is what is fixed at the cluster's creation.
type Cluster struct {
	ID         ids.ID `cbor:"1,keyasint"`
	Shards     uint16 `cbor:"2,keyasint"`
	FreeGrant  int64  `cbor:"3,keyasint"` // free requests of a new wallet
	CreatedAt  int64  `cbor:"4,keyasint"`
	HashSecret uint64 `cbor:"5,keyasint"` // seed of URL hashes
	// Log and Rows name the log and the row store that all nodes work on, as they name themselves.
	// They are "" when they are a process's own, or not known yet.
	Log  string `cbor:"6,keyasint,omitempty"`
	Rows string `cbor:"7,keyasint,omitempty"`
	// Generation is what the newest restore began; nil: none was restored.
	Generation *Generation `cbor:"8,keyasint,omitempty" since:"2"`
	// Version is what all members can apply (package command); 0 is 1, too.
	Version uint32 `cbor:"9,keyasint,omitempty" since:"2"`
	// Short says whose disks have less than their floor, for operators. While it is not "", nothing
	// new is taken in and nothing is sent out.
	Short string `cbor:"10,keyasint,omitempty" since:"2"`
	// Former are the clusters whose backups were restored here, at most MaxFormer, newest last.
	// What a payment provider keeps has their ids.
	Former []ids.ID `cbor:"11,keyasint,omitempty" since:"2"`
}

// MaxFormer bounds what a cluster remembers of the clusters whose state it took over.
const MaxFormer = 16

// IsOurs says whether an id is the cluster's, or that of one whose backup was restored here.
func (v *View) IsOurs(id string) bool {
	cluster := v.Cluster()
	return cluster != nil && (cluster.ID.String() == id ||
		slices.ContainsFunc(cluster.Former, func(f ids.ID) bool { return f.String() == id }))
}

// SpaceSince is the version of the cluster that knows of disks without room.
const SpaceSince = 2

// IsShort says whether disks have too little room for anything new.
func (v *View) IsShort() bool {
	cluster := v.Cluster()
	return cluster != nil && cluster.Short != ""
}

// Generation is the time of a cluster's state from one restore to the next.
type Generation struct {
	ID      ids.ID `cbor:"1,keyasint"`
	Parent  ids.ID `cbor:"2,keyasint,omitempty"` // that the backup was taken in; zero: the first
	Cut     uint64 `cbor:"3,keyasint"`           // index of the backup's newest command
	CutTime int64  `cbor:"4,keyasint"`           // state time of the backup
	At      int64  `cbor:"5,keyasint"`           // state time of the restore
	// Revisions and Prices are the greatest revision of a scraper and version of the prices that
	// states before this one had.
	Revisions uint32 `cbor:"6,keyasint,omitempty"`
	Prices    uint32 `cbor:"7,keyasint,omitempty"`
	// Ancestors are the generations before, the youngest first, each up to the index at which its
	// successor goes on from it.
	Ancestors []Step `cbor:"8,keyasint,omitempty"`
}

var clusterTable = define(1, "cluster",
	index("id", true, func(*Cluster) []any { return []any{"cluster"} }))

// Cluster is nil before the cluster's first command.
func (v *View) Cluster() *Cluster { return clusterTable.first(v, "id", "cluster") }

// ClusterName tells the cluster from others, "" before its first command.
func (v *View) ClusterName() string {
	if cluster := v.Cluster(); cluster != nil {
		return cluster.ID.String()
	}
	return ""
}

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

// Node is a process that has registered.
type Node struct {
	Name     string   `cbor:"1,keyasint"`
	Boot     ids.ID   `cbor:"2,keyasint"` // new with each start of the process
	Roles    []string `cbor:"3,keyasint"`
	Address  string   `cbor:"4,keyasint,omitempty"`
	Version  string   `cbor:"5,keyasint,omitempty"`
	Capacity uint32   `cbor:"6,keyasint,omitempty"` // weight of a fetcher, 0: none
	JoinedAt int64    `cbor:"7,keyasint"`
	// an operator's word: kept until it is taken back
	Draining bool `cbor:"8,keyasint,omitempty"`
	// Tiers are the ways in which its fetcher can fetch; 0: plain alone.
	Tiers model.TierSet `cbor:"9,keyasint,omitempty"`
}

var nodesTable = define(1, "nodes",
	index("id", true, func(n *Node) []any { return []any{n.Name} })).
	watchable().told((*Node).telling)

// Node is nil when it never registered.
func (v *View) Node(name string) *Node { return nodesTable.first(v, "id", name) }

// WatchNode is Node with a channel that is closed when the answer may have changed.
func (v *View) WatchNode(name string) (*Node, <-chan struct{}) {
	return nodesTable.watch(v, name)
}

// Nodes lists the registered nodes by name.
func (v *View) Nodes() []*Node { return nodesTable.all(v, "id_prefix") }

// Tiers are the ways in which every shard's owner can fetch: what a run may rely on, wherever its
// hosts are. While no shard has an owner (a cluster that has just begun), all nodes with a fetcher
// count.
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

// Shard is who fetches a shard. Epoch counts up with every change of hands.
type Shard struct {
	Number uint16 `cbor:"1,keyasint"`
	Owner  string `cbor:"2,keyasint,omitempty"` // node name, "": nobody
	Epoch  uint64 `cbor:"3,keyasint"`
	// Next is the node that takes over when Owner has released it, "": none.
	Next string `cbor:"4,keyasint,omitempty"`
	// Moved is the number of the newest dispatch when the last owner let go of the shard by plan.
	// What is still out up to there was begun by nobody.
	Moved uint64 `cbor:"5,keyasint,omitempty"`
}

var shardsTable = define(1, "shards",
	index("id", true, func(s *Shard) []any { return []any{s.Number} }))

// Shard is nil for a number the cluster does not have.
func (v *View) Shard(number uint16) *Shard { return shardsTable.first(v, "id", number) }

// Shards lists them by number.
func (v *View) Shards() []*Shard { return shardsTable.all(v, "id_prefix") }

// PutShard adds or replaces.
func (t *Tx) PutShard(s *Shard) { shardsTable.put(t, s) }
