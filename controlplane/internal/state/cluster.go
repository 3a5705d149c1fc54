package state

import (
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Cluster holds what is fixed at the cluster's creation, and the few facts that concern all nodes.
type Cluster struct {
	ID         ids.ID `cbor:"1,keyasint"`
	Shards     uint16 `cbor:"2,keyasint"`
	FreeGrant  int64  `cbor:"3,keyasint"` // free requests of a new wallet
	CreatedAt  int64  `cbor:"4,keyasint"`
	HashSecret uint64 `cbor:"5,keyasint"` // seed of URL hashes
	// Log and Rows name the log and the row store that all nodes share. They are "" if one process
	// owns them, or they are not known yet.
	Log  string `cbor:"6,keyasint,omitempty"`
	Rows string `cbor:"7,keyasint,omitempty"`
	// Generation is what the newest restore began; nil: there was no restore.
	Generation *Generation `cbor:"8,keyasint,omitempty" since:"2"`
	// Version is what all members can apply (package command); 0 means 1.
	Version uint32 `cbor:"9,keyasint,omitempty" since:"2"`
	// Short says, for operators, which disks have less than their minimum of free space. Unless it
	// is "", no new work is accepted and nothing is dispatched.
	Short string `cbor:"10,keyasint,omitempty" since:"2"`
	// Former lists the clusters whose backups were restored here, at most MaxFormer, newest last.
	// Records at the payment provider still have their ids.
	Former []ids.ID `cbor:"11,keyasint,omitempty" since:"2"`
	// RestsFrom is the state time from which on runs have Job.Rest; 0: all have it.
	RestsFrom int64 `cbor:"12,keyasint,omitempty" since:"2"`
}

// RestsSince is the first cluster version whose runs say that they are reruns of a rest.
const RestsSince = 2

// MayBeRest reports whether a list's run was perhaps over its rest. Runs of version 1 do not say.
func (v *View) MayBeRest(job *Job) bool {
	cluster := v.Cluster()
	return job.Rest || cluster != nil && job.Queued < cluster.RestsFrom
}

// MaxFormer bounds Cluster.Former.
const MaxFormer = 16

// IsOurs reports whether id is this cluster's, or a cluster's whose backup was restored here.
func (v *View) IsOurs(id string) bool {
	cluster := v.Cluster()
	return cluster != nil && (cluster.ID.String() == id ||
		slices.ContainsFunc(cluster.Former, func(f ids.ID) bool { return f.String() == id }))
}

// SpaceSince is the first cluster version that reports full disks.
const SpaceSince = 2

// IsShort reports whether a disk has too little room for new work.
func (v *View) IsShort() bool {
	cluster := v.Cluster()
	return cluster != nil && cluster.Short != ""
}

// Generation is the time of a cluster's state from one restore to the next.
type Generation struct {
	ID      ids.ID `cbor:"1,keyasint"`
	Parent  ids.ID `cbor:"2,keyasint,omitempty"` // generation of the backup; zero: the first
	Cut     uint64 `cbor:"3,keyasint"`           // index of the backup's newest command
	CutTime int64  `cbor:"4,keyasint"`           // state time of the backup
	At      int64  `cbor:"5,keyasint"`           // state time of the restore
	// Revisions and Prices are the greatest scraper revision and price version of all earlier
	// states.
	Revisions uint32 `cbor:"6,keyasint,omitempty"`
	Prices    uint32 `cbor:"7,keyasint,omitempty"`
	// Ancestors are the earlier generations, the youngest first. Each reaches up to the index at
	// which its successor continues.
	Ancestors []Step `cbor:"8,keyasint,omitempty"`
}

var clusterTable = define(1, "cluster",
	index("id", true, func(*Cluster) []any { return []any{"cluster"} }))

// Cluster returns the cluster's record, nil before the cluster's first command.
func (v *View) Cluster() *Cluster { return clusterTable.first(v, "id", "cluster") }

// ClusterName returns the cluster's id, "" before its first command.
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

// PutCluster sets the cluster's record.
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
	Capacity uint32   `cbor:"6,keyasint,omitempty"` // weight of its fetcher, 0: it has none
	JoinedAt int64    `cbor:"7,keyasint"`
	// set by an operator, until an operator clears it
	Draining bool `cbor:"8,keyasint,omitempty"`
	// Tiers are the tiers that its fetcher supports; 0: plain only.
	Tiers model.TierSet `cbor:"9,keyasint,omitempty"`
}

var nodesTable = define(1, "nodes",
	index("id", true, func(n *Node) []any { return []any{n.Name} })).
	watchable().told((*Node).telling)

// Node returns a node by name, nil when it never registered.
func (v *View) Node(name string) *Node { return nodesTable.first(v, "id", name) }

// WatchNode returns the node and a channel that is closed when the node may have changed.
func (v *View) WatchNode(name string) (*Node, <-chan struct{}) {
	return nodesTable.watch(v, name)
}

// Nodes lists the registered nodes by name.
func (v *View) Nodes() []*Node { return nodesTable.all(v, "id_prefix") }

// Tiers returns the tiers that every shard's owner supports. A run may rely on them whatever its
// hosts. While no shard has an owner (a new cluster), all nodes with a fetcher count.
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

// PutNode adds or replaces a node.
func (t *Tx) PutNode(n *Node) { nodesTable.put(t, n) }

// RemoveNode removes a node.
func (t *Tx) RemoveNode(n *Node) { nodesTable.remove(t, n) }

// Shard says which node fetches a shard. Epoch counts up with every change of owner.
type Shard struct {
	Number uint16 `cbor:"1,keyasint"`
	Owner  string `cbor:"2,keyasint,omitempty"` // node name, "": nobody
	Epoch  uint64 `cbor:"3,keyasint"`
	// Next is the node that takes over when Owner has released the shard, "": none.
	Next string `cbor:"4,keyasint,omitempty"`
	// Moved is the newest dispatch number at the time of the shard's last planned release. Nobody
	// has begun a dispatch up to it that is still out.
	Moved uint64 `cbor:"5,keyasint,omitempty"`
}

var shardsTable = define(1, "shards",
	index("id", true, func(s *Shard) []any { return []any{s.Number} }))

// Shard returns a shard by number, nil if the cluster does not have it.
func (v *View) Shard(number uint16) *Shard { return shardsTable.first(v, "id", number) }

// Shards lists the shards by number.
func (v *View) Shards() []*Shard { return shardsTable.all(v, "id_prefix") }

// PutShard adds or replaces a shard.
func (t *Tx) PutShard(s *Shard) { shardsTable.put(t, s) }
