package e2e

import (
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
)

// TestPortalShowsChanges makes a scraper read something else after some runs. That run's page says
// why it is held back, and releases it. The changes are shown beside the previous run.
func TestPortalShowsChanges(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := suite.Scraper{GroupRef: group, Scraper: model.Scraper{
		Name: hostileName, Type: model.MultipleProducts,
		SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name", Kind: model.Text},
			{Name: "price", Selector: ".thing .price", Kind: model.Text}}}}
	id := suite.Must(v.PutScraper(ctx, scraper))(t)
	runs := func(times int) (last string) {
		for range times {
			launched := suite.Launched{ScraperID: id}
			if err := v.Call(ctx, "POST", "/api/scraper/"+id+"/run", nil, nil,
				&launched); err != nil {
				t.Fatal(err)
			}
			suite.Must(v.Report(suite.Within(t, suite.Patience), launched))(t)
			last = launched.JobID
		}
		return last
	}

	first := runs(1)
	v.goes("/runs/"+id+"/"+first+"/changes", `document.querySelector("h1")`)
	v.says("No earlier run of this scraper has ended.")
	v.goes("/groups/"+group, `document.querySelector("#alerts")`)
	v.clicks(`label.check:has(+ div #alerts) input`)
	v.clicks(`form[aria-label="Settings of the group"] button`)
	v.says("Saved.")
	sound := runs(3)
	v.goes("/runs/"+id+"/"+sound, `document.querySelector(".facts")`)
	v.clicks(`a[href$="/changes"]`)
	v.says("The rows of both runs are the same.")

	scraper.ItemsConfig[1].Selector = ".thing .name"
	if err := v.Call(ctx, "PUT", "/api/scraper", nil, map[string]any{"id": id, "groupRef": group,
		"name": scraper.Name, "type": scraper.Type, "sourceConfig": scraper.SourceConfig,
		"itemsConfig": scraper.ItemsConfig}, nil); err != nil {
		t.Fatal(err)
	}
	odd := runs(1)
	v.goes("/runs/"+id+"/"+odd, `document.querySelector(".facts")`)
	v.says("This run is held back.")
	v.shows("held")
	v.clicks(`a[href$="/changes"]`)
	v.says("Changed")
	v.says("before:")
	v.harmless()
	v.shows("changes")
	v.goes("/runs", `document.querySelector("table.runs")`)
	v.says("(held back)")
	v.goes("/runs/"+id+"/"+odd, `document.querySelector(".facts")`)
	v.presses("Release it")
	v.sees(`!document.querySelector("main").innerText.includes("This run is held back.")`)
	v.ends()
}
