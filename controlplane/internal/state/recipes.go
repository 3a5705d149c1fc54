package state

import (
	"crypto/sha256"
	"fmt"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// ContentsSince is the first cluster version that stores recipes by content.
const ContentsSince = 2

// Hash is a SHA-256 of an encoded recipe, or of a secret.
type Hash [sha256.Size]byte

func (h Hash) zero() bool { return h == Hash{} }

// Content is a recipe stored once, however many scrapers use it. It is removed with the last record
// that names it.
type Content struct {
	Hash   Hash         `cbor:"1,keyasint"`
	Uses   uint32       `cbor:"2,keyasint"` // recipe records and scrapers that name it, 1 or more
	Recipe model.Recipe `cbor:"3,keyasint"`
	Bytes  int          `cbor:"4,keyasint"` // size of the encoded recipe
}

var contentsTable = define(ContentsSince, "contents",
	index("id", true, func(c *Content) []any { return []any{c.Hash} })).untold()

// Recipe is a scraper's recipe in one revision. It stays while the scraper has that revision or a
// run uses it. A trial's recipe has the trial's id as its scraper, and revision 1.
type Recipe struct {
	Scraper  ids.ID       `cbor:"1,keyasint"`
	Revision uint32       `cbor:"2,keyasint"`
	Recipe   model.Recipe `cbor:"3,keyasint,omitzero"`
	// Content names the recipe. In memory Recipe shares the content's data; encoded, it is left
	// out. Content is zero until the version ContentsSince is active.
	Content Hash `cbor:"4,keyasint,omitzero" since:"2"`
}

// recipesTable has no record for a recipe that only its scraper names.
var recipesTable = define(1, "recipes",
	index("id", true, func(r *Recipe) []any { return []any{r.Scraper, r.Revision} }),
	index("whole", true, func(r *Recipe) []any {
		if !r.Content.zero() {
			return nil
		}
		return []any{r.Scraper, r.Revision}
	}),
).written(func(r, into *Recipe) any {
	if r.Content.zero() {
		return r
	}
	*into = Recipe{Scraper: r.Scraper, Revision: r.Revision, Content: r.Content}
	return into
}).untold()

// Recipe returns a recipe; nil: neither the scraper nor a run uses that revision any more.
func (v *View) Recipe(scraper ids.ID, revision uint32) *Recipe {
	if kept := recipesTable.first(v, "id", scraper, revision); kept != nil {
		return kept
	}
	s := v.member(scraper) // even if its group was deleted: its runs still drain
	if s == nil || s.Revision != revision || s.Content.zero() {
		return nil
	}
	return &Recipe{Scraper: scraper, Revision: revision, Content: s.Content,
		Recipe: v.content(s.Content).Recipe}
}

// RunRecipes lists the recipes kept for the runs of a scraper, oldest first.
func (v *View) RunRecipes(scraper ids.ID) []*Recipe {
	return recipesTable.all(v, "id_prefix", scraper)
}

func (v *View) content(hash Hash) *Content { return contentsTable.first(v, "id", hash) }

// PutRecipe adds or replaces a recipe.
func (t *Tx) PutRecipe(r *Recipe) {
	if old := recipesTable.first(&t.View, "id", r.Scraper, r.Revision); old != nil {
		t.RemoveRecipe(old)
	}
	kept := *r
	if t.ClusterVersion() >= ContentsSince {
		kept.Content, kept.Recipe = t.use(r.Recipe)
	}
	recipesTable.put(t, &kept)
}

// RemoveRecipe removes a recipe.
func (t *Tx) RemoveRecipe(r *Recipe) {
	recipesTable.remove(t, r)
	t.release(r.Content)
}

// release uncounts one record that names a recipe. The last one removes the recipe.
func (t *Tx) release(hash Hash) {
	if hash.zero() {
		return
	}
	content := *t.content(hash)
	if content.Uses--; content.Uses == 0 {
		contentsTable.remove(t, &content)
		return
	}
	contentsTable.put(t, &content)
}

// PutScraper adds or replaces a scraper. A new revision's recipe must be put before. The scraper
// takes it over, and leaves its old recipe to the runs that use it.
func (t *Tx) PutScraper(s *Scraper) {
	kept := *s
	kept.Content = Hash{}
	old := t.member(s.ID)
	switch put := recipesTable.first(&t.View, "id", s.ID, s.Revision); {
	case put != nil && !put.Content.zero():
		recipesTable.remove(t, put)
		kept.Content = put.Content
	case put == nil && old != nil && old.Revision == s.Revision:
		kept.Content = old.Content
	}
	if old != nil && !old.Content.zero() && old.Revision != s.Revision {
		recipesTable.put(t, &Recipe{Scraper: old.ID, Revision: old.Revision, Content: old.Content,
			Recipe: t.content(old.Content).Recipe})
	}
	if !kept.Content.zero() {
		kept.share(&t.content(kept.Content).Recipe)
	}
	kept.Customer = t.nameOf(s.Customer)
	by := t.bytesOf(&kept)
	if old != nil {
		by -= t.bytesOf(old)
	}
	if known := t.Customer(s.Customer); known != nil && by != 0 {
		customer := *known
		customer.ScraperBytes += by
		t.PutCustomer(&customer)
	}
	scrapersTable.put(t, &kept)
	t.came(s.Customer, made)
}

// RemoveScraper removes a scraper. It keeps the recipes of runs, and that of its revision if used
// says that runs use it.
func (t *Tx) RemoveScraper(s *Scraper, used bool) {
	if known, by := t.Customer(s.Customer), t.bytesOf(s); known != nil && by != 0 {
		customer := *known
		customer.ScraperBytes -= by
		t.PutCustomer(&customer)
	}
	if used && !s.Content.zero() {
		recipesTable.put(t, &Recipe{Scraper: s.ID, Revision: s.Revision, Content: s.Content,
			Recipe: t.content(s.Content).Recipe})
	} else {
		t.release(s.Content)
	}
	scrapersTable.remove(t, s)
	t.disarrange(s.ID)
}

// bytesOf returns a scraper's size in a snapshot with its recipe; 0 without Content.
func (t *Tx) bytesOf(s *Scraper) int {
	if s.Content.zero() {
		return 0
	}
	encoded, err := codec.New().Marshal(s.own(new(Scraper)))
	if err != nil {
		panic(fmt.Sprintf("state: encode a scraper: %v", err)) // snapshots hold it, too
	}
	return len(encoded) + t.content(s.Content).Bytes
}

// use counts one more record that names a recipe. All of them share what it returns.
func (t *Tx) use(recipe model.Recipe) (Hash, model.Recipe) {
	encoded, err := codec.New().Marshal(recipe)
	if err != nil {
		// a programmer's slip: the log held it, too
		panic(fmt.Sprintf("state: encode a recipe: %v", err))
	}
	content := Content{Hash: sha256.Sum256(encoded), Recipe: recipe,
		Bytes: len(encoded)}
	if known := t.content(content.Hash); known != nil {
		content = *known
	}
	content.Uses++
	contentsTable.put(t, &content)
	return content.Hash, content.Recipe
}

// ShareRecipes moves up to most recipes, written before ContentsSince, to contents.
func (t *Tx) ShareRecipes(most int) {
	if t.ClusterVersion() < ContentsSince {
		return
	}
	var whole []*Recipe
	recipesTable.each(&t.View, false, func(r *Recipe) bool {
		whole = append(whole, r)
		return len(whole) < most
	}, "whole_prefix")
	for _, r := range whole {
		t.PutRecipe(r)
		if s := t.member(r.Scraper); s != nil && s.Revision == r.Revision {
			t.PutScraper(s)
		}
	}
}

// share fills the scraper's fields from its recipe, in memory.
func (s *Scraper) share(recipe *model.Recipe) {
	s.Spec.Type, s.Spec.ItemsConfig = recipe.Type, recipe.Fields
	s.Spec.PostProcessRules = recipe.Rules
	source := &s.Spec.SourceConfig
	source.Curl, source.Prelaunch = recipe.Curl, recipe.Prelaunch
	source.TryWithHiddenData = recipe.HiddenData
	if recipe.Type != model.SearchEngineSearch { // whose pages follow from its engine
		source.Pagination = recipe.Pagination
	}
}

// nameOf returns a customer's name as the string in its record, to share the memory.
func (v *View) nameOf(customer string) string {
	if c := v.Customer(customer); c != nil {
		return c.Ref
	}
	return customer
}

// own returns a scraper as it is encoded: without its recipe's fields, except the type, which
// selects them. It reuses into, since a snapshot's million copies would be a gigabyte of garbage.
func (s *Scraper) own(into *Scraper) any {
	if s.Content.zero() {
		return s
	}
	*into = *s
	into.share(&model.Recipe{Type: s.Spec.Type})
	return into
}
