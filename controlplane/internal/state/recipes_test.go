package state

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// definitions generates scrapers with a few of everything that a recipe may have.
func definitions() *rapid.Generator[model.Scraper] {
	return rapid.Custom(func(t *rapid.T) model.Scraper {
		few := rapid.IntRange(0, 2)
		spec := model.Scraper{Name: fmt.Sprint(few.Draw(t, "name")),
			Type: rapid.SampledFrom([]model.ScraperType{model.SingleProduct,
				model.SearchEngineSearch, model.Marketplace}).Draw(t, "type"),
			SourceConfig: model.SourceConfig{URL: fmt.Sprint(few.Draw(t, "url")),
				Curl:              []string{"", "curl a", "curl b"}[few.Draw(t, "curl")],
				TryWithHiddenData: rapid.Bool().Draw(t, "hidden")}}
		if n := few.Draw(t, "fields"); n > 0 {
			spec.ItemsConfig = []model.Field{{Name: fmt.Sprint(n), Selector: "a"}}
		}
		if n := few.Draw(t, "rules"); n > 0 {
			spec.PostProcessRules = []model.PostProcessRule{{Kind: "ENUM_MAP",
				Params: map[string]any{"default": fmt.Sprint(n)}}}
		}
		if n := few.Draw(t, "pages"); n > 0 {
			spec.SourceConfig.Pagination = &model.Pagination{Type: model.URLPageParam,
				Param: "p", Max: &n}
		}
		if few.Draw(t, "prelaunch") > 0 {
			spec.SourceConfig.Prelaunch = &model.Prelaunch{DiscoveryURL: "https://a.example/"}
		}
		if spec.Type == model.SearchEngineSearch && rapid.Bool().Draw(t, "engine") {
			spec.Search = &model.SearchEngine{PageParam: "page"}
		}
		return spec
	})
}

func encoded(t *rapid.T, value any) string {
	data, err := codec.New().Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRecipesStandOnce: each recipe is stored once, as long as something names it, whatever happens
// to scrapers and runs' recipes. Everything reads as it was put, even after a snapshot.
func TestRecipesStandOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStore()
		index := uint64(0)
		update := func(change func(*Tx)) {
			index++
			err := s.Update(index, 0, func(tx *Tx) error { change(tx); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		update(func(tx *Tx) {
			tx.PutCluster(&Cluster{Version: ContentsSince})
			tx.PutCustomer(&Customer{Ref: "ann"})
		})
		specs, recipes := map[ids.ID]string{}, map[string]string{}
		at := func(id ids.ID, revision uint32) string { return fmt.Sprint(id, revision) }
		put := func(t *rapid.T) {
			id := ids.ID{rapid.ByteRange(1, 4).Draw(t, "scraper")}
			spec := definitions().Draw(t, "definition")
			update(func(tx *Tx) {
				scraper := Scraper{ID: id, Customer: "ann"}
				if known := tx.Scraper(id); known != nil {
					scraper = *known
				}
				spec.Name += id.String()
				scraper.Spec = spec
				now := encoded(t, spec.Recipe())
				if recipes[at(id, scraper.Revision)] != now {
					scraper.Revision++
					recipes[at(id, scraper.Revision)] = now
					tx.PutRecipe(&Recipe{Scraper: id, Revision: scraper.Revision,
						Recipe: spec.Recipe()})
				}
				tx.PutScraper(&scraper)
				specs[id] = encoded(t, spec)
			})
		}
		prune := func(t *rapid.T) {
			id := ids.ID{rapid.ByteRange(1, 4).Draw(t, "scraper")}
			update(func(tx *Tx) {
				if kept := tx.RunRecipes(id); len(kept) > 0 {
					delete(recipes, at(id, kept[0].Revision))
					tx.RemoveRecipe(kept[0])
				}
			})
		}
		check := func(t *rapid.T, s *Store) {
			v := s.View()
			uses := map[string]uint32{}
			for _, recipe := range recipes {
				uses[recipe]++
			}
			for id, spec := range specs {
				scraper := v.Scraper(id)
				if got := encoded(t, scraper.Spec); got != spec {
					t.Fatalf("scraper %s reads as %q, want %q", id, got, spec)
				}
				for revision := range scraper.Revision {
					want, kept := recipes[at(id, revision+1)]
					r := v.Recipe(id, revision+1)
					if (r != nil) != kept || kept && encoded(t, r.Recipe) != want {
						t.Fatalf("revision %d of %s reads as %+v", revision+1, id, r)
					}
				}
			}
			stand := contentsTable.all(v, "id_prefix")
			for _, content := range stand {
				if n := uses[encoded(t, content.Recipe)]; n != content.Uses {
					t.Fatalf("a recipe is said to have %d uses, and has %d", content.Uses, n)
				}
			}
			bytes := 0
			v.EachScraper(func(s *Scraper) bool {
				bytes += len(encoded(t, s.own(new(Scraper)))) + len(encoded(t, s.Spec.Recipe()))
				return true
			})
			if counted := v.Customer("ann").ScraperBytes; counted != bytes {
				t.Fatalf("the scrapers take %d bytes, and are counted as %d", bytes, counted)
			}
			if len(stand) != len(uses) {
				t.Fatalf("%d recipes stand, of %d that there are", len(stand), len(uses))
			}
		}
		t.Repeat(map[string]func(*rapid.T){"put": put, "prune": prune, "": func(t *rapid.T) {
			check(t, s)
			var snapshot bytes.Buffer
			if err := s.Snapshot().Write(&snapshot); err != nil {
				t.Fatal(err)
			}
			restored, err := Restore(&snapshot)
			if err != nil {
				t.Fatal(err)
			}
			check(t, restored)
			if restored.sum != s.sum {
				t.Fatal("a restored state has another sum")
			}
		}})
	})
}

// TestScrapersOfAllGroupsComeNewestFirst: a customer's scrapers are merged from all its groups.
func TestScrapersOfAllGroupsComeNewestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStore()
		made := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Scraper {
			return Scraper{Group: ids.ID{rapid.ByteRange(1, 3).Draw(t, "group")},
				CreatedAt: rapid.Int64Range(1, 4).Draw(t, "created")}
		}), 0, 20).Draw(t, "scrapers")
		err := s.Update(1, 0, func(tx *Tx) error {
			for n := range byte(3) {
				tx.PutGroup(&Group{ID: ids.ID{n + 1}, Customer: "ann", Name: string('a' + rune(n))})
			}
			for n := range made {
				made[n].ID, made[n].Customer = ids.ID{byte(n + 1)}, "ann"
				made[n].Spec.Name = fmt.Sprint(n)
				tx.PutScraper(&made[n])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var last *Scraper
		count := 0
		s.View().Scrapers("ann", func(next *Scraper) bool {
			if last != nil && (next.CreatedAt > last.CreatedAt ||
				next.CreatedAt == last.CreatedAt && next.ID[0] > last.ID[0]) {
				t.Fatalf("%+v comes behind %+v", next, last)
			}
			last = next
			count++
			return true
		})
		if count != len(made) {
			t.Fatalf("%d scrapers are visited, of %d", count, len(made))
		}
	})
}
