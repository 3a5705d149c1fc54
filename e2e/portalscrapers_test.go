package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
)

// TestPortalKeepsScrapers finds a scraper among many, runs it again, and renames, moves, schedules
// and removes it. The scraper of an upload is offered no run.
func TestPortalKeepsScrapers(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	other := suite.Must(v.PutGroup(ctx, hostileName))(t)
	v.goes("/scrapers", `document.querySelector("main p a")`)
	v.says("There are no scrapers yet.")
	scraper := v.lamps(group)
	for n := range 55 {
		name := fmt.Sprintf("%02d %s", n, hostileName)
		if n == 0 {
			name = "Taken"
		}
		suite.Must(v.PutScraper(ctx, suite.Scraper{GroupRef: other, Scraper: model.Scraper{
			Name: name, Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
			ItemsConfig: []model.Field{{Name: "name", Selector: ".name",
				Kind: model.Text}}}}))(t)
	}
	v.imports(group, "A sheet", "csv", "a\n1\n")

	const shown = `document.querySelectorAll("main tbody tr").length === `
	v.goes("/scrapers", shown+"50")
	v.presses("More")
	v.sees(shown + "57")
	v.enters("q", "lamp")
	v.presses("Search")
	v.sees(shown + `1 && location.search === "?q=lamp"`)
	v.chooses("groupId", other)
	v.says("No scrapers match.")
	v.do(chromedp.Reload())
	v.says("No scrapers match.")
	v.chooses("groupId", group)
	v.sees(shown + "1")
	v.harmless()
	v.shows("scrapers")
	v.goes("/groups/"+group, `document.querySelector(".actions a:nth-of-type(2)")`)
	v.clicks(".actions a:nth-of-type(2)")
	v.sees(shown + `2 && location.pathname === "/portal/scrapers"`)

	v.clicks("main tbody tr:nth-of-type(1) a") // the newest
	v.says("Upload the next file")
	if asks[bool](v.person, `document.querySelector("main").innerText.includes("Run it")`) {
		t.Error("a run of a file is offered")
	}
	v.goes("/scrapers/"+scraper, `document.querySelector("main code")`)
	v.says(".thing .name")
	v.says("http://shop.example/list/1")
	v.shows("scraper")
	v.presses("Run it")
	v.sees(`document.querySelector("#cap") &&
		document.querySelector("main > p:last-of-type a").pathname.endsWith("` + scraper + `")`)
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/")`)
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	v.clicks(".lead a")
	v.sees(`location.pathname === "/portal/scrapers/` + scraper + `"`)
	v.says("Completed")
	v.clicks(`.actions a[href*="scraperId="]`)
	v.sees(`document.querySelectorAll("table.runs tbody tr").length === 1`)
	v.goes("/scrapers/"+scraper, `document.querySelector("#name")`)

	v.enters("name", "Taken")
	v.presses("Save")
	v.sees(`document.querySelector("main .trouble")`) // the name is another scraper's
	v.enters("name", "Desk lamps")
	v.chooses("group", other)
	v.enters("schedule", "every day")
	v.presses("Save")
	v.sees(`document.activeElement.matches("#schedule[aria-invalid=true]")`)
	v.enters("schedule", "0 6 * * *")
	v.enters("zone", "Europe/Vienna")
	v.presses("Save")
	v.says("Saved.")
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#schedule")?.value === "0 6 * * *" &&
		document.querySelector("#group").value === "` + other + `" &&
		document.querySelector(".facts .fact:nth-of-type(6) dd").innerText !== "–"`)
	v.harmless()

	v.presses("Delete the scraper")
	v.presses("Remove it now")
	v.sees(`location.pathname === "/portal/scrapers"`)
	v.goes("/scrapers/"+scraper, `document.querySelector("main p a")`)
	v.says("This scraper does not exist, or was deleted.")
	v.ends()
}

// TestPortalRemovesScrapers removes a scraper of a group without its rows, and another one with
// them. The rows of each are shown before.
func TestPortalRemovesScrapers(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	rows := func(n int) string {
		return fmt.Sprintf(`document.querySelector(".rows table")?.ariaRowCount === "%d"`, n+1)
	}
	var scrapers []string
	for n := range 2 {
		id := suite.Must(v.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: model.Scraper{
			Name: fmt.Sprintf("List %d", n), Type: model.MultipleProducts,
			SourceConfig: model.SourceConfig{URL: fmt.Sprintf("http://shop.example/list/%d", n)},
			ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name",
				Kind: model.Text}}}}))(t)
		if _, _, err := v.Finished(ctx, suite.Must(v.RunScraper(ctx, id))(t)); err != nil {
			t.Fatal(err)
		}
		scrapers = append(scrapers, id)
	}
	v.goes("/rows/"+group, rows(48))

	v.goes("/scrapers/"+scrapers[0], `document.querySelector(".removal button")`)
	v.clicks(`.actions a[href*="/rows/"]`)
	v.sees(rows(24))
	v.says("Only the rows of one scraper.")
	if export := asks[string](v.person, `document.querySelector(".links a").href`); !strings.
		Contains(export, "scraperId="+scrapers[0]) {
		t.Errorf("the export %s is not of what is seen", export)
	}
	v.goes("/scrapers/"+scrapers[0], `document.querySelector(".removal button")`)
	v.presses("Delete the scraper")
	v.says("List 0")
	v.presses("Keep it")
	v.presses("Delete the scraper")
	v.presses("Remove it now")
	v.sees(`location.pathname === "/portal/scrapers" &&
		document.querySelectorAll("main tbody tr").length === 1`)
	v.goes("/rows/"+group, rows(48))

	v.goes("/scrapers/"+scrapers[1], `document.querySelector(".removal button")`)
	v.clicks(`main input[type="checkbox"]`)
	v.presses("Delete the scraper")
	v.says("24 rows")
	v.presses("Remove it now")
	v.sees(`location.pathname === "/portal/scrapers"`)
	v.says("There are no scrapers yet.")
	v.goes("/rows/"+group, rows(24))
	v.ends()
}
