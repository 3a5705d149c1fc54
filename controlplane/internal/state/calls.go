package state

import (
	"crypto/sha256"

	"shoal.dev/shoal/pkg/ids"
)

// BriefSince is the first cluster version with brief idempotency records. They identify a call by
// its hash, and store only the part of its result that the call does not determine.
const BriefSince = 2

// AnswerOnlySince is the first cluster version whose nodes know commands that may only return the
// first result of a key.
const AnswerOnlySince = 2

// CallName identifies a customer's call: the first bytes of the SHA-256 of operation and key.
type CallName [16]byte

// Claim is an idempotency record: a call under way, or its result.
type Claim struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"` // "" if Name is set
	Key       string `cbor:"3,keyasint"` // "" if Name is set
	Request   uint64 `cbor:"4,keyasint"` // hash of the request
	Done      bool   `cbor:"5,keyasint,omitempty"`
	// Number is the command that produced Result or Fault.
	Number  uint16 `cbor:"6,keyasint,omitempty"`
	Result  []byte `cbor:"7,keyasint,omitempty"`
	Fault   []byte `cbor:"8,keyasint,omitempty"`
	Expires int64  `cbor:"9,keyasint"`
	List    ids.ID `cbor:"10,keyasint,omitempty"` // the link list that the call is receiving
	Node    string `cbor:"11,keyasint,omitempty"` // the node handling it while under way
	Boot    ids.ID `cbor:"12,keyasint,omitempty"` // that node's start
	Ticket  ids.ID `cbor:"13,keyasint,omitempty"` // what the completing command must present
	// Name replaces Operation and Key. It is zero in a claim made before BriefSince.
	Name CallName `cbor:"14,keyasint,omitzero" since:"2"`
	// Kept replaces Result: the result is rebuilt from it and the call.
	Kept []byte `cbor:"15,keyasint,omitempty" since:"2"`
	// Body is the hash of the call's streamed body; 0: it had none.
	Body uint64 `cbor:"16,keyasint,omitempty" since:"2"`
}

// NewClaim makes a claim, named as the cluster's version requires.
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

// parts returns the parts of the claim's key.
func (c *Claim) parts() []any {
	if c.Name == (CallName{}) {
		return []any{c.Customer, c.Operation, c.Key}
	}
	return []any{c.Customer, c.Name}
}

// briefClaim is the encoded form of a claim with a Name: zero fields take no room.
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

// The most that a record takes in a snapshot, in bytes, besides its texts.
const (
	claimBytes    = 53 // with a result
	underWayBytes = 48 // added while the call is under way
	bodyBytes     = 10 // added if the call has a streamed body
)

// Bytes bounds the record's size in a snapshot; 0 for one made before BriefSince.
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

// Claim returns an idempotency record, nil when the key is unused.
func (v *View) Claim(customer, operation, key string) *Claim {
	if c := claimsTable.first(v, "id", customer, nameCall(operation, key)); c != nil {
		return c
	}
	return claimsTable.first(v, "id", customer, operation, key)
}

// Answered reports whether a key has its result, which a command with Call.AnswerOnly returns.
func (v *View) Answered(customer, operation, key string) bool {
	claim := v.Claim(customer, operation, key)
	return claim != nil && claim.Done && v.ClusterVersion() >= AnswerOnlySince
}

// ClaimOfList returns the claim of the call that receives a link list, nil when there is none.
func (v *View) ClaimOfList(list ids.ID) *Claim { return claimsTable.first(v, "list", list) }

// ClaimsOf counts a customer's records.
func (v *View) ClaimsOf(customer string) int {
	return len(claimsTable.all(v, "id_prefix", customer))
}

// ClaimsUnderWay lists a node's claims that have no result yet.
func (v *View) ClaimsUnderWay(node string) []*Claim {
	return claimsTable.all(v, "node", node)
}

// ClaimsByExpiry visits all records in the order of expiry, until visit returns false.
func (v *View) ClaimsByExpiry(visit func(*Claim) bool) {
	claimsTable.each(v, false, visit, "expires_prefix")
}

// PutClaim adds or replaces a claim.
func (t *Tx) PutClaim(c *Claim) { claimsTable.put(t, c) }

// RemoveClaim removes a claim.
func (t *Tx) RemoveClaim(c *Claim) { claimsTable.remove(t, c) }

// StoredResult is the answer to a command id, kept so that proposing the id again changes nothing.
type StoredResult struct {
	Command ids.ID `cbor:"1,keyasint"`
	Number  uint16 `cbor:"2,keyasint"`
	Result  []byte `cbor:"3,keyasint,omitempty"`
	Fault   []byte `cbor:"4,keyasint,omitempty"`
	Expires int64  `cbor:"5,keyasint"`
	// Kept replaces Result: the result is rebuilt from it and the command.
	Kept []byte `cbor:"6,keyasint,omitempty" since:"2"`
}

var resultsTable = define(1, "results",
	index("id", true, func(r *StoredResult) []any { return []any{r.Command} }),
	index("expires", true, func(r *StoredResult) []any { return []any{r.Expires, r.Command} }),
).untold()

// Result returns a command's stored result; nil: the id was not applied lately.
func (v *View) Result(command ids.ID) *StoredResult {
	return resultsTable.first(v, "id", command)
}

// ResultsByExpiry visits all stored results in the order of expiry, until visit returns false.
func (v *View) ResultsByExpiry(visit func(*StoredResult) bool) {
	resultsTable.each(v, false, visit, "expires_prefix")
}

// PutResult adds a result.
func (t *Tx) PutResult(r *StoredResult) { resultsTable.put(t, r) }

// RemoveResult removes a result.
func (t *Tx) RemoveResult(r *StoredResult) { resultsTable.remove(t, r) }
