package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Customer owns groups, runs and a wallet. Ref is the identity provider's user id, 1 to 128 bytes.
type Customer struct {
	Ref       string `cbor:"1,keyasint"`
	CreatedAt int64  `cbor:"2,keyasint"`
	Claims    int    `cbor:"3,keyasint,omitempty"` // idempotency records kept
	// ClaimBytes is the size of these, except those made before BriefSince.
	ClaimBytes int `cbor:"4,keyasint,omitempty" since:"2"`
	// ScraperBytes is the size of its scrapers in a snapshot, counting shared recipes fully.
	// Scrapers without Content are not counted.
	ScraperBytes int `cbor:"5,keyasint,omitempty" since:"2"`
	// BlockedAt is when its credentials were blocked, 0: they are not. BlockedBy is the admin who
	// blocked them.
	BlockedAt int64  `cbor:"6,keyasint,omitempty" since:"2"`
	BlockedBy string `cbor:"7,keyasint,omitempty" since:"2"`
	// RemovedAt is when an admin removed it, 0: never. ErasedAt is when only its ledger and history
	// were left.
	RemovedAt int64 `cbor:"8,keyasint,omitempty" since:"2"`
	ErasedAt  int64 `cbor:"9,keyasint,omitempty" since:"2"`
	// UploadBytes and SheetBytes bound the size of its uploaded files and spreadsheets; 0: the
	// general bound.
	UploadBytes int64 `cbor:"10,keyasint,omitempty" since:"2"`
	SheetBytes  int64 `cbor:"11,keyasint,omitempty" since:"2"`
	// Made and Ran say that it has made a scraper, or launched a run, since StepsSince. Steps
	// covers the time before.
	Made bool `cbor:"12,keyasint,omitempty" since:"2"`
	Ran  bool `cbor:"13,keyasint,omitempty" since:"2"`
	// Owned counts what it has, nil: nothing, or not counted yet. View.Owned answers for both.
	Owned *Owned `cbor:"14,keyasint,omitempty" since:"2"`
}

// Blocked reports whether the customer's credentials are refused; false for a nil customer.
func (c *Customer) Blocked() bool { return c != nil && c.BlockedAt != 0 }

var customersTable = define(1, "customers",
	index("id", true, func(c *Customer) []any { return []any{c.Ref} }),
	index("removing", true, func(c *Customer) []any {
		if c.RemovedAt == 0 || c.ErasedAt != 0 {
			return nil
		}
		return []any{c.RemovedAt, c.Ref}
	}),
).told((*Customer).telling).always()

// Customer returns the customer with a ref, or nil.
func (v *View) Customer(ref string) *Customer { return customersTable.first(v, "id", ref) }

// Customers lists all customers by ref.
func (v *View) Customers() []*Customer { return customersTable.all(v, "id_prefix") }

// EachCustomer visits all customers, by ref, until visit returns false.
func (v *View) EachCustomer(visit func(*Customer) bool) {
	customersTable.each(v, false, visit, "id_prefix")
}

// PutCustomer adds or replaces a customer.
func (t *Tx) PutCustomer(c *Customer) { customersTable.put(t, c) }

// Key is an API key. Only the hash of its secret is stored.
type Key struct {
	ID         ids.ID      `cbor:"1,keyasint"`
	Customer   string      `cbor:"2,keyasint"`
	Prefix     string      `cbor:"3,keyasint"` // 7 characters
	Hash       [32]byte    `cbor:"4,keyasint"` // SHA-256 of the whole key as the client sends it
	Name       string      `cbor:"5,keyasint"`
	Scope      model.Scope `cbor:"6,keyasint"`
	CreatedAt  int64       `cbor:"7,keyasint"`
	LastUsedAt int64       `cbor:"8,keyasint,omitempty"` // 0: never
	// Trials counts the trials of the UTC day TrialDay (days since 1970), under way or charged.
	// Only keys with the scope LLM_READ have them counted (decision 7).
	Trials   uint32 `cbor:"9,keyasint,omitempty"`
	TrialDay int64  `cbor:"10,keyasint,omitempty"`
	// ExpiresAt is when the key expires, 0: never. An expired key stays until it is revoked.
	ExpiresAt int64 `cbor:"11,keyasint,omitempty" since:"2"`
	// LastAddress is the address of its last use, "" if unknown.
	LastAddress string `cbor:"12,keyasint,omitempty" since:"2"`
}

// Expired reports whether the key has expired at a time in Unix milliseconds.
func (k *Key) Expired(now int64) bool { return k.ExpiresAt != 0 && now >= k.ExpiresAt }

var keysTable = define(1, "keys",
	index("id", true, func(k *Key) []any { return []any{k.ID} }),
	index("prefix", true, func(k *Key) []any { return []any{k.Prefix} }),
	index("customer", true, func(k *Key) []any { return []any{k.Customer, k.CreatedAt, k.ID} }),
).told((*Key).telling).always()

// Key returns the key with an id, or nil.
func (v *View) Key(id ids.ID) *Key { return keysTable.first(v, "id", id) }

// KeyByPrefix returns the key with a prefix, or nil.
func (v *View) KeyByPrefix(prefix string) *Key { return keysTable.first(v, "prefix", prefix) }

// Keys lists a customer's keys, oldest first.
func (v *View) Keys(customer string) []*Key {
	return keysTable.all(v, "customer_prefix", customer)
}

// PutKey adds or replaces a key.
func (t *Tx) PutKey(k *Key) { keysTable.put(t, k) }

// RemoveKey removes a key.
func (t *Tx) RemoveKey(k *Key) { keysTable.remove(t, k) }
