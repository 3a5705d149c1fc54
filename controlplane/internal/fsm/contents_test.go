package fsm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// TestRecipesMoveUnderTheirContent: while older nodes take part, scrapers keep the old encoding.
// Once the version is active, ticks move older recipes to contents. Readers see no difference.
func TestRecipesMoveUnderTheirContent(t *testing.T) {
	d := newDefiner(t, 1)
	customer, group := d.owner(1)
	for n := range 5 {
		d.scraper(customer, group, n, n%2)
	}
	read := func() (scrapers []state.Scraper, recipes []state.Recipe) {
		v := d.m.Store().View()
		v.EachScraper(func(s *state.Scraper) bool {
			bare, recipe := *s, *v.Recipe(s.ID, s.Revision)
			bare.Content, recipe.Content = state.Hash{}, state.Hash{}
			scrapers, recipes = append(scrapers, bare), append(recipes, recipe)
			return true
		})
		return scrapers, recipes
	}
	contents := func() int { return d.m.Store().View().Counts()["contents"] }
	scrapers, recipes := read()
	d.must(command.TickPayload{})
	if n := contents(); n != 0 {
		t.Fatalf("before the version is active %d recipes stand by content", n)
	}
	if len(scrapers) != 5 {
		t.Fatalf("there are %d scrapers", len(scrapers))
	}
	d.must(command.ActivateVersionPayload{Version: command.Newest})
	d.must(command.TickPayload{})
	if n, rows := contents(), d.m.Store().View().Counts()["recipes"]; n != 2 || rows != 0 {
		t.Fatalf("%d recipes stand by content, want 2; %d by scraper", n, rows)
	}
	nowScrapers, nowRecipes := read()
	if diff := cmp.Diff(scrapers, nowScrapers) + cmp.Diff(recipes, nowRecipes); diff != "" {
		t.Error(diff)
	}
	d.m.Store().View().EachScraper(func(s *state.Scraper) bool {
		put := command.PutScraperPayload{ID: s.ID, Customer: customer, Group: group, Spec: s.Spec}
		revision := s.Revision
		put.Spec.Name += " renamed"
		if saved := d.must(put).(state.Scraper); saved.Revision != revision {
			t.Errorf("another name is another revision")
		}
		return true
	})
	if n := contents(); n != 2 {
		t.Errorf("after new names %d recipes stand by content", n)
	}
}

// TestScrapersAreBoundedInBytes: at the bound a scraper can be neither made nor enlarged. Shrinking
// one makes room.
func TestScrapersAreBoundedInBytes(t *testing.T) {
	b := newTrialsWith(t, 0, 0)
	put := command.PutScraperPayload{ID: b.scraper, Customer: customer, Group: b.group,
		Spec: recipe(1)}
	put.Spec.Name = "s"
	b.must(put)
	counted := func() int { return b.view().Customer(customer).ScraperBytes }
	before := counted()
	large := put
	large.Spec.SourceConfig.Curl = "curl https://a.example/" + strings.Repeat("a", 1_000)
	b.must(large)
	if grown := counted() - before; grown < 1_000 || grown > 1_100 {
		t.Errorf("a recipe that is 1,000 bytes longer is counted as %d more", grown)
	}
	err := b.m.Store().Update(b.index, 0, func(tx *state.Tx) error {
		full := *tx.Customer(customer)
		full.ScraperBytes = command.MaxScraperBytes
		tx.PutCustomer(&full)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	another := put
	another.Create, another.ID, another.Spec.Name = true, b.ids.New(), "another"
	larger := large
	larger.Spec.SourceConfig.Curl += "a"
	for what, p := range map[string]command.PutScraperPayload{"another": another,
		"larger": larger} {
		if err := b.do(p); fault.CodeOf(err) != fault.LimitReached {
			t.Errorf("%s at the bound: %v", what, err)
		}
	}
	b.must(put)
	b.must(another)
}
