package command

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// The payloads that the loop and the cluster itself propose. They are idempotent by nature and keep
// no result.

// CreateClusterPayload is the first command of a cluster. A second one changes nothing.
type CreateClusterPayload struct {
	ID         ids.ID     `cbor:"1,keyasint"`
	Shards     uint16     `cbor:"2,keyasint"` // 1 or more
	FreeGrant  int64      `cbor:"3,keyasint"`
	HashSecret uint64     `cbor:"4,keyasint"`
	Prices     price.List `cbor:"5,keyasint"`           // the first price table
	Log        string     `cbor:"6,keyasint,omitempty"` // the leader's, as in RegisterNodePayload
	Rows       string     `cbor:"7,keyasint,omitempty"`
	// Version is the cluster's from its beginning.
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

// RegisterNodePayload makes a started process known; claims of its earlier starts are dropped. One
// that works on another log or row store than the cluster (the first node's) is refused with
// other_services. What it fetches and stores would be charged and never be seen.
type RegisterNodePayload struct {
	Name     string   `cbor:"1,keyasint"`
	Boot     ids.ID   `cbor:"2,keyasint"`
	Roles    []string `cbor:"3,keyasint"`
	Address  string   `cbor:"4,keyasint,omitempty"`
	Version  string   `cbor:"5,keyasint,omitempty"`
	Capacity uint32   `cbor:"6,keyasint,omitempty"`
	// how the log names itself, "" for a process's own
	Log    string `cbor:"7,keyasint,omitempty"`
	Rows   string `cbor:"8,keyasint,omitempty"` // how the row store does
	Rebind bool   `cbor:"9,keyasint,omitempty"` // these are the cluster's from now on
	// Tiers are the ways in which its fetcher can fetch; 0: plain alone.
	Tiers model.TierSet `cbor:"10,keyasint,omitempty"`
}

// Declaration implements Payload.
func (RegisterNodePayload) Declaration() Declaration {
	return Declaration{Number: 2, By: Itself}
}

func (RegisterNodePayload) yields(None) {}

// RemoveNodePayload forgets a node that is gone for good. Its shards move by the rules of leases,
// its calls under way expire. A node that is there after all registers again. One that is not
// known, or was started again since, is left alone.
type RemoveNodePayload struct {
	Name string `cbor:"1,keyasint"`
	Boot ids.ID `cbor:"2,keyasint"` // the start of it that is meant
}

// Declaration implements Payload.
func (RemoveNodePayload) Declaration() Declaration {
	return Declaration{Number: 5, By: APIServer}
}

func (RemoveNodePayload) yields(None) {}

// ShardChange gives a shard to a node, or names who comes next.
type ShardChange struct {
	Number uint16 `cbor:"1,keyasint"`
	Owner  string `cbor:"2,keyasint,omitempty"`
	Next   string `cbor:"3,keyasint,omitempty"`
	// Epoch is the epoch that the change was planned against: at another one it changes nothing.
	Epoch uint64 `cbor:"4,keyasint"`
	// Planned says that the owner has let go of the shard: all that it began there is in the log.
	Planned bool `cbor:"5,keyasint,omitempty"`
}

// AssignShardsPayload changes who fetches what. A change of owner raises the shard's epoch.
type AssignShardsPayload struct {
	Changes []ShardChange `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (AssignShardsPayload) Declaration() Declaration {
	return Declaration{Number: 3, By: Leader}
}

func (AssignShardsPayload) yields(None) {}

// TickPayload lets the stamp's time expire what has come due: claims, stored results.
type TickPayload struct{}

// Declaration implements Payload.
func (TickPayload) Declaration() Declaration {
	return Declaration{Number: 4, By: Leader}
}

func (TickPayload) yields(None) {}

// DrainNodePayload sets whether a node's fetcher is to hand over its shards and to get none. It
// holds until it is taken back, also over restarts of the node. Faults: not_found.
type DrainNodePayload struct {
	Name     string `cbor:"1,keyasint"`
	Draining bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DrainNodePayload) Declaration() Declaration {
	return Declaration{Number: 6, By: APIServer}
}

func (DrainNodePayload) yields(None) {}

// WindowRun are the seqs of one run that the dispatcher wants out, in its order. Seqs that are out
// or closed are passed over.
type WindowRun struct {
	Job  ids.ID   `cbor:"1,keyasint"`
	Seqs []uint32 `cbor:"2,keyasint,omitempty"`
	// Domains are, of a run with daily limits, the domains of Seqs by their hashes; 0: nothing is
	// read there.
	Domains []uint64 `cbor:"3,keyasint,omitempty"`
	// Priced are, of a run whose price table has rows of domains, the places of those of Seqs
	// (price.Places); 0: none. The leader chooses, since the domain of a host goes by a list of
	// public suffixes, which nodes of two releases have differently.
	Priced []byte `cbor:"4,keyasint,omitempty" since:"2"`
}

// ExtendWindowPayload sends units out, each with its reservation, as far as wallet and cap reach;
// run by run in the order given.
type ExtendWindowPayload struct {
	Runs []WindowRun `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ExtendWindowPayload) Declaration() Declaration {
	return Declaration{Number: 42, By: Leader}
}

func (ExtendWindowPayload) yields(Window) {}

// Grant is a seq that went out.
type Grant struct {
	DispatchRef
	Attempt uint8
	Tiers   model.TierSet
	Budget  uint32              // pages
	From    *model.Continuation // nil: from page 0
	Limited bool                // a daily limit is reached
	Domain  string              // price row of its domain, "": it has none
}

// Window answers ExtendWindowPayload and RedispatchPayload: what went out, and what was given back
// instead.
type Window struct {
	Grants []Grant
	// Refused are seqs that money did not reach, or that wait for reads under a daily limit; they
	// stay set aside.
	Refused []SeqRef
	Gone    []SeqRef
}

// SeqRef names a seq of a run. Closed says that it is done with; otherwise it is set aside again.
type SeqRef struct {
	Job    ids.ID
	Seq    uint32
	Closed bool
}

// Settled answers SettlePayload: the seqs that are not out any more, and how many units were
// settled by it.
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

// RedispatchPayload handles dispatches found lost, or never sent by a leader that saw its run end.
// Of a running run each goes out again under a new number with Attempt one higher; of an ended run
// it is given back. A dispatch that is not the unit's newest changes nothing.
type RedispatchPayload struct {
	Lost []DispatchRef `cbor:"1,keyasint"`
	// Moved: dispatches numbered up to it were laid down by a planned move of their shard
	// (Shard.Moved), which is no attempt.
	Moved uint64 `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (RedispatchPayload) Declaration() Declaration {
	return Declaration{Number: 44, By: Leader}
}

func (RedispatchPayload) yields(Window) {}

// CloseRunPayload seals a run of which nothing is out or set aside, or that has ended and of which
// nothing is out. Its sets are dropped. Otherwise it changes nothing.
type CloseRunPayload struct {
	Job ids.ID `cbor:"1,keyasint"`
	// Odd says why the run is held back if it is complete and its group wants that; "": it is not.
	Odd string `cbor:"2,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (CloseRunPayload) Declaration() Declaration {
	return Declaration{Number: 45, By: Leader}
}

func (CloseRunPayload) yields(None) {}

// ForgetUndonePayload forgets runs that a restore undid and of which the row store has nothing any
// more.
type ForgetUndonePayload struct {
	Jobs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetUndonePayload) Declaration() Declaration {
	return Declaration{Number: 46, By: Leader, Since: 2}
}

func (ForgetUndonePayload) yields(None) {}
