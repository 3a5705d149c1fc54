package state

import (
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// PriceTable is a version of the prices. A job keeps the version of its launch.
type PriceTable struct {
	Version uint32     `cbor:"1,keyasint"`
	Rows    price.List `cbor:"2,keyasint"`
	// When an admin made the version (Unix milliseconds of state time), and the admin's subject.
	ChangedAt int64  `cbor:"3,keyasint,omitempty" since:"2"`
	ChangedBy string `cbor:"4,keyasint,omitempty" since:"2"`
}

// PricesSince is the first cluster version in which admins set prices.
const PricesSince = 2

var pricesTable = define(1, "prices",
	index("id", true, func(p *PriceTable) []any { return []any{p.Version} }),
).told((*PriceTable).telling)

// Prices returns a version of the price table, nil when there is none.
func (v *View) Prices(version uint32) *PriceTable {
	return pricesTable.first(v, "id", version)
}

// CurrentPrices returns the newest price table, nil before the cluster's first command.
func (v *View) CurrentPrices() *PriceTable {
	var newest *PriceTable
	pricesTable.each(v, true, func(p *PriceTable) bool { newest = p; return false }, "id_prefix")
	return newest
}

// EachPrices visits all versions, the oldest first, until visit returns false.
func (v *View) EachPrices(visit func(*PriceTable) bool) {
	pricesTable.each(v, false, visit, "id_prefix")
}

// PutPrices adds a version.
func (t *Tx) PutPrices(p *PriceTable) { pricesTable.put(t, p) }

// AddPrices adds a version numbered above all others, even those before a restore.
func (t *Tx) AddPrices(p PriceTable) PriceTable {
	if current := t.CurrentPrices(); current != nil {
		p.Version = current.Version
	}
	if generation := t.Cluster().Generation; generation != nil {
		p.Version = max(p.Version, generation.Prices)
	}
	p.Version++
	t.PutPrices(&p)
	return p
}

// keepPrices keeps today's prices, as keepSettings keeps the settings. An admin's prices set since
// the backup become a new version, because the old numbers belong to undone runs. A newer program
// may have added rows to them in a version without ChangedAt.
func (f *follower) keepPrices(tx *Tx) {
	today, mine := f.old.CurrentPrices(), f.mine.CurrentPrices()
	var set *PriceTable // the newest version that an admin has set
	f.old.EachPrices(func(p *PriceTable) bool {
		if p.ChangedAt != 0 {
			set = p
		}
		return true
	})
	if set == nil || mine != nil && slices.Equal(today.Rows, mine.Rows) {
		return
	}
	kept := *today
	kept.ChangedAt, kept.ChangedBy = set.ChangedAt, set.ChangedBy
	tx.AddPrices(kept)
}

// Wallet is a customer's money, as in the ledger's accounts.
type Wallet struct {
	Customer  string `cbor:"1,keyasint"`
	Available int64  `cbor:"2,keyasint"`           // neither charged nor reserved
	Reserved  int64  `cbor:"3,keyasint,omitempty"` // held for units that are out
	Free      int64  `cbor:"4,keyasint,omitempty"` // free requests neither used nor reserved
	FreeHeld  int64  `cbor:"5,keyasint,omitempty"` // free requests held for units that are out
	// balance of the sealed entries alone: their running sum
	Sealed    int64  `cbor:"6,keyasint"`
	Threshold int64  `cbor:"7,keyasint,omitempty"`  // low-balance threshold
	Sequence  uint64 `cbor:"8,keyasint,omitempty"`  // entries sealed so far
	Out       uint32 `cbor:"9,keyasint,omitempty"`  // units out over all runs of the customer
	ToppedUp  bool   `cbor:"10,keyasint,omitempty"` // some entry has added money
	// Archived counts the sealed entries in the archive, which are the first ones. ArchivedSum is
	// their sum.
	Archived    uint64 `cbor:"11,keyasint,omitempty" since:"2"`
	ArchivedSum int64  `cbor:"12,keyasint,omitempty" since:"2"`
}

// Balance is balanceMicros: the sealed balance plus the (negative) charges of open runs.
func (w *Wallet) Balance() int64 { return w.Available + w.Reserved }

var walletsTable = define(1, "wallets",
	index("id", true, func(w *Wallet) []any { return []any{w.Customer} }),
).told((*Wallet).telling).followed(func(w *Wallet) (string, Touch) {
	return w.Customer, Touch{What: TouchedWallet}
})

// Wallet returns a customer's wallet, nil when it has none.
func (v *View) Wallet(customer string) *Wallet { return walletsTable.first(v, "id", customer) }

// Wallets lists all wallets by customer.
func (v *View) Wallets() []*Wallet { return walletsTable.all(v, "id_prefix") }

// WalletAfter returns the wallet that follows a customer's ("": the first), nil when none does.
func (v *View) WalletAfter(customer string) (next *Wallet) {
	walletsTable.from(v, func(w *Wallet) bool {
		if w.Customer != customer {
			next = w
		}
		return next == nil
	}, "id", customer)
	return next
}

// PutWallet adds or replaces a wallet.
func (t *Tx) PutWallet(w *Wallet) { walletsTable.put(t, w) }

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
	// place in the customer's order of sealing, from 1; 0 while OPEN
	Sequence uint64 `cbor:"16,keyasint,omitempty"`
	// Raft index of its creation, which orders the list
	Created uint64 `cbor:"17,keyasint"`
}

