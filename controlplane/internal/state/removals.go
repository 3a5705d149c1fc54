package state

import "shoal.dev/shoal/pkg/ids"

// Removal marks, in one group, the rows of a scraper that was deleted with its rows. No read shows
// them. Background work removes the rows, and then the mark.
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
).told((*Removal).telling).leaving()

func (r *Removal) telling() telling {
	return telling{r.Customer, struct {
		At int64 `json:"deletedAt"`
	}{r.At}}
}

// Removal returns the mark; nil: no rows of the scraper are being removed in the group.
func (v *View) Removal(group, scraper ids.ID) *Removal {
	return removalsTable.first(v, "id", group, scraper)
}

// Removals visits all marks, until visit returns false.
func (v *View) Removals(visit func(*Removal) bool) {
	removalsTable.each(v, false, visit, "id_prefix")
}

// RemovalsOf lists a customer's marks.
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

// PutRemoval adds or replaces a mark.
func (t *Tx) PutRemoval(r *Removal) { removalsTable.put(t, r) }

// RemoveRemoval removes a mark.
func (t *Tx) RemoveRemoval(r *Removal) { removalsTable.remove(t, r) }
