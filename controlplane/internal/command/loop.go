package command

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// The payloads that the loop and the cluster itself propose. They are idempotent by nature, and
// their results are not kept.

// CreateClusterPayload is the first command of a cluster. A second one changes nothing.
type CreateClusterPayload struct {
	ID         ids.ID     `cbor:"1,keyasint"`
	Shards     uint16     `cbor:"2,keyasint"` // 1 or more
	FreeGrant  int64      `cbor:"3,keyasint"`
	HashSecret uint64     `cbor:"4,keyasint"`
	Prices     price.List `cbor:"5,keyasint"`           // the first price table
	Log        string     `cbor:"6,keyasint,omitempty"` // the leader's, as in RegisterNodePayload
	Rows       string     `cbor:"7,keyasint,omitempty"`
	// Version is the cluster's first version.
	Version uint32 `cbor:"8,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (CreateClusterPayload) Declaration() Declaration {
	return Declaration{Number: 1, By: Leader}
}

func (CreateClusterPayload) yields(None) {}

// ActivateVersionPayload raises the cluster's version, which never falls.
type ActivateVersionPayload struct {
	Version uint32 `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ActivateVersionPayload) Declaration() Declaration {
	return Declaration{Number: 7, By: Leader, Since: 2}
}

func (ActivateVersionPayload) yields(None) {}

// RegisterNodePayload registers a started process, and drops the claims of its earlier starts. A
// node with another log or row store than the cluster's (the first node's) is refused with
// other_services. What it fetches and stores would be charged, but never be seen.
type RegisterNodePayload struct {
	Name     string   `cbor:"1,keyasint"`
	Boot     ids.ID   `cbor:"2,keyasint"`
	Roles    []string `cbor:"3,keyasint"`
	Address  string   `cbor:"4,keyasint,omitempty"`
	Version  string   `cbor:"5,keyasint,omitempty"`
	Capacity uint32   `cbor:"6,keyasint,omitempty"`
	// name of its log, "" if one process owns it
	Log    string `cbor:"7,keyasint,omitempty"`
	Rows   string `cbor:"8,keyasint,omitempty"` // name of its row store
	Rebind bool   `cbor:"9,keyasint,omitempty"` // makes these names the cluster's
	// Tiers are the tiers that its fetcher supports; 0: plain only.
	Tiers model.TierSet `cbor:"10,keyasint,omitempty"`
}

// Declaration implements Payload.
func (RegisterNodePayload) Declaration() Declaration {
	return Declaration{Number: 2, By: Itself}
}

func (RegisterNodePayload) yields(None) {}

// RemoveNodePayload removes a node that is gone for good. Its shards move by the rules of leases,
// and its calls under way expire. If the node comes back after all, it registers again. An unknown
// node, or another start of the node, is left alone.
type RemoveNodePayload struct {
	Name string `cbor:"1,keyasint"`
	Boot ids.ID `cbor:"2,keyasint"` // the start to remove
}

// Declaration implements Payload.
func (RemoveNodePayload) Declaration() Declaration {
	return Declaration{Number: 5, By: APIServer}
}

func (RemoveNodePayload) yields(None) {}

// ShardChange sets a shard's owner, or its next owner.
type ShardChange struct {
	Number uint16 `cbor:"1,keyasint"`
	Owner  string `cbor:"2,keyasint,omitempty"`
	Next   string `cbor:"3,keyasint,omitempty"`
	// Epoch is the shard's epoch in the plan. At another epoch the change is ignored.
	Epoch uint64 `cbor:"4,keyasint"`
	// Planned says that the owner has released the shard: everything it began there is in the log.
	Planned bool `cbor:"5,keyasint,omitempty"`
}

