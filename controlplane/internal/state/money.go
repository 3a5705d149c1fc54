package state

import (
	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

func pricesTable() *memdb.TableSchema {
	return table("prices", index("id", true, func(p *PriceTable) []any { return []any{p.Version} }))
}

// Prices is a version of the price table, nil when there is none of that number.
func (v *View) Prices(version uint32) *PriceTable {
	return first[PriceTable](v, "prices", "id", version)
}

// CurrentPrices is the newest price table, nil before the cluster's first command.
func (v *View) CurrentPrices() *PriceTable {
	var newest *PriceTable
	each(v, true, func(p *PriceTable) bool { newest = p; return false }, "prices", "id_prefix")
	return newest
}

// PutPrices adds a version.
func (t *Tx) PutPrices(p *PriceTable) { put(t, "prices", p) }

func walletsTable() *memdb.TableSchema {
	return table("wallets", index("id", true, func(w *Wallet) []any { return []any{w.Customer} }))
}

// Wallet is nil when the customer has none.
func (v *View) Wallet(customer string) *Wallet { return first[Wallet](v, "wallets", "id", customer) }

// Wallets lists all wallets by customer.
func (v *View) Wallets() []*Wallet { return all[Wallet](v, "wallets", "id_prefix") }

// PutWallet adds or replaces.
func (t *Tx) PutWallet(w *Wallet) { put(t, "wallets", w) }

func entriesTable() *memdb.TableSchema {
	return table("entries",
		index("id", true, func(e *Entry) []any { return []any{e.ID} }),
		index("customer", true, func(e *Entry) []any { return []any{e.Customer, e.Created, e.ID} }),
	)
}

// Entry is nil when there is none of that id.
func (v *View) Entry(id ids.ID) *Entry { return first[Entry](v, "entries", "id", id) }

// Entries visits a customer's ledger entries, newest first, until visit returns false.
func (v *View) Entries(customer string, visit func(*Entry) bool) {
	each(v, true, visit, "entries", "customer_prefix", customer)
}

// PutEntry adds or replaces.
func (t *Tx) PutEntry(e *Entry) { put(t, "entries", e) }

// RemoveEntry removes an entry that was never sealed and moved nothing.
func (t *Tx) RemoveEntry(e *Entry) { remove(t, "entries", e) }

func booksTable() *memdb.TableSchema {
	return table("books", index("id", true, func(*Books) []any { return []any{"books"} }))
}

// Books are the system's accounts, all zero at first.
func (v *View) Books() *Books {
	if b := first[Books](v, "books", "id", "books"); b != nil {
		return b
	}
	return &Books{}
}

// PutBooks sets them.
func (t *Tx) PutBooks(b *Books) { put(t, "books", b) }
