package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
)

// TestPortalKeepsOthersChanges: a page that was loaded a while ago sends only what a person changed
// on it. So what somebody else has changed since stays.
func TestPortalKeepsOthersChanges(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	spec := suite.Scraper{GroupRef: group, Scraper: model.Scraper{Name: "shop",
		Type: model.MultipleProducts, SourceConfig: model.SourceConfig{
			URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name", Kind: model.Text}}}}
	scraper := suite.Must(v.PutScraper(ctx, spec))(t)
	type object = map[string]any
	read := func(path string) (got object) {
		t.Helper()
		if err := v.Call(ctx, "GET", path, nil, nil, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	put := func(path string, body object) {
		t.Helper()
		if err := v.Call(ctx, "PUT", path, nil, body, nil); err != nil {
			t.Fatal(err)
		}
	}

	v.goes("/scrapers/"+scraper, `document.querySelector("#schedule")`)
	now := read("/api/scraper/" + scraper)
	now["schedule"] = "0 6 * * *"
	now["itemsConfig"] = append(now["itemsConfig"].([]any), object{"name": "price",
		"selector": ".thing .price", "kind": "TEXT"})
	put("/api/scraper", now)
	v.enters("name", "the shop")
	v.presses("Save")
	v.says("Saved.")
	now = read("/api/scraper/" + scraper)
	if fields := now["itemsConfig"].([]any); now["name"] != "the shop" || len(fields) != 2 ||
		now["schedule"] != "0 6 * * *" {
		t.Errorf("the scraper is %v", now)
	}

	of := func() object {
		t.Helper()
		var all []object
		if err := v.Call(ctx, "GET", "/api/scraper/group/list", nil, nil, &all); err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one["id"] == group {
				return one
			}
		}
		t.Fatalf("group %s is gone", group)
		return nil
	}
	v.goes("/groups/"+group, `document.querySelector("#keeps")`)
	put("/api/scraper/group", object{"id": group, "name": "All lamps", "quarantine": true})
	v.enters("keeps", "5")
	v.clicks("form:has(#keeps) button")
	v.says("Saved.")
	if g := of(); g["name"] != "All lamps" || g["quarantine"] != true ||
		g["retentionCount"] != 5.0 {
		t.Errorf("the group is %v", g)
	}
	v.goes("/groups/"+group, `document.querySelector("#keeps")?.value === "5"`)
	asks[bool](v.person, `(() => { const k = document.querySelector("#keeps"); k.value = "";
		k.dispatchEvent(new Event("input", { bubbles: true })); return true; })()`)
	v.clicks("form:has(#keeps) button")
	v.says("Saved.")
	if g := of(); g["retentionCount"] != nil || g["name"] != "All lamps" {
		t.Errorf("without a retention the group is %v", g)
	}
	v.ends()
}

// TestPortalReadsWhatIsMissing: whoever has reached a cap reads the addresses that are left, and
// pays for no page twice. A group of lists, and a list's page, say how it starts.
func TestPortalReadsWhatIsMissing(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	v.before(meddling)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lists"))(t)
	var urls []string
	for n := range 12 {
		urls = append(urls, fmt.Sprintf("http://shop.example/list/%d", n+1))
	}
	var run struct{ ScraperID, JobID string }
	err := v.Call(ctx, "POST", "/api/scraper/url-list-run", nil, map[string]any{"groupId": group,
		"name": "lamps", "type": "MULTIPLE_PRODUCTS", "maxChargeMicros": 300,
		"itemsConfig": []model.Field{{Name: "name", Selector: ".thing .name", Kind: model.Text}},
		"urls":        urls}, &run)
	if err != nil {
		t.Fatal(err)
	}
	v.goes("/runs/"+run.ScraperID+"/"+run.JobID,
		`document.querySelector(".state.cancelled, .state.stopped")`)
	v.says("Read what is missing")
	v.sees(`[...document.querySelectorAll("main button")].some(b =>
		/^Read the missing [0-9]+$/.test(b.innerText))`)
	asks[bool](v.person, `[...document.querySelectorAll("main button")].find(b =>
		b.innerText.startsWith("Read the missing")).click() ?? true`)
	v.sees(`document.querySelector("#cap")`)
	v.enters("cap", "1")
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/") && !location.pathname.endsWith("` +
		run.JobID + `")`)
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	var history struct {
		Items []struct{ DeliveredPages int }
	}
	if err := v.Call(ctx, "GET", "/api/scraper/load-history/all", nil, nil, &history); err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, one := range history.Items {
		pages += one.DeliveredPages
	}
	if pages != len(urls) || len(history.Items) != 2 {
		t.Errorf("two runs read %d pages: %+v", pages, history)
	}
	v.sentAs("POST /api/scraper/"+run.ScraperID+"/run", "") // a list has no address to run

	v.walks("/launch")
	v.clicks(`main a[href*="/runs/"]`) // the run that was launched last
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	v.goes("/scrapers/"+run.ScraperID, `document.querySelector("#name")`)
	v.says("It reads a list")
	v.sees(`!document.querySelector("#schedule")`)
	v.goes("/groups/"+group, `document.querySelector("#keeps")`)
	v.presses("What would it cost?")
	v.says("A list runs from its own page")
	v.sees(`![...document.querySelectorAll("main button")].some(b => b.innerText === "Launch all")`)

	v.goes("", `document.querySelector("table.runs")?.innerText.includes("lamps")`)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("table.runs")?.innerText.includes("lamps")`)
	v.sentAs("GET /api/scraper/list", "") // few names are asked for one by one
	v.ends()
}
