package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/filter"
)

// telling lets a test send events to the page's stream.
const telling = `(() => { const Stream = EventSource, takers = {};
	window.EventSource = class extends Stream {
		addEventListener(name, take) { takers[name] = take; super.addEventListener(name, take); } };
	window.tell = (name, event) => takers[name]({ data: JSON.stringify(event) }); })()`

// draws waits until the page has drawn its state.
func (v *visit) draws() {
	v.person.t.Helper()
	for range 2 {
		v.do(chromedp.Evaluate[chromedp.Void](`new Promise((drawn) => {
			requestAnimationFrame(() => setTimeout(drawn)); })`, chromedp.EvalAwaitPromise))
	}
}

// asksFor waits until n calls with that prefix were made.
func (v *visit) asksFor(part string, n int) {
	v.person.t.Helper()
	v.sees(fmt.Sprintf(`asked.filter(([name]) => name.startsWith(%q)).length >= %d`, part, n))
	if got := len(v.keysOf(part)); got != n {
		v.person.t.Errorf("%s was asked %d times, want %d", part, got, n)
	}
}

// TestPortalFollowsRuns: an old event does not make an ended run appear active. Errors by kind
// follow the run's errors. A page of the previous list is not shown in the current one.
func TestPortalFollowsRuns(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := v.lamps(group)
	launched := suite.Must(v.RunScraper(ctx, scraper))(t)
	run := launched.JobID
	if _, _, err := v.Finished(ctx, launched); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{breaking, meddling, telling} {
		v.before(script)
	}
	runs := func(errors int) {
		t.Helper()
		v.meddles(`tell("job.status", {jobId: %q, groupId: %q, state: "RUNNING", totalRequests: 1000,
			successLinks: 1, errorLinks: %d, totalLinks: 1, itemsQuantity: 1, deliveredPages: 1,
			chargedMicros: 0})`, run, group, errors)
		v.draws()
	}
	const over = `document.querySelector(".state.completed, .state.success")`
	v.goes("/runs/"+scraper+"/"+run, over)
	runs(0)
	if !asks[bool](v.person, "!!"+over) {
		t.Error("a run that has ended is shown as one under way")
	}

	failed := "GET /api/scraper/load-history/group/" + group + "/job/" + run + "/errors"
	v.goes("/runs", `document.querySelector("table.runs a")`)
	v.meddles(`alter("GET /api/scraper/load-history?", (page) => {
		page.content.forEach(run => { run.state = "RUNNING"; }); return page; })`)
	v.clicks("table.runs a")
	v.sees(`document.querySelector("#progress")`)
	for n := range 3 { // each time two more while the page waits
		runs(2*n + 1)
		runs(2*n + 2)
		v.meddles("later()")
		v.asksFor(failed, 2*n+1)
		v.draws()
		v.meddles("later()")
		v.asksFor(failed, 2*n+2)
		v.draws()
	}

	const all, filtered = "GET /api/scraper/load-history/all?", "GET /api/scraper/load-history?"
	v.goes("/", `document.querySelector("#addresses")`)
	v.meddles(`alter(%q, (page) => { window.other = {...page.items[0], id: "0".repeat(24)};
		return {...page, hasMore: true, nextCursor: "next"}; })`, all)
	v.walks("/runs")
	v.sees(`window.other`)
	v.meddles(`hold(%q, {items: [other], hasMore: true, nextCursor: "more"})`, all)
	v.presses("More")
	v.sees(fmt.Sprintf("holds(%q)", all))
	asks[bool](v.person, `([...document.querySelectorAll("main button")].at(-1).click(), true)`)
	v.chooses("state", "COMPLETED")
	v.asksFor(filtered, 1)
	v.sees(`!document.querySelector("main").innerText.includes("More")`)
	before := len(v.keysOf(all))
	v.frees(all)
	v.draws()
	if n := asks[int](v.person, `document.querySelectorAll("table.runs tbody tr").length`); n != 1 ||
		len(v.keysOf(all)) != before ||
		asks[bool](v.person, `document.querySelector("main").innerText.includes("More")`) {
		t.Errorf("a page of the list before is shown among %d runs, want 1", n)
	}
	v.ends()
}

