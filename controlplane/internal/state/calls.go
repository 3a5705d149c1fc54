package state

import "shoal.dev/shoal/pkg/ids"

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

var claimsTable = define(1, "claims",
	index("id", true, func(c *Claim) []any { return []any{c.Customer, c.Operation, c.Key} }),
	index("expires", true, func(c *Claim) []any {
		return []any{c.Expires, c.Customer, c.Operation,
			c.Key}
	}),
	index("list", false, func(c *Claim) []any { return []any{c.List} }),
	index("node", false, func(c *Claim) []any { return []any{c.Done, c.Node} }),
)

// Claim is an idempotency record, nil when the key is unused.
func (v *View) Claim(customer, operation, key string) *Claim {
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
	return claimsTable.all(v, "node", false, node)
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
}

var resultsTable = define(1, "results",
	index("id", true, func(r *StoredResult) []any { return []any{r.Command} }),
	index("expires", true, func(r *StoredResult) []any { return []any{r.Expires, r.Command} }),
)

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
