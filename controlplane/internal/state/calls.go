package state

import (
	"crypto/sha256"

	"shoal.dev/shoal/pkg/ids"
)

// BriefSince is the first cluster version in which idempotency records are brief. They name a
// call by its hash, and keep of its result only what the call does not say itself.
const BriefSince = 2

// CallName tells a customer's calls apart: it is the begin of the SHA-256 of operation and key.
type CallName [16]byte

// Claim is an idempotency record: a call under way, or its result.
type Claim struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"` // "" with a Name
	Key       string `cbor:"3,keyasint"` // "" with a Name
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
	// Name stands for Operation and Key. It is zero of a claim that was made before BriefSince.
	Name CallName `cbor:"14,keyasint,omitzero" since:"2"`
	// Kept is, instead of Result, what the result is made from together with the call.
	Kept []byte `cbor:"15,keyasint,omitempty" since:"2"`
	// Body is the hash of the streamed body that the call came with, 0: it had none.
	Body uint64 `cbor:"16,keyasint,omitempty" since:"2"`
}

// NewClaim names a claim as the cluster's version has it.
func (t *Tx) NewClaim(customer, operation, key string) *Claim {
	if t.ClusterVersion() < BriefSince {
		return &Claim{Customer: customer, Operation: operation, Key: key}
	}
	return &Claim{Customer: customer, Name: nameCall(operation, key)}
}

func nameCall(operation, call string) CallName {
	sum := sha256.Sum256(key(operation, call))
	return CallName(sum[:])
}

// parts are the claim's key.
func (c *Claim) parts() []any {
	if c.Name == (CallName{}) {
		return []any{c.Customer, c.Operation, c.Key}
	}
	return []any{c.Customer, c.Name}
}

// briefClaim is a claim with a Name as it is written: nothing that it has not takes room.
type briefClaim struct {
	Customer string   `cbor:"1,keyasint"`
	Request  uint64   `cbor:"4,keyasint"`
	Done     bool     `cbor:"5,keyasint,omitempty"`
	Number   uint16   `cbor:"6,keyasint,omitempty"`
	Result   []byte   `cbor:"7,keyasint,omitempty"`
	Fault    []byte   `cbor:"8,keyasint,omitempty"`
	Expires  int64    `cbor:"9,keyasint"`
	List     ids.ID   `cbor:"10,keyasint,omitzero"`
	Node     string   `cbor:"11,keyasint,omitempty"`
	Boot     ids.ID   `cbor:"12,keyasint,omitzero"`
	Ticket   ids.ID   `cbor:"13,keyasint,omitzero"`
	Name     CallName `cbor:"14,keyasint"`
	Kept     []byte   `cbor:"15,keyasint,omitempty"`
	Body     uint64   `cbor:"16,keyasint,omitempty"`
}

func (c *Claim) brief(*Claim) any {
	if c.Name == (CallName{}) {
		return c
	}
	return &briefClaim{Customer: c.Customer, Request: c.Request, Done: c.Done, Number: c.Number,
		Result: c.Result, Fault: c.Fault, Expires: c.Expires, List: c.List, Node: c.Node,
		Boot: c.Boot, Ticket: c.Ticket, Name: c.Name, Kept: c.Kept, Body: c.Body}
}

// What a record takes at most beside its texts, in bytes of a snapshot.
const (
	claimBytes    = 53 // with a result
	underWayBytes = 48 // more, of a call under way
	bodyBytes     = 10 // more, of a call that a streamed body came with
)

// Bytes is what the record takes at most in a snapshot; 0 of one that was made before BriefSince.
func (c *Claim) Bytes() int {
	if c.Name == (CallName{}) {
		return 0
	}
	n := claimBytes + len(c.Customer) + len(c.Result) + len(c.Kept) + len(c.Fault) + len(c.Node)
	if !c.Done {
		n += underWayBytes
	}
	if c.Body != 0 {
		n += bodyBytes
	}
	return n
}

var claimsTable = define(1, "claims",
	index("id", true, (*Claim).parts),
	index("expires", true, func(c *Claim) []any { return append([]any{c.Expires}, c.parts()...) }),
	index("list", false, func(c *Claim) []any {
		if c.List.IsZero() {
			return nil
		}
		return []any{c.List}
	}),
	index("node", false, func(c *Claim) []any {
		if c.Done {
			return nil
		}
		return []any{c.Node}
	}),
).written((*Claim).brief).untold()

// Claim is an idempotency record, nil when the key is unused.
func (v *View) Claim(customer, operation, key string) *Claim {
	if c := claimsTable.first(v, "id", customer, nameCall(operation, key)); c != nil {
		return c
	}
	return claimsTable.first(v, "id", customer, operation, key)
}

// ClaimOfList is the claim under whose call a link list is taken in, nil when there is none.
func (v *View) ClaimOfList(list ids.ID) *Claim { return claimsTable.first(v, "list", list) }

// ClaimsOf counts a customer's records.
func (v *View) ClaimsOf(customer string) int {
	return len(claimsTable.all(v, "id_prefix", customer))
}

// ClaimsUnderWay lists a node's claims without a result.
func (v *View) ClaimsUnderWay(node string) []*Claim {
	return claimsTable.all(v, "node", node)
}

// ClaimsByExpiry visits all records, the next to expire first, until visit returns false.
func (v *View) ClaimsByExpiry(visit func(*Claim) bool) {
	claimsTable.each(v, false, visit, "expires_prefix")
}

// PutClaim adds or replaces.
func (t *Tx) PutClaim(c *Claim) { claimsTable.put(t, c) }

// RemoveClaim removes.
func (t *Tx) RemoveClaim(c *Claim) { claimsTable.remove(t, c) }

// StoredResult is the answer to a command id, kept so that proposing the id again changes nothing.
type StoredResult struct {
	Command ids.ID `cbor:"1,keyasint"`
	Number  uint16 `cbor:"2,keyasint"`
	Result  []byte `cbor:"3,keyasint,omitempty"`
	Fault   []byte `cbor:"4,keyasint,omitempty"`
	Expires int64  `cbor:"5,keyasint"`
	// Kept is, instead of Result, what the result is made from together with the command.
	Kept []byte `cbor:"6,keyasint,omitempty" since:"2"`
}

var resultsTable = define(1, "results",
	index("id", true, func(r *StoredResult) []any { return []any{r.Command} }),
	index("expires", true, func(r *StoredResult) []any { return []any{r.Expires, r.Command} }),
).untold()

// Result is nil for a command id that was not applied lately.
func (v *View) Result(command ids.ID) *StoredResult {
	return resultsTable.first(v, "id", command)
}

// ResultsByExpiry visits all stored results, the next to expire first, until visit returns false.
func (v *View) ResultsByExpiry(visit func(*StoredResult) bool) {
	resultsTable.each(v, false, visit, "expires_prefix")
}

// PutResult adds.
func (t *Tx) PutResult(r *StoredResult) { resultsTable.put(t, r) }

// RemoveResult removes.
func (t *Tx) RemoveResult(r *StoredResult) { resultsTable.remove(t, r) }
