package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
)

// picking records what the page last asked of its builder.
const picking = `(() => { const ask = fetch; window.fetch = (to, options) => {
	if (String(to).endsWith("/page/pick")) { window.picked = JSON.parse(options.body); }
	return ask(to, options); }; })()`

// TestPortalTiesRulesToFields: a rule stays with its field while a person types the name of another
// field. Values are mapped, and a mapping that is not whole is not saved.
func TestPortalTiesRulesToFields(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	v.before(picking)
	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", "http://shop.example/list/3")
	v.clicks("#build")
	v.sees(`document.querySelector("iframe.page")`)
	v.clicksIn("Lamp 2 of list 3")
	v.says("of 24 rows")
	v.clicksIn("12.50 €")
	v.sees(`document.querySelector("#field-1-name")?.value === "price"`)
	v.chooses("field-1-rule", "REGEX_CLEAN")
	v.sees(`document.querySelector("#field-1-pattern")`)
	v.enters("field-0-name", "price_name")
	v.sees(`document.querySelector("#field-0-name").value === "price_name"`)
	v.draws()
	if got := asks[string](v.person, `[0, 1].map(n =>
		document.querySelector("#field-" + n + "-rule").value).join()`); got != ",REGEX_CLEAN" {
		t.Errorf("rules %q", got)
	}
	v.enters("field-1-name", "cost")
	v.chooses("field-0-rule", "ENUM_MAP")
	v.sees(`document.querySelector("#field-0-mapping").value.startsWith("Lamp ")`)
	v.enters("field-0-mapping", "Lamp 2 of list 3 = Second")
	v.sees(`document.querySelector("#field-0-mapping[aria-invalid=true]") &&
		document.querySelector("main form .actions button").disabled`)
	v.enters("field-0-mapping", "Lamp 2 of list 3 => Second")
	v.enters("field-0-default", "other")
	v.clicks("#field-1-name") // leaves the entry
	v.sees(`["Second", "other"].every(text => [...document.querySelectorAll("section td")].some(
		td => td.innerText === text))`)
	const want = `["ENUM_MAP","price_name","price_name_mapped",{"mapping":` +
		`{"Lamp 2 of list 3":"Second"},"default":"other"}],` +
		`["REGEX_CLEAN","cost","cost_clean",{"pattern":"\\s+","replacement":" "}]`
	if got := asks[string](v.person, `JSON.stringify(picked.postProcessRules.map(r => [r.kind,
		r.sourceField, r.outputField, r.params]))`); got != "["+want+"]" {
		t.Errorf("rules %s", got)
	}
	v.enters("field-0-name", "cost") // the other field's
	v.clicks(".fields > li:first-child button")
	v.sees(`picked.itemsConfig.length === 1 && picked.itemsConfig[0].name === "cost" &&
		picked.postProcessRules[0]?.kind === "REGEX_CLEAN"`)
	v.ends()
}

// TestPortalReadsMoney: an amount is never taken as a thousandth of what was written.
func TestPortalReadsMoney(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	for _, c := range []struct{ locale, bad, text, is string }{
		{"en-US", "1,000", "1.500", "1.5"}, {"en-US", "25,000.00", "0,015", "0.015"},
		{"de-DE", "1.000", "2,500", "2,5"}, {"de-DE", "25.000", "0.015", "0,015"},
		{"de-AT", "1.000", "2,5", "2,5"},
		{"fr-FR", "x", "3 000,5", "3000,5"}} {
		v.before(fmt.Sprintf(`Object.defineProperty(navigator, "languages", { configurable: true,
			get: () => [%q] })`, c.locale))
		v.goes("/preferences", `document.querySelector("#low")`)
		v.enters("low", c.bad)
		asks[bool](v.person, `(document.querySelector("#low").form.requestSubmit(), true)`)
		v.sees(`document.querySelector("#low[aria-invalid=true]")`)
		v.enters("low", c.text)
		asks[bool](v.person, `(document.querySelector("#low").form.requestSubmit(), true)`)
		v.says("Saved")
		v.do(chromedp.Reload())
		v.sees(fmt.Sprintf(`document.querySelector("#low")?.value === %q`, c.is))
	}
	v.ends()
}

// TestPortalTellsOfRuns: a refusal is not told as rows that are gone, and all errors of a run that
// is over are counted.
func TestPortalTellsOfRuns(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := v.lamps(group)
	var run string
	for range 3 {
		launched := suite.Must(v.RunScraper(ctx, scraper))(t)
		if _, _, err := v.Finished(ctx, launched); err != nil {
			t.Fatal(err)
		}
		run = launched.JobID
	}
	v.before(breaking)
	v.before(meddling)
	const history = "/api/scraper/load-history"
	v.goes("/runs", `document.querySelector("table.runs a")`)
	const profile = "GET /api/scraper/data/profile"
	for code, status := range map[string]int{"rate_limited": 429, "unavailable": 503,
		"rows_gone": 400} {
		v.goes("/runs", `document.querySelector("table.runs a")`)
		v.meddles(`alter(%q, (page) => { refuse(%q, %d, %q); return page; })`,
			"GET "+history+"?", profile, status, code)
		v.walks("/runs/" + scraper + "/" + run + "/fields")
		if code == "rows_gone" {
			v.says("Runs left out because their rows were deleted: 1.")
			continue
		}
		v.sees(`document.querySelector("main section .trouble")`)
		if asks[bool](v.person, `document.querySelector("main").innerText.includes("deleted")`) {
			t.Errorf("%s is told as rows that were deleted", code)
		}
		v.presses("Try again")
		v.says("As a table")
	}

	failed := "GET " + history + "/group/" + group + "/job/" + run + "/errors"
	v.goes("/runs", `document.querySelector("table.runs a")`)
	v.meddles(`(() => { const part = (code, n) => Array.from({ length: n }, (_, i) => ({ code,
			url: "http://shop.example/", status: 404, error: "", place: i + ".0" }));
		alter(%q, (page) => { page.content.forEach(run => { run.errorLinks = 20_001; });
			return page; });
		answer(%q, 200, part("blocked", 10_000), () =>
			answer(%q, 200, part("blocked", 10_000), () =>
			answer(%q, 200, part("timeout", 1)))); })()`, "GET "+history+"?", failed, failed, failed)
	v.walks("/runs/" + scraper + "/" + run)
	v.sees(`[...document.querySelectorAll("section tbody tr td.n")].map(td => td.innerText).join() ===
		"20,000,1"`)
	if n := asks[int](v.person, fmt.Sprintf(`asked.filter(([name]) => name.startsWith(%q) &&
		name.includes("after=9999.0")).length`, failed)); n != 2 {
		t.Errorf("%d calls go on after an error, want 2", n)
	}
	v.ends()
}
