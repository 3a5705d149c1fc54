package state

import "shoal.dev/shoal/pkg/ids"

// Removal is a scraper that was deleted with its rows, in one of the groups where it has some. No
// read shows them from then on. It is there until background work has removed them.
type Removal struct {
	Group    ids.ID `cbor:"1,keyasint"`
	Scraper  ids.ID `cbor:"2,keyasint"`
	Customer string `cbor:"3,keyasint"`
	At       int64  `cbor:"4,keyasint"` // Unix milliseconds
}

var removalsTable = define(2, "removals",
	index("id", true, func(r *Removal) []any { return []any{r.Group, r.Scraper} }),
	index("customer", true, func(r *Removal) []any {
		return []any{r.Customer, r.Group, r.Scraper}
	}),
).untold()

// Removal is nil when nothing of a scraper is being removed in a group.
func (v *View) Removal(group, scraper ids.ID) *Removal {
	return removalsTable.first(v, "id", group, scraper)
}

// Removals visits all, until visit returns false.
func (v *View) Removals(visit func(*Removal) bool) {
	removalsTable.each(v, false, visit, "id_prefix")
}

// RemovalsOf lists a customer's.
func (v *View) RemovalsOf(customer string) []*Removal {
	return removalsTable.all(v, "customer_prefix", customer)
}

// RemovedIn lists the scrapers whose rows are being removed in a group.
func (v *View) RemovedIn(group ids.ID) []ids.ID {
	var scrapers []ids.ID
	removalsTable.each(v, false, func(r *Removal) bool {
		scrapers = append(scrapers, r.Scraper)
		return true
	}, "id_prefix", group)
	return scrapers
}

// PutRemoval adds or replaces.
func (t *Tx) PutRemoval(r *Removal) { removalsTable.put(t, r) }

// RemoveRemoval removes.
func (t *Tx) RemoveRemoval(r *Removal) { removalsTable.remove(t, r) }
