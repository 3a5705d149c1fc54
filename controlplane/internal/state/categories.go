package state

import "shoal.dev/shoal/pkg/ids"

// CategoriesSince is the first cluster version in which groups have categories.
const CategoriesSince = 2

// Category is a saved filter of a group's rows, with a name (specification 2.7).
type Category struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Group    ids.ID `cbor:"2,keyasint"`
	Customer string `cbor:"3,keyasint"` // the group's owner
	Name     string `cbor:"4,keyasint"` // unique within the group
	// Filters is a filter of pkg/filter as compact JSON. The command's proposer has parsed it.
	Filters   []byte `cbor:"5,keyasint"`
	CreatedAt int64  `cbor:"6,keyasint"` // Unix milliseconds
	UpdatedAt int64  `cbor:"7,keyasint"` // Unix milliseconds
}

var categoriesTable = define(CategoriesSince, "categories",
	index("id", true, func(c *Category) []any { return []any{c.ID} }),
	index("name", true, func(c *Category) []any { return []any{c.Group, c.Name} }),
	index("customer", true, func(c *Category) []any { return []any{c.Customer, c.ID} }),
).told((*Category).telling)

// Category returns a group's category with an id, or nil.
func (v *View) Category(group, id ids.ID) *Category {
	c := categoriesTable.first(v, "id", id)
	if c == nil || c.Group != group {
		return nil
	}
	return c
}

// CategoryByName returns a group's category with a name, or nil.
func (v *View) CategoryByName(group ids.ID, name string) *Category {
	return categoriesTable.first(v, "name", group, name)
}

// Categories lists a group's categories by name.
func (v *View) Categories(group ids.ID) []*Category {
	return categoriesTable.all(v, "name_prefix", group)
}

// PutCategory adds or replaces a category.
func (t *Tx) PutCategory(c *Category) {
	known := t.Category(c.Group, c.ID)
	categoriesTable.put(t, c)
	if known == nil {
		t.countIn(c.Customer, Owned{Categories: 1})
	}
}

// RemoveCategory removes a category.
func (t *Tx) RemoveCategory(c *Category) {
	categoriesTable.remove(t, c)
	t.countIn(c.Customer, Owned{Categories: -1})
}
