package state

import "shoal.dev/shoal/pkg/ids"

// DeletedGroup marks a deleted group until its scrapers, and perhaps its rows, are removed. From
// its deletion on, no read shows the group's scrapers.
type DeletedGroup struct {
	Group    ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
	// Rows says that its rows are removed, too.
	Rows bool  `cbor:"3,keyasint,omitempty"`
	At   int64 `cbor:"4,keyasint"` // Unix milliseconds
}

var deletedGroupsTable = define(2, "deletedGroups",
	index("id", true, func(d *DeletedGroup) []any { return []any{d.Group} }),
	index("customer", true, func(d *DeletedGroup) []any { return []any{d.Customer, d.Group} }),
).told((*DeletedGroup).telling).leaving()

// telling hides that scrapers go: the trail tells that of the group itself.
func (d *DeletedGroup) telling() telling {
	if !d.Rows {
		return telling{}
	}
	return telling{d.Customer, struct {
		Rows bool  `json:"rows"`
		At   int64 `json:"deletedAt"`
	}{d.Rows, d.At}}
}

// DeletedGroup returns the mark of a group; nil: it was not deleted, or nothing is left of it.
func (v *View) DeletedGroup(group ids.ID) *DeletedGroup {
	return deletedGroupsTable.first(v, "id", group)
}

// DeletedGroups visits all marks, until visit returns false.
func (v *View) DeletedGroups(visit func(*DeletedGroup) bool) {
	deletedGroupsTable.each(v, false, visit, "id_prefix")
}

// DeletedGroupsOf lists a customer's marks.
func (v *View) DeletedGroupsOf(customer string) []*DeletedGroup {
	return deletedGroupsTable.all(v, "customer_prefix", customer)
}

// PutDeletedGroup adds or replaces a mark.
func (t *Tx) PutDeletedGroup(d *DeletedGroup) { deletedGroupsTable.put(t, d) }

// RemoveDeletedGroup removes a mark.
func (t *Tx) RemoveDeletedGroup(d *DeletedGroup) { deletedGroupsTable.remove(t, d) }

// RemoveGroup removes a group's own record.
func (t *Tx) RemoveGroup(g *Group) {
	by := Owned{}.less(t.Group(g.ID).owned())
	groupsTable.remove(t, g)
	t.countIn(g.Customer, by)
	t.disarrange(g.ID)
}
