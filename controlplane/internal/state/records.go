package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// All times in state are Unix milliseconds of state time: the leader's stamps, never a node's own clock. Money is in
// micros. Records that a read returned must be copied before they are changed.

// Customer owns everything else. Ref is the identity provider's user id, 1 to 128 bytes.
type Customer struct {
	Ref       string `cbor:"1,keyasint"`
	CreatedAt int64  `cbor:"2,keyasint"`
	Claims    int    `cbor:"3,keyasint,omitempty"` // idempotency records kept
}

// Key is an API key; only the hash of its secret is known.
type Key struct {
	ID         ids.ID      `cbor:"1,keyasint"`
	Customer   string      `cbor:"2,keyasint"`
	Prefix     string      `cbor:"3,keyasint"` // 7 characters
	Hash       [32]byte    `cbor:"4,keyasint"` // SHA-256 of the whole key as the client sends it
	Name       string      `cbor:"5,keyasint"`
	Scope      model.Scope `cbor:"6,keyasint"`
	CreatedAt  int64       `cbor:"7,keyasint"`
	LastUsedAt int64       `cbor:"8,keyasint,omitempty"` // 0: never
	// Trials are counted for keys of the scope LLM_READ alone (decision 7): those of the UTC day TrialDay, in days since
	// 1970, which are under way or were charged.
	Trials   uint32 `cbor:"9,keyasint,omitempty"`
	TrialDay int64  `cbor:"10,keyasint,omitempty"`
}

// Group owns one data collection.
type Group struct {
	ID                  ids.ID `cbor:"1,keyasint"`
	Customer            string `cbor:"2,keyasint"`
	Name                string `cbor:"3,keyasint"`
	DataTable           string `cbor:"4,keyasint"`
	StartType           string `cbor:"5,keyasint"`
	ShouldMatchProducts bool   `cbor:"6,keyasint,omitempty"`
	CreatedAt           int64  `cbor:"7,keyasint"`
	UpdatedAt           int64  `cbor:"8,keyasint"`
	Scrapers            int    `cbor:"9,keyasint,omitempty"` // members
}

// Scraper is a saved scraper. Revision counts up with every change of its recipe.
type Scraper struct {
	ID        ids.ID        `cbor:"1,keyasint"`
	Customer  string        `cbor:"2,keyasint"`
	Group     ids.ID        `cbor:"3,keyasint"`
	Spec      model.Scraper `cbor:"4,keyasint"`
	Revision  uint32        `cbor:"5,keyasint"`
	CreatedAt int64         `cbor:"6,keyasint"`
	UpdatedAt int64         `cbor:"7,keyasint"`
	// ListRun marks the scraper of a list run; Tag is its endpoint tag, "" without one.
	ListRun bool   `cbor:"8,keyasint,omitempty"`
	Tag     string `cbor:"9,keyasint,omitempty"`
	LastJob ids.ID `cbor:"10,keyasint,omitempty"` // newest run, zero: never run
}

// Schema is an extraction schema, a customer's or a global one (Customer "").
type Schema struct {
	ID             ids.ID   `cbor:"1,keyasint"`
	Customer       string   `cbor:"2,keyasint,omitempty"`
	Name           string   `cbor:"3,keyasint,omitempty"`
	Version        int64    `cbor:"4,keyasint"`
	Type           string   `cbor:"5,keyasint"`
	Content        []byte   `cbor:"6,keyasint"` // a JSON Schema document
	Description    string   `cbor:"7,keyasint,omitempty"`
	TemplateID     string   `cbor:"8,keyasint,omitempty"`
	TemplateName   string   `cbor:"9,keyasint,omitempty"`
	DomainPatterns []string `cbor:"10,keyasint,omitempty"`
	CreatedAt      int64    `cbor:"11,keyasint"`
	UpdatedAt      int64    `cbor:"12,keyasint"`
}

// Preview is a deletion that was shown and not done yet.
type Preview struct {
	Token     string  `cbor:"1,keyasint"`
	Customer  string  `cbor:"2,keyasint"`
	Operation string  `cbor:"3,keyasint"`
	Target    ids.ID  `cbor:"4,keyasint"`
	Query     string  `cbor:"5,keyasint,omitempty"`
	Cascade   Cascade `cbor:"6,keyasint"`
	CreatedAt int64   `cbor:"7,keyasint"`
	Expires   int64   `cbor:"8,keyasint"`
}

