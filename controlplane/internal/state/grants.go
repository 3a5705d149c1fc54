package state

import (
	"encoding/hex"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// GrantsSince is the first cluster version in which programs may act for a person.
const GrantsSince = 2

// The lifetimes of a grant's parts, in milliseconds.
const (
	GrantCodeMillis   = 60_000
	GrantAccessMillis = 15 * 60_000
	// GrantIdleMillis is how long a grant lasts without a refresh.
	GrantIdleMillis = 30 * 24 * 60 * 60 * 1000
	// GrantRepeatMillis is how long the previous refresh token gets the same answer again, since
	// the first answer may have been lost.
	GrantRepeatMillis = 30_000
	// GrantCodeKeptMillis is how long an expired code is kept, so that a second use is noticed.
	GrantCodeKeptMillis = 10 * 60_000
)

// Grant lets a program call for a customer, by the consent of a person (RFC 6749). Only the hashes
// of its tokens are stored.
type Grant struct {
	ID       ids.ID      `cbor:"1,keyasint"`
	Account  ids.ID      `cbor:"2,keyasint"`
	Customer string      `cbor:"3,keyasint"`
	Client   Hash        `cbor:"4,keyasint"` // of the program's id
	Name     string      `cbor:"5,keyasint"` // of the program, chosen by itself
	Scope    model.Scope `cbor:"6,keyasint"`
	Resource string      `cbor:"7,keyasint"` // the resource that its tokens are for (RFC 8707)
	// Family is the hash of the part that all its refresh tokens share. Refresh is the hash of the
	// valid one, Was of the previous one.
	Family      Hash  `cbor:"8,keyasint"`
	Refresh     Hash  `cbor:"9,keyasint"`
	Was         Hash  `cbor:"10,keyasint,omitzero"`
	Access      Hash  `cbor:"11,keyasint"`
	AccessUntil int64 `cbor:"12,keyasint"` // when the access token expires
	CreatedAt   int64 `cbor:"13,keyasint"`
	UsedAt      int64 `cbor:"14,keyasint"` // when its tokens were made
	// Trials counts the trials of the UTC day TrialDay, as in a Key.
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
		Client    string      `json:"clientSha256"`
		Name      string      `json:"name"`
		Scope     model.Scope `json:"scope"`
		Resource  string      `json:"resource"`
		CreatedAt int64       `json:"createdAt"`
	}{g.Account, hex.EncodeToString(g.Client[:]), g.Name, g.Scope, g.Resource, g.CreatedAt}}
}

// Grant returns the grant with an id; nil: there is none, or it has ended.
func (v *View) Grant(id ids.ID) *Grant { return grantsTable.first(v, "id", id) }

// GrantByAccess returns the grant whose newest access token has a hash, or nil.
func (v *View) GrantByAccess(hash Hash) *Grant { return grantsTable.first(v, "access", hash) }

// GrantByFamily returns the grant of a family of refresh tokens, or nil.
func (v *View) GrantByFamily(hash Hash) *Grant { return grantsTable.first(v, "family", hash) }

// Grants lists the grants of an account, the least recently used first.
func (v *View) Grants(account ids.ID) []*Grant {
	return grantsTable.all(v, "account_prefix", account)
}

// GrantsOf lists the grants of a customer, the oldest first.
func (v *View) GrantsOf(customer string) []*Grant {
	return grantsTable.all(v, "customer_prefix", customer)
}

// GrantsByUse visits all grants, the least recently used first, until visit returns false.
func (v *View) GrantsByUse(visit func(*Grant) bool) {
	grantsTable.each(v, false, visit, "used_prefix")
}

// PutGrant adds or replaces a grant.
func (t *Tx) PutGrant(g *Grant) { grantsTable.put(t, g) }

// RemoveGrant ends a grant.
func (t *Tx) RemoveGrant(g *Grant) { grantsTable.remove(t, g) }

// GrantCode is a code that a program exchanges for a grant once, with proof that it asked for it
// (RFC 7636). Only the hash of its text is stored.
type GrantCode struct {
	Hash     Hash        `cbor:"1,keyasint"`
	Account  ids.ID      `cbor:"2,keyasint"`
	Client   Hash        `cbor:"3,keyasint"` // of the program's id
	Name     string      `cbor:"4,keyasint"` // of the program
	Redirect Hash        `cbor:"5,keyasint"` // of the address that the code was sent to
	Verifier Hash        `cbor:"6,keyasint"` // the challenge: the hash of the program's verifier
	Scope    model.Scope `cbor:"7,keyasint"`
	Resource string      `cbor:"8,keyasint"`
	Expires  int64       `cbor:"9,keyasint"` // by state time
	// Grant is the id of the grant made from the code, or that was refused; zero: unused.
	Grant ids.ID `cbor:"10,keyasint,omitzero"`
}

var grantCodesTable = define(GrantsSince, "grantcodes",
	index("id", true, func(c *GrantCode) []any { return []any{c.Hash} }),
	index("account", true, func(c *GrantCode) []any {
		return []any{c.Account, c.Expires, c.Hash}
	}),
	index("due", true, func(c *GrantCode) []any { return []any{c.Expires, c.Hash} }),
).untold() // the grants are told

// GrantCode returns the code with a hash, or nil.
func (v *View) GrantCode(hash Hash) *GrantCode { return grantCodesTable.first(v, "id", hash) }

// GrantCodes lists the codes of an account, the oldest first.
func (v *View) GrantCodes(account ids.ID) []*GrantCode {
	return grantCodesTable.all(v, "account_prefix", account)
}

// GrantCodesByAge visits all codes, the oldest first, until visit returns false.
func (v *View) GrantCodesByAge(visit func(*GrantCode) bool) {
	grantCodesTable.each(v, false, visit, "due_prefix")
}

// PutGrantCode adds or replaces a grant code.
func (t *Tx) PutGrantCode(c *GrantCode) { grantCodesTable.put(t, c) }

// RemoveGrantCode removes a grant code.
func (t *Tx) RemoveGrantCode(c *GrantCode) { grantCodesTable.remove(t, c) }