// AssignShardsPayload changes the owners of shards. A change of owner raises the shard's epoch.
type AssignShardsPayload struct {
	Changes []ShardChange `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (AssignShardsPayload) Declaration() Declaration {
	return Declaration{Number: 3, By: Leader}
}

func (AssignShardsPayload) yields(None) {}

// TickPayload expires what is due by the stamp, such as claims and stored results.
type TickPayload struct{}

// Declaration implements Payload.
func (TickPayload) Declaration() Declaration {
	return Declaration{Number: 4, By: Leader}
}

func (TickPayload) yields(None) {}

// DrainNodePayload sets whether a node's fetcher hands over its shards and gets no new ones. It
// stays set over restarts of the node until it is reset. Faults: not_found.
type DrainNodePayload struct {
	Name     string `cbor:"1,keyasint"`
	Draining bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DrainNodePayload) Declaration() Declaration {
	return Declaration{Number: 6, By: APIServer}
}

func (DrainNodePayload) yields(None) {}

// WindowRun lists the seqs of one run to be dispatched, in the dispatcher's order. Seqs that are
// out or closed are skipped.
type WindowRun struct {
	Job  ids.ID   `cbor:"1,keyasint"`
	Seqs []uint32 `cbor:"2,keyasint,omitempty"`
	// Domains lists, for a run with daily limits, the hashed domains of Seqs; 0: the seq reads
	// nothing.
	Domains []uint64 `cbor:"3,keyasint,omitempty"`
	// Priced lists, for a run with price rows of domains, the places of the rows of Seqs
	// (price.Places); 0: none. The leader chooses them. A host's domain depends on the list of
	// public suffixes, which may differ between releases.
	Priced []byte `cbor:"4,keyasint,omitempty" since:"2"`
}

// ExtendWindowPayload dispatches units, each with its reservation, as far as wallet and cap allow.
// It takes the runs in the given order.
type ExtendWindowPayload struct {
	Runs []WindowRun `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ExtendWindowPayload) Declaration() Declaration {
	return Declaration{Number: 42, By: Leader}
}

func (ExtendWindowPayload) yields(Window) {}

// Grant is a dispatched seq.
type Grant struct {
	DispatchRef
	Attempt uint8
	Tiers   model.TierSet
	Budget  uint32              // pages
	From    *model.Continuation // nil: from page 0
	Limited bool                // a daily limit is reached
	Domain  string              // price row of its domain, "": none
}

// Window answers ExtendWindowPayload and RedispatchPayload: what was dispatched, and what was given
// back.
type Window struct {
	Grants []Grant
	// Refused lists seqs that money does not cover, or that wait under a daily limit. They stay set
	// aside.
	Refused []SeqRef
	Gone    []SeqRef
}

// SeqRef names a seq of a run. Closed says that it is closed; otherwise it is set aside again.
type SeqRef struct {
	Job    ids.ID
	Seq    uint32
	Closed bool
}

// Settled answers SettlePayload: the seqs that are no longer out, and how many units it settled.
type Settled struct {
	Gone      []SeqRef
	Delivered int
	Errored   int
	Other     int // empty ends of chains and duplicates
}

// SettlePayload is a batch of receipts in the order in which billing read them.
type SettlePayload struct {
	Receipts []model.Receipt `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (SettlePayload) Declaration() Declaration {
	return Declaration{Number: 43, By: Billing}
}

func (SettlePayload) yields(Settled) {}

// DispatchRef names one dispatch of a seq.
type DispatchRef struct {
	Job    ids.ID `cbor:"1,keyasint"`
	Seq    uint32 `cbor:"2,keyasint"`
	Number uint64 `cbor:"3,keyasint"`
}

// RedispatchPayload handles dispatches that are lost, or that a leader never sent because the run
// ended. In a running run each is dispatched again, with a new number and Attempt one higher. In an
// ended run it is given back. A dispatch that is not the unit's newest is ignored.
type RedispatchPayload struct {
	Lost []DispatchRef `cbor:"1,keyasint"`
	// Moved: a planned move of the shard laid down the dispatches numbered up to it (Shard.Moved).
	// They do not count as attempts.
	Moved uint64 `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (RedispatchPayload) Declaration() Declaration {
	return Declaration{Number: 44, By: Leader}
}

func (RedispatchPayload) yields(Window) {}

// CloseRunPayload seals a run and drops its sets. Nothing of the run may be out, and nothing set
// aside unless the run has ended. Otherwise it changes nothing.
type CloseRunPayload struct {
	Job ids.ID `cbor:"1,keyasint"`
	// Odd says why to hold a complete run back, if its group wants that; "": it is not held back.
	Odd string `cbor:"2,keyasint,omitempty" since:"2"`
	// Unjudged says why a complete run could not be judged, if its group wants that; "": it was.
	Unjudged string `cbor:"3,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (CloseRunPayload) Declaration() Declaration {
	return Declaration{Number: 45, By: Leader}
}

func (CloseRunPayload) yields(None) {}

// ForgetUndonePayload forgets undone runs whose rows the row store has removed.
type ForgetUndonePayload struct {
	Jobs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetUndonePayload) Declaration() Declaration {
	return Declaration{Number: 46, By: Leader, Since: 2}
}

func (ForgetUndonePayload) yields(None) {}
