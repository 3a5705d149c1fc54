package state

import "shoal.dev/shoal/pkg/ids"

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

var recipesTable = define(1, "recipes", index("id", true, func(r *Recipe) []any { return []any{r.Scraper, r.Revision} }))

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