// Cascade is what hangs on the target of a deletion.
type Cascade struct {
	Name   string  `cbor:"1,keyasint"` // of the target
	Type   string  `cbor:"2,keyasint"` // of the target: SCHEMA
	Counts []Count `cbor:"3,keyasint,omitempty"`
	Digest uint64  `cbor:"4,keyasint"` // of which ones they are
}

// Count is how many things of a kind a deletion reaches.
type Count struct {
	Name string `cbor:"1,keyasint"`
	N    int    `cbor:"2,keyasint"`
}

// Recipe is a scraper's recipe under one revision; it stays while the scraper has that revision or a run uses it. A
// trial's recipe stands under the trial's own id, as if that were a scraper's, with the revision 1.
type Recipe struct {
	Scraper  ids.ID       `cbor:"1,keyasint"`
	Revision uint32       `cbor:"2,keyasint"`
	Recipe   model.Recipe `cbor:"3,keyasint"`
}

// Job is a run. Its sets of units are kept beside it (Run) until it is closed.
type Job struct {
	ID       ids.ID           `cbor:"1,keyasint"`
	Customer string           `cbor:"2,keyasint"`
	Group    ids.ID           `cbor:"3,keyasint"`
	Scraper  ids.ID           `cbor:"4,keyasint"`
	Revision uint32           `cbor:"5,keyasint"`
	List     ids.ID           `cbor:"6,keyasint"` // its link list in the row store
	Links    uint32           `cbor:"7,keyasint"` // length of that list
	State    model.JobState   `cbor:"8,keyasint"`
	Reason   model.StopReason `cbor:"9,keyasint,omitempty"`
	Message  string           `cbor:"10,keyasint,omitempty"`
	Queued   int64            `cbor:"11,keyasint"`
	Started  int64            `cbor:"12,keyasint"` // equal to Queued until the first dispatch
	Finished int64            `cbor:"13,keyasint,omitempty"`
	// Closed: nothing of the run is out, its ledger entry is sealed, nothing about it changes any more.
	Closed    bool          `cbor:"14,keyasint,omitempty"`
	Success   uint32        `cbor:"15,keyasint,omitempty"` // links whose chain was read to its end
	Errors    uint32        `cbor:"16,keyasint,omitempty"` // links that ended with an error
	Items     uint64        `cbor:"17,keyasint,omitempty"` // rows stored
	Pages     uint64        `cbor:"18,keyasint,omitempty"` // units brought to an end: delivered or errored (decision 38)
	Tiers     model.TierSet `cbor:"19,keyasint"`
	Prices    uint32        `cbor:"20,keyasint"` // version of the price table
	MaxCharge *int64        `cbor:"21,keyasint,omitempty"`
	Entry     ids.ID        `cbor:"22,keyasint"` // its ledger entry
	Index     uint64        `cbor:"23,keyasint"` // Raft index of the last change: the event id of its stream
	Delivered uint64        `cbor:"24,keyasint,omitempty"`
	Charged   int64         `cbor:"25,keyasint,omitempty"` // so far, 0 or more
	MaxPages  uint32        `cbor:"26,keyasint"`           // most pages of one chain
	// Robots off is recorded (decision 17).
	IgnoresRobots bool `cbor:"27,keyasint,omitempty"`
	// Charge is how its pages are charged.
	Charge model.Charge `cbor:"28,keyasint,omitzero"`
	// Daily are the limits that its reads count towards.
	Daily model.DailyLimits `cbor:"29,keyasint,omitzero"`
	// Source is the call that a trial was made by, "" of a run. A trial belongs to no group and, by Scraper, to itself, so
	// that nothing which is read by group or scraper has it.
	Source model.Source `cbor:"40,keyasint,omitempty"`
	Key    ids.ID       `cbor:"41,keyasint,omitempty"` // the key whose trials of the day it is one of; zero: none
	// Rest says that its list is what a rerun left of one that was given before.
	Rest bool `cbor:"42,keyasint,omitempty" since:"2"`
}

