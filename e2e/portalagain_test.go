package e2e

import (
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
)

// TestPortalRunsAgain repeats runs from their pages, one of an address and one of a list. It
// compares their fields over runs, has a taken name corrected, and sees that payments are off.
func TestPortalRunsAgain(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := suite.Must(v.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: model.Scraper{
		Name: hostileName, Type: model.MultipleProducts,
		SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name", Kind: model.Text},
			{Name: "price", Selector: ".thing .price", Kind: model.Text}},
		PostProcessRules: []model.PostProcessRule{{Kind: "REGEX_CLEAN", SourceField: "price",
			OutputField: "amount", Params: map[string]any{"pattern": `[^0-9.]`,
				"replacement": ""}}}}}))(t)
	var list struct{ ScraperID, JobID string }
	for _, run := range []struct {
		path string
		body any
		into any
	}{{"/api/scraper/" + scraper + "/run", nil, nil}, {"/api/scraper/url-list-run",
		map[string]any{"groupId": group, "name": "A list", "templateScraperId": scraper,
			"urls": []string{"http://shop.example/list/2", "http://shop.example/list/3"}},
		&list}} {
		if err := v.Call(ctx, "POST", run.path, nil, run.body, run.into); err != nil {
			t.Fatal(err)
		}
	}

	v.goes("/runs?scraperId="+scraper, `document.querySelector("table.runs a")`)
	v.clicks("table.runs a")
	v.runsAgain()
	v.clicks(".actions a:nth-of-type(2)")
	v.sees(`location.pathname.endsWith("/fields") &&
		document.querySelectorAll(".plot canvas").length === 2`)
	v.chooses("of-measure", "distinct")
	v.sees(`document.querySelector(".plot[aria-label='Different values'] canvas") &&
		document.querySelector("#spread-of").value === "amount"`)
	if n := asks[int](v.person, `[...document.querySelector("#spread-of").closest("section").
		querySelectorAll("tbody td:last-child")].reduce((sum, cell) =>
			sum + Number(cell.textContent), 0)`); n != 24 {
		t.Errorf("the parts of the prices have %d of 24", n)
	}
	v.harmless()
	v.shows("fields")
	v.goes("/runs/"+list.ScraperID+"/"+list.JobID, `document.querySelector(".facts")`)
	v.runsAgain()
	v.says("2 of 2")
	v.goes("/wallet", `document.querySelector("main tbody td")`)
	v.sees(`/0 × Plain, \S+ each, 1 free$/m.test(document.querySelector("main").innerText) &&
		/-1 free page\s/.test(document.querySelector("main").innerText)`)

	v.beginsWith("http://shop.example/list/5")
	v.sees(`document.querySelector("#name")`)
	v.enters("name", "A list")
	v.clicks(".card button")
	v.presses("Save under another name")
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.goes("/candidates", `document.querySelector("main .note a")`)
	v.clicks("main .note a")
	v.sees(`document.querySelector("#cap")`)

	v.beginsWith("http://shop.example/list/6\nhttp://shop.example/list/7")
	v.enters("name", strings.Repeat("n", 300)) // an excessive name is cut
	v.clicks(".card button")
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/")`)

	v.goes("/wallet", `document.querySelector(".facts")`)
	v.says("This service takes no payments. Its operator")
	if asks[bool](v.person, `!!document.querySelector("#amount")`) {
		t.Error("a top-up is offered where nobody takes payments")
	}
	v.goes("/plan", `document.querySelector(".plans")`)
	v.says("Plans cannot be chosen here.")
	if asks[bool](v.person, `!!document.querySelector(".plans button")`) {
		t.Error("a plan is offered where nobody takes payments")
	}

	// The run of a deleted scraper still has its page, but cannot be repeated.
	was := "/api/scraper/" + list.ScraperID
	for _, do := range []string{"POST " + was + "/preview-delete", "DELETE " + was} {
		method, path, _ := strings.Cut(do, " ")
		if err := v.Call(ctx, method, path, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	v.goes("/runs/"+list.ScraperID+"/"+list.JobID, `document.querySelector(".facts")`)
	v.says("2 of 2")
	if asks[bool](v.person, `document.querySelector("main").innerText.includes("Run again")`) {
		t.Error("the run of a deleted scraper is offered again")
	}
	v.ends()
}

// beginsWith starts from an address.
func (v *visit) beginsWith(address string) {
	v.person.t.Helper()
	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", address)
	v.clicks("form button")
}

// runsAgain waits until the run on the page has ended, and repeats it to its end.
func (v *visit) runsAgain() {
	v.person.t.Helper()
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	was := asks[string](v.person, "location.pathname")
	v.presses("Run again")
	v.sees(`document.querySelector("#cap")`)
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/") && location.pathname !== "` + was + `"`)
	v.sees(`document.querySelector(".state.completed, .state.success")`)
}
