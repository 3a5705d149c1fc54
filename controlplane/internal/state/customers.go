package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Customer owns everything else. Ref is the identity provider's user id, 1 to 128 bytes.
type Customer struct {
	Ref       string `cbor:"1,keyasint"`
	CreatedAt int64  `cbor:"2,keyasint"`
	Claims    int    `cbor:"3,keyasint,omitempty"` // idempotency records kept
	// ClaimBytes is what these take, without those that were made before BriefSince.
	ClaimBytes int `cbor:"4,keyasint,omitempty" since:"2"`
	// ScraperBytes is what its scrapers take in a snapshot, recipes included as if none were
	// shared. Those that have no Content are not counted.
	ScraperBytes int `cbor:"5,keyasint,omitempty" since:"2"`
	// BlockedAt is since when its credentials are refused, 0: they are not; BlockedBy is the admin
	// who said so.
	BlockedAt int64  `cbor:"6,keyasint,omitempty" since:"2"`
	BlockedBy string `cbor:"7,keyasint,omitempty" since:"2"`
	// RemovedAt is when an admin removed it, 0: never; ErasedAt is when nothing of it was left but
	// its ledger and history.
	RemovedAt int64 `cbor:"8,keyasint,omitempty" since:"2"`
	ErasedAt  int64 `cbor:"9,keyasint,omitempty" since:"2"`
	// UploadBytes and SheetBytes are the most that a file of it may have, and a spreadsheet; 0: as
	// much as of anybody.
	UploadBytes int64 `cbor:"10,keyasint,omitempty" since:"2"`
	SheetBytes  int64 `cbor:"11,keyasint,omitempty" since:"2"`
	// Made and Ran say that it has made a scraper and launched a run, at some time since this is
	// noted. Steps knows what came before.
	Made bool `cbor:"12,keyasint,omitempty" since:"2"`
	Ran  bool `cbor:"13,keyasint,omitempty" since:"2"`
}

// Blocked says whether the customer's credentials are refused. Those of none are not.
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

// Customer is nil when there is none of that ref.
func (v *View) Customer(ref string) *Customer { return customersTable.first(v, "id", ref) }

// Customers lists all customers by ref.
func (v *View) Customers() []*Customer { return customersTable.all(v, "id_prefix") }

// EachCustomer visits all customers, by ref, until visit returns false.
func (v *View) EachCustomer(visit func(*Customer) bool) {
	customersTable.each(v, false, visit, "id_prefix")
}

// PutCustomer adds or replaces.
func (t *Tx) PutCustomer(c *Customer) { customersTable.put(t, c) }

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
	// Trials are counted for keys of the scope LLM_READ alone (decision 7). They are those of the
	// UTC day TrialDay, in days since 1970, that are under way or were charged.
	Trials   uint32 `cbor:"9,keyasint,omitempty"`
	TrialDay int64  `cbor:"10,keyasint,omitempty"`
	// ExpiresAt is from when it is refused, 0: it does not expire. It stays until it is revoked.
	ExpiresAt int64 `cbor:"11,keyasint,omitempty" since:"2"`
	// LastAddress is from where it was last used, "" where that is not known.
	LastAddress string `cbor:"12,keyasint,omitempty" since:"2"`
}

// Expired says whether the key is refused at a time in Unix milliseconds.
func (k *Key) Expired(now int64) bool { return k.ExpiresAt != 0 && now >= k.ExpiresAt }

var keysTable = define(1, "keys",
	index("id", true, func(k *Key) []any { return []any{k.ID} }),
	index("prefix", true, func(k *Key) []any { return []any{k.Prefix} }),
	index("customer", true, func(k *Key) []any { return []any{k.Customer, k.CreatedAt, k.ID} }),
).told((*Key).telling).always()

// Key is nil when there is none of that id.
func (v *View) Key(id ids.ID) *Key { return keysTable.first(v, "id", id) }

// KeyByPrefix is nil when there is none of that prefix.
func (v *View) KeyByPrefix(prefix string) *Key { return keysTable.first(v, "prefix", prefix) }

// Keys lists a customer's keys, oldest first.
func (v *View) Keys(customer string) []*Key {
	return keysTable.all(v, "customer_prefix", customer)
}

// PutKey adds or replaces.
func (t *Tx) PutKey(k *Key) { keysTable.put(t, k) }

// RemoveKey removes.
func (t *Tx) RemoveKey(k *Key) { keysTable.remove(t, k) }