// Trial says whether the run is a sample or a preview: it is no part of the history or the data.
func (j *Job) Trial() bool { return j.Source != "" }

// PriceTable is a version of the prices. A job keeps the version that it was launched under.
type PriceTable struct {
	Version uint32     `cbor:"1,keyasint"`
	Rows    price.List `cbor:"2,keyasint"`
}

// Wallet is a customer's money, as the accounts of the ledger say it.
type Wallet struct {
	Customer  string `cbor:"1,keyasint"`
	Available int64  `cbor:"2,keyasint"`            // neither charged nor reserved
	Reserved  int64  `cbor:"3,keyasint,omitempty"`  // held for units that are out
	Free      int64  `cbor:"4,keyasint,omitempty"`  // free requests neither used nor reserved
	FreeHeld  int64  `cbor:"5,keyasint,omitempty"`  // free requests held for units that are out
	Sealed    int64  `cbor:"6,keyasint"`            // balance by the sealed entries alone: their running sum
	Threshold int64  `cbor:"7,keyasint,omitempty"`  // low-balance threshold
	Sequence  uint64 `cbor:"8,keyasint,omitempty"`  // entries sealed so far
	Out       uint32 `cbor:"9,keyasint,omitempty"`  // units out over all runs of the customer
	ToppedUp  bool   `cbor:"10,keyasint,omitempty"` // an entry has added money at some time
}

// Balance is balanceMicros: the sealed balance plus what open runs have been charged (which is negative).
func (w *Wallet) Balance() int64 { return w.Available + w.Reserved }

// Entry types and states (specification 2.9).
const (
	EntryTopUp      = "TOPUP"
	EntryCharge     = "CHARGE"
	EntryAdjustment = "ADJUSTMENT"
	EntryFreeGrant  = "FREE_GRANT"

	EntryOpen    = "OPEN"
	EntrySettled = "SETTLED"
	EntryApplied = "APPLIED"
)

// Entry is a wallet transaction. It is immutable once sealed (Status other than OPEN).
type Entry struct {
	ID           ids.ID       `cbor:"1,keyasint"`
	Customer     string       `cbor:"2,keyasint"`
	Type         string       `cbor:"3,keyasint"`
	Status       string       `cbor:"4,keyasint"`
	Amount       int64        `cbor:"5,keyasint"`
	FreeDelta    int64        `cbor:"6,keyasint,omitempty"`
	BalanceAfter int64        `cbor:"7,keyasint,omitempty"` // meaningless while OPEN
	Source       model.Source `cbor:"8,keyasint,omitempty"`
	Job          ids.ID       `cbor:"9,keyasint,omitempty"`
	Scraper      ids.ID       `cbor:"10,keyasint,omitempty"`
	Group        ids.ID       `cbor:"11,keyasint,omitempty"`
	Lines        []Line       `cbor:"12,keyasint,omitempty"`
	Note         string       `cbor:"13,keyasint,omitempty"`
	CreatedAt    int64        `cbor:"14,keyasint"`
	SettledAt    int64        `cbor:"15,keyasint,omitempty"`
	Sequence     uint64       `cbor:"16,keyasint,omitempty"` // place in the customer's seal order, from 1; 0 while OPEN
	Created      uint64       `cbor:"17,keyasint"`           // Raft index of its creation: the order of the list
}

// Line is a total per price row within an entry. Pages counts charged quantities; FreePages those that a free request paid.
type Line struct {
	RowKey    string `cbor:"1,keyasint"`
	Label     string `cbor:"2,keyasint"`
	Pages     uint64 `cbor:"3,keyasint,omitempty"`
	FreePages uint64 `cbor:"4,keyasint,omitempty"`
	UnitPrice int64  `cbor:"5,keyasint"`
	Amount    int64  `cbor:"6,keyasint,omitempty"` // 0 or below
}

