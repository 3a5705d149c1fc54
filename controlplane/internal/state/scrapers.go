package state

import (
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Group owns one data collection.
type Group struct {
	ID                  ids.ID `cbor:"1,keyasint"`
	Customer            string `cbor:"2,keyasint"`
	Name                string `cbor:"3,keyasint"`
	DataTable           string `cbor:"4,keyasint"`
	StartType           string `cbor:"5,keyasint"`
	ShouldMatchProducts bool   `cbor:"6,keyasint,omitempty"`
	CreatedAt           int64  `cbor:"7,keyasint"`
	UpdatedAt           int64  `cbor:"8,keyasint"`
	Scrapers            int    `cbor:"9,keyasint,omitempty"` // members
}

var groupsTable = define(1, "groups",
	index("id", true, func(g *Group) []any { return []any{g.ID} }),
	index("name", true, func(g *Group) []any { return []any{g.Customer, g.Name} }),
	index("customer", true, func(g *Group) []any { return []any{g.Customer, g.CreatedAt, g.ID} }),
)

// Group is nil when there is none of that id.
func (v *View) Group(id ids.ID) *Group { return groupsTable.first(v, "id", id) }

// GroupByName is nil when the customer has none of that name.
func (v *View) GroupByName(customer, name string) *Group {
	return groupsTable.first(v, "name", customer, name)
}

// Groups lists a customer's groups, oldest first.
func (v *View) Groups(customer string) []*Group {
	return groupsTable.all(v, "customer_prefix", customer)
}

// PutGroup adds or replaces.
func (t *Tx) PutGroup(g *Group) { groupsTable.put(t, g) }

// Scraper is a saved scraper. Revision counts up with every change of its recipe.
type Scraper struct {
	ID        ids.ID        `cbor:"1,keyasint"`
	Customer  string        `cbor:"2,keyasint"`
	Group     ids.ID        `cbor:"3,keyasint"`
	Spec      model.Scraper `cbor:"4,keyasint"`
	Revision  uint32        `cbor:"5,keyasint"`
	CreatedAt int64         `cbor:"6,keyasint"`
	UpdatedAt int64         `cbor:"7,keyasint"`
	// ListRun marks the scraper of a list run; Tag is its endpoint tag, "" without one.
	ListRun bool   `cbor:"8,keyasint,omitempty"`
	Tag     string `cbor:"9,keyasint,omitempty"`
	LastJob ids.ID `cbor:"10,keyasint,omitempty"` // newest run, zero: never run
}

var scrapersTable = define(1, "scrapers",
	index("id", true, func(s *Scraper) []any { return []any{s.ID} }),
	index("name", true, func(s *Scraper) []any { return []any{s.Customer, s.Spec.Name} }),
	index("customer", true, func(s *Scraper) []any { return []any{s.Customer, s.CreatedAt, s.ID} }),
	index("group", true, func(s *Scraper) []any { return []any{s.Group, s.CreatedAt, s.ID} }),
)

// Scraper is nil when there is none of that id.
func (v *View) Scraper(id ids.ID) *Scraper { return scrapersTable.first(v, "id", id) }

// ScraperByName is nil when the customer has none of that name.
func (v *View) ScraperByName(customer, name string) *Scraper {
	return scrapersTable.first(v, "name", customer, name)
}

// Scrapers visits a customer's scrapers, newest first, until visit returns false.
func (v *View) Scrapers(customer string, visit func(*Scraper) bool) {
	scrapersTable.each(v, true, visit, "customer_prefix", customer)
}

// GroupScrapers visits a group's scrapers, newest first, until visit returns false.
func (v *View) GroupScrapers(group ids.ID, visit func(*Scraper) bool) {
	scrapersTable.each(v, true, visit, "group_prefix", group)
}

// PutScraper adds or replaces.
func (t *Tx) PutScraper(s *Scraper) { scrapersTable.put(t, s) }

// Recipe is a scraper's recipe under one revision; it stays while the scraper has that revision or
// a run uses it. A trial's recipe stands under the trial's own id, as if that were a scraper's,
// with the revision 1.
type Recipe struct {
	Scraper  ids.ID       `cbor:"1,keyasint"`
	Revision uint32       `cbor:"2,keyasint"`
	Recipe   model.Recipe `cbor:"3,keyasint"`
}

var recipesTable = define(1, "recipes",
	index("id", true, func(r *Recipe) []any { return []any{r.Scraper, r.Revision} }))

// Recipe is nil when neither the scraper nor a run uses that revision any more.
func (v *View) Recipe(scraper ids.ID, revision uint32) *Recipe {
	return recipesTable.first(v, "id", scraper, revision)
}

// Recipes lists a scraper's kept recipes, oldest first.
func (v *View) Recipes(scraper ids.ID) []*Recipe {
	return recipesTable.all(v, "id_prefix", scraper)
}

// PutRecipe adds or replaces.
func (t *Tx) PutRecipe(r *Recipe) { recipesTable.put(t, r) }

// RemoveRecipe removes.
func (t *Tx) RemoveRecipe(r *Recipe) { recipesTable.remove(t, r) }
