package state

import "shoal.dev/shoal/pkg/ids"

var pricesTable = define(1, "prices", index("id", true, func(p *PriceTable) []any { return []any{p.Version} }))

// Prices is a version of the price table, nil when there is none of that number.
func (v *View) Prices(version uint32) *PriceTable {
	return pricesTable.first(v, "id", version)
}

// CurrentPrices is the newest price table, nil before the cluster's first command.
func (v *View) CurrentPrices() *PriceTable {
	var newest *PriceTable
	pricesTable.each(v, true, func(p *PriceTable) bool { newest = p; return false }, "id_prefix")
	return newest
}

// PutPrices adds a version.
func (t *Tx) PutPrices(p *PriceTable) { pricesTable.put(t, p) }

var walletsTable = define(1, "wallets", index("id", true, func(w *Wallet) []any { return []any{w.Customer} }))

// Wallet is nil when the customer has none.
func (v *View) Wallet(customer string) *Wallet { return walletsTable.first(v, "id", customer) }

// Wallets lists all wallets by customer.
func (v *View) Wallets() []*Wallet { return walletsTable.all(v, "id_prefix") }

// PutWallet adds or replaces.
func (t *Tx) PutWallet(w *Wallet) { walletsTable.put(t, w) }

var entriesTable = define(1, "entries",
	index("id", true, func(e *Entry) []any { return []any{e.ID} }),
	index("customer", true, func(e *Entry) []any { return []any{e.Customer, e.Created, e.ID} }),
)

// Entry is nil when there is none of that id.
func (v *View) Entry(id ids.ID) *Entry { return entriesTable.first(v, "id", id) }

// Entries visits a customer's ledger entries, newest first, until visit returns false.
func (v *View) Entries(customer string, visit func(*Entry) bool) {
	entriesTable.each(v, true, visit, "customer_prefix", customer)
}

// PutEntry adds or replaces.
func (t *Tx) PutEntry(e *Entry) { entriesTable.put(t, e) }

// RemoveEntry removes an entry that was never sealed and moved nothing.
func (t *Tx) RemoveEntry(e *Entry) { entriesTable.remove(t, e) }

var booksTable = define(1, "books", index("id", true, func(*Books) []any { return []any{"books"} }))

// Books are the system's accounts, all zero at first.
func (v *View) Books() *Books {
	if b := booksTable.first(v, "id", "books"); b != nil {
		return b
	}
	return &Books{}
}

// PutBooks sets them.
func (t *Tx) PutBooks(b *Books) { booksTable.put(t, b) }