// TestPortalReadsRowsAsTheyAre: numbers are shown as written, and filtered as shown. Rows stay in
// view when the portal reloads its content, and are read again if reading fails.
func TestPortalReadsRowsAsTheyAre(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	group := suite.Must(v.PutGroup(ctx, "Numbers"))(t)
	const rows = 7_001 // more than a page keeps in memory
	var file strings.Builder
	for i := range rows {
		fmt.Fprintf(&file, `{"n":%d,"id":12345678901234567%03d,"part":0.0%d,"day":20241%03d,`+
			`"sold":%s,"code":%q}`+"\n", i, i%1000, i%5+1, i%1000,
			[]string{"true", `"true"`, "false"}[min(i, 2)], []string{"0x1F", ".99", "7"}[min(i, 2)])
	}
	sent := v.imports(group, "numbers", "jsonl", file.String())
	for _, script := range []string{meddling, telling} {
		v.before(script)
	}

	const data = "GET /api/scraper/data?"
	const exact = `[...document.querySelectorAll(".rows tr[aria-rowindex='3'] td")].some(c =>
		c.innerText === "12345678901234567001")`
	v.goes("/rows/"+group, exact)
	v.clicks(".rows tr[aria-rowindex='3'] button")
	v.sees(`document.querySelector("dialog[open]")`)
	asked := len(v.keysOf(data))
	v.meddles(`tell("resync", {})`)
	v.draws()
	if !asks[bool](v.person, `!!document.querySelector("dialog[open]")`) ||
		len(v.keysOf(data)) != asked {
		t.Error("the rows in view are read anew")
	}
	v.clicks("dialog > button")
	v.goesToRow(rows)
	v.sees(fmt.Sprintf(`document.querySelector(".rows tr[aria-rowindex='%d'] td bdi")?.innerText`,
		rows+1))
	v.meddles(`(window.refuses = () => refuse(%q, 503, "unavailable", refuses))()`, data)
	asks[bool](v.person, `(document.querySelector(".rows").scrollTop = 500 * 36, true)`)
	v.says("Unavailable.")
	v.draws()
	v.meddles("allow(%q)", data)
	v.presses("Try again")
	v.sees(`document.querySelector(".rows tr[aria-rowindex='502'] td bdi")?.innerText === "500"`)
	asked = len(v.keysOf(data))
	v.presses("Reload")
	v.sees(exact)
	if len(v.keysOf(data)) != asked+1 {
		t.Error("the rows are not read again")
	}
	for query, want := range map[string]int{
		"field=sold&value=true&op=eq":               2,
		"field=sold&value=true&op=ne":               rows - 2,
		"field=id&value=12345678901234567001&op=eq": 7,
		"field=id&value=12345678901234567001&op=ne": rows - 7,
		"field=part&value=0.010&op=eq":              rows/5 + 1,
		"field=part&value=0.04&op=gt":               rows / 5,
		"field=code&value=.99&op=eq":                1,
		"field=code&value=0x1F&op=eq":               1,
		"field=code&value=0x1E&op=gt":               rows - 1,
	} {
		v.goes("/rows/"+group+"?sort=n&"+query, `document.querySelector(".rows")`)
		v.goesToRow(rows)
		v.sees(fmt.Sprintf(`document.querySelector(".rows table").ariaRowCount === "%d"`, want+1))
	}

	// Rows of JSON documents may have such an identifier as a number.
	v.goes("/rows/"+group+"?field=id&value=12345678901234567001", `document.querySelector(".rows")`)
	export := suite.Must(url.Parse(asks[string](v.person, `document.querySelector(".links a").href`)))(t)
	same := suite.Must(filter.Parse([]byte(export.Query().Get("filters"))))(t)
	for id, want := range map[any]bool{json.Number("12345678901234567001"): true,
		"12345678901234567001": true, "12345678901234567002": false} {
		if filter.Match(filter.NewBudget(t.Context()), same, map[string]any{"id": id}) != want {
			t.Errorf("%#v passes the filter %s: %v", id, export.Query().Get("filters"), !want)
		}
	}

	v.goes("/runs/"+sent.Scraper.ID+"/"+sent.JobID+"/fields", `document.querySelector("main td")`)
	for _, want := range []string{"0.01", "0.05", "20,241,000", "20,241,999"} {
		v.sees(fmt.Sprintf(`[...document.querySelectorAll("main td.n")].some(c => c.innerText === %q)`,
			want))
	}
	v.ends()
}
