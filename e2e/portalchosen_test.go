package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPortalAsksForTheGroup saves scrapers in groups that a person chooses: a new one, the one used
// last, and another one. Lines of a list that repeat are told, and their addresses are read once.
func TestPortalAsksForTheGroup(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	of := func() string {
		t.Helper()
		return asks[string](v.person, `[...document.querySelectorAll("main tbody tr")].map(row =>
			row.querySelector("td:nth-of-type(2)").innerText).join()`)
	}
	const list = "http://shop.example/list/1\nhttp://shop.example/list/2\n"
	v.beginsWith(list + "# again\nhttp://shop.example/list/1\n" + list)
	v.sees(`document.querySelector("#in-group")`)
	v.chooses("in-group", "new")
	v.clicks(".card button") // without a name
	v.sees(`document.querySelector("main .trouble")`)
	v.enters("new-group", hostileName)
	v.do(chromedp.Reload())
	v.sees(`document.querySelector("#new-group")?.value.length > 0`)
	v.enters("new-group", "Lamps")
	v.shows("candidates-group")
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.says("3 lines repeat an address above.")
	v.says("2 addresses")
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/")`)
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	v.says("2 of 2")

	v.beginsWith("http://shop.example/list/3") // in the group used last
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.goes("/scrapers", `document.querySelectorAll("main tbody tr").length === 3`)
	if got := of(); got != "Lamps,Lamps,Lamps" {
		t.Errorf("the scrapers are of %s", got)
	}

	// Rows chosen once more for another group are another scraper's.
	v.goes("/candidates", `document.querySelector("#in-group")`)
	asks[bool](v.person, `(() => { const s = document.querySelector("#in-group");
		s.value = [...s.options].find(o => o.text === "Portal").value;
		s.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`)
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.goes("/scrapers", `document.querySelectorAll("main tbody tr").length === 4`)
	if got := of(); got != "Portal,Lamps,Lamps,Lamps" {
		t.Errorf("the scrapers are of %s", got)
	}
	v.ends()
}

// TestPortalKeepsToTheGroup: a list is launched where its scraper was saved. The builder has the
// group that was chosen before, and a late answer about a new group changes no other draft.
func TestPortalKeepsToTheGroup(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	v.before(meddling)
	const noted = `document.querySelector("main .note a")`
	const groups = `[...document.querySelectorAll("main tbody tr")].map(row =>
		row.querySelector("td:nth-of-type(2)").innerText).join()`
	v.beginsWith("http://shop.example/list/1\nhttp://shop.example/list/2")
	v.sees(`document.querySelector("#in-group")`)
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.walks("/candidates")
	v.sees(noted + ` && document.querySelector("#in-group")`)
	v.chooses("in-group", "new")
	v.sees(`!` + noted) // the rows are not yet chosen for that group
	v.walks("/launch")
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/")`)
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	v.goes("/scrapers", `document.querySelectorAll("main tbody tr").length === 2`)
	v.sees(groups + ` === "Portal,Portal"`)

	v.beginsWith("http://shop.example/list/3")
	v.sees(`document.querySelector("#in-group")`)
	v.chooses("in-group", "new")
	v.enters("new-group", "Lamps")
	v.clicks(`main a[href*="/build"]`)
	v.sees(`document.querySelector("#new-group")?.value === "Lamps" &&
		document.querySelector("iframe.page")`)
	v.clicksIn("Lamp 2 of list 3")
	v.says("of 24 rows")
	v.clicks("form .actions button")
	v.sees(`document.querySelector("#cap")`)
	v.goes("/scrapers", `document.querySelectorAll("main tbody tr").length === 3`)
	v.sees(groups + ` === "Lamps,Portal,Portal"`)

	v.beginsWith("http://shop.example/list/4")
	v.sees(`document.querySelector("#in-group")`)
	v.chooses("in-group", "new")
	v.enters("new-group", "Chairs")
	v.meddles("hold('PUT /api/scraper/group')")
	v.clicks(".card button")
	v.sees("holds('PUT /api/scraper/group')")
	v.walks("")
	v.enters("addresses", "http://shop.example/list/5")
	v.clicks("#build")
	v.sees(`location.pathname === "/portal/build"`)
	v.frees("PUT /api/scraper/group")
	v.asksFor("PUT /api/scraper", 2)
	if was := asks[string](v.person, `sessionStorage.getItem("shoal-draft")`); !strings.Contains(
		was, "list/5") {
		t.Errorf("a late answer has changed another draft: %.200s", was)
	}
	v.ends()
}

// TestPortalMakesFreeNames: names made within one second differ, even after a reload.
func TestPortalMakesFreeNames(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	v.before(`Date.now = () => 1_800_000_000_000`)
	for n := range 3 {
		v.beginsWith(fmt.Sprintf("http://shop.example/list/%d", n))
		v.clicks(".card button")
		v.sees(`document.querySelector("#cap")`)
	}
	v.ends()
}

// TestPortalDoesOnceOverReloads: what was sent, and whose answer is lost, is done once, although a
// person reloads the page and does it once more.
func TestPortalDoesOnceOverReloads(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	v.before(meddling)
	v.beginsWith("http://shop.example/list/1\nhttp://shop.example/list/2")
	v.sees(`document.querySelector("#in-group")`)
	v.chooses("in-group", "new")
	v.enters("new-group", "Lamps")
	again := func(part string, press func()) {
		t.Helper()
		v.meddles("lose(%q)", part)
		press()
		v.sees(`document.querySelector("main .trouble")`)
		v.do(chromedp.Reload())
		v.sees(`document.querySelector("main h1") && !document.querySelector("main .trouble")`)
		press()
	}
	again("PUT /api/scraper/group", func() {
		v.sees(`document.querySelector("#new-group")?.value === "Lamps" &&
			document.querySelector(".card button")`)
		v.clicks(".card button")
	})
	v.sees(`document.querySelector("#cap")`)
	again("POST /api/scraper/url-list-run", func() {
		v.sees(`document.querySelector("#cap")`)
		v.presses("Launch")
	})
	v.sees(`location.pathname.startsWith("/portal/runs/")`)
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	v.goes("/runs", `document.querySelectorAll("table.runs tbody tr").length === 1`)
	v.goes("/groups", `[...document.querySelectorAll("main tbody tr")].filter(row =>
		row.innerText.includes("Lamps")).length === 1`)

	// What is done with intent once more is done once more.
	v.goes("/runs", `document.querySelector("table.runs a")`)
	v.clicks("table.runs a")
	v.runsAgain()
	v.goes("/runs", `document.querySelectorAll("table.runs tbody tr").length === 2`)
	v.ends()
}