// Claim is an idempotency record: a call under way, or its result.
type Claim struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"`
	Key       string `cbor:"3,keyasint"`
	Request   uint64 `cbor:"4,keyasint"` // hash of the request
	Done      bool   `cbor:"5,keyasint,omitempty"`
	// Number is the command whose encoded result, or fault, this is.
	Number  uint16 `cbor:"6,keyasint,omitempty"`
	Result  []byte `cbor:"7,keyasint,omitempty"`
	Fault   []byte `cbor:"8,keyasint,omitempty"`
	Expires int64  `cbor:"9,keyasint"`
	List    ids.ID `cbor:"10,keyasint,omitempty"` // the link list that the call is taking in
	Node    string `cbor:"11,keyasint,omitempty"` // whose call it is while it is under way
	Boot    ids.ID `cbor:"12,keyasint,omitempty"` // and since which start of that node
	Ticket  ids.ID `cbor:"13,keyasint,omitempty"` // what the command that completes it must show
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
	Draining bool     `cbor:"8,keyasint,omitempty"` // an operator's word: kept until it is taken back
	// Tiers are the ways in which its fetcher can fetch; 0: plain alone.
	Tiers model.TierSet `cbor:"9,keyasint,omitempty"`
}

// Shard is who fetches a shard. Epoch counts up with every change of hands.
type Shard struct {
	Number uint16 `cbor:"1,keyasint"`
	Owner  string `cbor:"2,keyasint,omitempty"` // node name, "": nobody
	Epoch  uint64 `cbor:"3,keyasint"`
	// Next is the node that takes over when Owner has released it, "": none.
	Next string `cbor:"4,keyasint,omitempty"`
	// Moved is the number of the newest dispatch when the last owner let go of the shard by plan: up to there what is
	// still out was begun by nobody.
	Moved uint64 `cbor:"5,keyasint,omitempty"`
}

// Cluster is what is fixed at the cluster's creation.
type Cluster struct {
	ID         ids.ID `cbor:"1,keyasint"`
	Shards     uint16 `cbor:"2,keyasint"`
	FreeGrant  int64  `cbor:"3,keyasint"` // free requests of a new wallet
	CreatedAt  int64  `cbor:"4,keyasint"`
	HashSecret uint64 `cbor:"5,keyasint"` // seed of URL hashes
	// Log and Rows name the log and the row store that all nodes work on, as they name themselves; "" when they are a
	// process's own, or not known yet.
	Log  string `cbor:"6,keyasint,omitempty"`
	Rows string `cbor:"7,keyasint,omitempty"`
	// Generation is what the newest restore began; nil: none was restored.
	Generation *Generation `cbor:"8,keyasint,omitempty" since:"2"`
	// Version is what all members can apply (package command); 0 is 1, too.
	Version uint32 `cbor:"9,keyasint,omitempty" since:"2"`
}

// Generation is the time of a cluster's state from one restore to the next.
type Generation struct {
	ID      ids.ID `cbor:"1,keyasint"`
	Parent  ids.ID `cbor:"2,keyasint,omitempty"` // that the backup was taken in; zero: the first
	Cut     uint64 `cbor:"3,keyasint"`           // index of the backup's newest command
	CutTime int64  `cbor:"4,keyasint"`           // state time of the backup
	At      int64  `cbor:"5,keyasint"`           // state time of the restore
	// Revisions and Prices are the greatest revision of a scraper and version of the prices that states before this one had.
	Revisions uint32 `cbor:"6,keyasint,omitempty"`
	Prices    uint32 `cbor:"7,keyasint,omitempty"`
}

// Undone is a run that a restore undid: it was launched after the cut. What the row store has of it is read by nobody, and
// goes when the restore's grace is over.
type Undone struct {
	Job      ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	Group    ids.ID `cbor:"3,keyasint"`
	Scraper  ids.ID `cbor:"4,keyasint"`
}

// Revoked is a key that was revoked, so that a restore does not make it valid again.
type Revoked struct {
	Key ids.ID `cbor:"1,keyasint"`
	At  int64  `cbor:"2,keyasint"`
}

// Books are the system's accounts of the ledger; the customers' stand in their wallets. Every movement is between two
// accounts, so all accounts together sum to zero, for money and for free requests alike.
type Books struct {
	Revenue     int64 `cbor:"1,keyasint,omitempty"` // charged
	Adjustments int64 `cbor:"2,keyasint,omitempty"` // counterpart of adjustments
	FreeIssued  int64 `cbor:"3,keyasint,omitempty"` // counterpart of free requests granted
	FreeUsed    int64 `cbor:"4,keyasint,omitempty"` // free requests used
}