// Line is an entry's total for one price row. Pages counts charged units, FreePages those paid by
// free requests. Unbilled counts those delivered while billing was off.
type Line struct {
	RowKey    string `cbor:"1,keyasint"`
	Label     string `cbor:"2,keyasint"`
	Pages     uint64 `cbor:"3,keyasint,omitempty"`
	FreePages uint64 `cbor:"4,keyasint,omitempty"`
	UnitPrice int64  `cbor:"5,keyasint"`
	Amount    int64  `cbor:"6,keyasint,omitempty"` // 0 or below
	Unbilled  uint64 `cbor:"7,keyasint,omitempty" since:"2"`
}

var entriesTable = define(1, "entries",
	index("id", true, func(e *Entry) []any { return []any{e.ID} }),
	index("customer", true, func(e *Entry) []any { return []any{e.Customer, e.Created, e.ID} }),
	// of entries sealed at their creation
	index("sealed", true, func(e *Entry) []any {
		if e.Status == EntryOpen || !e.Job.IsZero() {
			return nil
		}
		return []any{e.Created, e.ID}
	}),
	// of all sealed entries
	index("past", true, func(e *Entry) []any {
		if e.Status == EntryOpen {
			return nil
		}
		return []any{e.Customer, e.Sequence, e.ID}
	}),
).told((*Entry).telling).always().leaving()

// Entry returns the entry with an id, or nil.
func (v *View) Entry(id ids.ID) *Entry { return entriesTable.first(v, "id", id) }

// Entries visits a customer's ledger entries, newest first, until visit returns false.
func (v *View) Entries(customer string, visit func(*Entry) bool) {
	entriesTable.each(v, true, visit, "customer_prefix", customer)
}

// PutEntry adds or replaces an entry.
func (t *Tx) PutEntry(e *Entry) { entriesTable.put(t, e) }

// RemoveEntry removes an entry that is archived, or that was never sealed and moved nothing.
func (t *Tx) RemoveEntry(e *Entry) { entriesTable.remove(t, e) }

// Books holds the system's accounts of the ledger; the customers' accounts are in their wallets.
// Every posting is between two accounts. So all accounts sum to zero, for money and for free
// requests.
type Books struct {
	Revenue     int64 `cbor:"1,keyasint,omitempty"` // charged
	Adjustments int64 `cbor:"2,keyasint,omitempty"` // counterpart of adjustments
	FreeIssued  int64 `cbor:"3,keyasint,omitempty"` // counterpart of free requests granted
	FreeUsed    int64 `cbor:"4,keyasint,omitempty"` // free requests used
	// Clearing is the counterpart of customers' payments, which the payment provider owes.
	Clearing int64 `cbor:"5,keyasint,omitempty" since:"2"`
	// Unmatched is money that was paid in and belongs to no customer.
	Unmatched int64 `cbor:"6,keyasint,omitempty" since:"2"`
}

var booksTable = define(1, "books",
	index("id", true, func(*Books) []any { return []any{"books"} })).untold()

// Books returns the system's accounts, all zero at first.
func (v *View) Books() *Books {
	if b := booksTable.first(v, "id", "books"); b != nil {
		return b
	}
	return &Books{}
}

// PutBooks sets the accounts.
func (t *Tx) PutBooks(b *Books) { booksTable.put(t, b) }
