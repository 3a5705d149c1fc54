package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// GrantsSince is the first cluster version in which people let programs call in their stead.
const GrantsSince = 2

// How long what belongs to a grant is good, in milliseconds.
const (
	GrantCodeMillis   = 60_000
	GrantAccessMillis = 15 * 60_000
	// GrantIdleMillis is for how long a grant may go without a refresh.
	GrantIdleMillis = 30 * 24 * 60 * 60 * 1000
	// GrantRepeatMillis is for how long the refresh token of before gets the answer once more that
	// its first use got. The answer may have been lost.
	GrantRepeatMillis = 30_000
	// GrantCodeKeptMillis is for how long a code is known behind its end, so that a second use
	// shows.
	GrantCodeKeptMillis = 10 * 60_000
)

// Grant is a program that a person lets call in the customer's stead (RFC 6749). Of its tokens
// the hashes alone are known.
type Grant struct {
	ID       ids.ID      `cbor:"1,keyasint"`
	Account  ids.ID      `cbor:"2,keyasint"`
	Customer string      `cbor:"3,keyasint"`
	Client   Hash        `cbor:"4,keyasint"` // of the program's id
	Name     string      `cbor:"5,keyasint"` // of the program, as it calls itself
	Scope    model.Scope `cbor:"6,keyasint"`
	Resource string      `cbor:"7,keyasint"` // whom its tokens are for (RFC 8707)
	// Family is the hash of what all its refresh tokens have in common. Refresh is that of the one
	// that is good, Was that of the one before.
	Family      Hash  `cbor:"8,keyasint"`
	Refresh     Hash  `cbor:"9,keyasint"`
	Was         Hash  `cbor:"10,keyasint,omitzero"`
	Access      Hash  `cbor:"11,keyasint"`
	AccessUntil int64 `cbor:"12,keyasint"` // from when the access token is refused
	CreatedAt   int64 `cbor:"13,keyasint"`
	UsedAt      int64 `cbor:"14,keyasint"` // when its tokens were made
	// Trials are those of the UTC day TrialDay, as those of a Key.
	Trials   uint32 `cbor:"15,keyasint,omitempty"`
	TrialDay int64  `cbor:"16,keyasint,omitempty"`
}

var grantsTable = define(GrantsSince, "grants",
	index("id", true, func(g *Grant) []any { return []any{g.ID} }),
	index("account", true, func(g *Grant) []any { return []any{g.Account, g.UsedAt, g.ID} }),
	index("customer", true, func(g *Grant) []any { return []any{g.Customer, g.ID} }),
	index("access", true, func(g *Grant) []any { return []any{g.Access} }),
	index("family", true, func(g *Grant) []any { return []any{g.Family} }),
	index("used", true, func(g *Grant) []any { return []any{g.UsedAt, g.ID} }),
).told((*Grant).telling).always()

func (g *Grant) telling() telling {
	return telling{g.Customer, struct {
		Account   ids.ID      `json:"accountId"`
		Name      string      `json:"name"`
		Scope     model.Scope `json:"scope"`
		Resource  string      `json:"resource"`
		CreatedAt int64       `json:"createdAt"`
	}{g.Account, g.Name, g.Scope, g.Resource, g.CreatedAt}}
}

// Grant is nil when there is none of that id, or it has ended.
func (v *View) Grant(id ids.ID) *Grant { return grantsTable.first(v, "id", id) }

// GrantByAccess is the grant that an access token was the newest one of; nil: none.
func (v *View) GrantByAccess(hash Hash) *Grant { return grantsTable.first(v, "access", hash) }

// GrantByFamily is the grant of a family of refresh tokens; nil: none.
func (v *View) GrantByFamily(hash Hash) *Grant { return grantsTable.first(v, "family", hash) }

// Grants are those of an account, the one that was not used for longest first.
func (v *View) Grants(account ids.ID) []*Grant {
	return grantsTable.all(v, "account_prefix", account)
}

// GrantsOf are those of a customer, the oldest first.
func (v *View) GrantsOf(customer string) []*Grant {
	return grantsTable.all(v, "customer_prefix", customer)
}

// GrantsByUse visits all, the one that was not used for longest first, until visit returns false.
func (v *View) GrantsByUse(visit func(*Grant) bool) {
	grantsTable.each(v, false, visit, "used_prefix")
}

// PutGrant adds or replaces.
func (t *Tx) PutGrant(g *Grant) { grantsTable.put(t, g) }

// RemoveGrant ends a grant.
func (t *Tx) RemoveGrant(g *Grant) { grantsTable.remove(t, g) }

// GrantCode is a code that becomes a grant once, for the program that shows what only it can know
// (RFC 7636). Only the hash of its text is known.
type GrantCode struct {
	Hash     Hash        `cbor:"1,keyasint"`
	Account  ids.ID      `cbor:"2,keyasint"`
	Client   Hash        `cbor:"3,keyasint"` // of the program's id
	Name     string      `cbor:"4,keyasint"` // of the program
	Redirect Hash        `cbor:"5,keyasint"` // of the address that it was sent to
	Verifier Hash        `cbor:"6,keyasint"` // the challenge: the hash of what the program shows
	Scope    model.Scope `cbor:"7,keyasint"`
	Resource string      `cbor:"8,keyasint"`
	Expires  int64       `cbor:"9,keyasint"` // by state time
	// Grant is what it became, or would have; zero: nobody has shown it yet.
	Grant ids.ID `cbor:"10,keyasint,omitzero"`
}

var grantCodesTable = define(GrantsSince, "grantcodes",
	index("id", true, func(c *GrantCode) []any { return []any{c.Hash} }),
	index("account", true, func(c *GrantCode) []any {
		return []any{c.Account, c.Expires, c.Hash}
	}),
	index("due", true, func(c *GrantCode) []any { return []any{c.Expires, c.Hash} }),
).untold() // the grant is told

// GrantCode is nil when there is none.
func (v *View) GrantCode(hash Hash) *GrantCode { return grantCodesTable.first(v, "id", hash) }

// GrantCodes are those of an account, the oldest first.
func (v *View) GrantCodes(account ids.ID) []*GrantCode {
	return grantCodesTable.all(v, "account_prefix", account)
}

// GrantCodesByAge visits all, the oldest first, until visit returns false.
func (v *View) GrantCodesByAge(visit func(*GrantCode) bool) {
	grantCodesTable.each(v, false, visit, "due_prefix")
}

// PutGrantCode adds or replaces.
func (t *Tx) PutGrantCode(c *GrantCode) { grantCodesTable.put(t, c) }

// RemoveGrantCode removes.
func (t *Tx) RemoveGrantCode(c *GrantCode) { grantCodesTable.remove(t, c) }
