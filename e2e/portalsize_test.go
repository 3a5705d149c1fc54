package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

// manyRows answers row reads within the browser: a million rows, in either order. It counts the
// reads.
const manyRows = `(() => { const real = fetch; window.fetch = async (address, options) => {
	const url = new URL(address, location.href);
	if (url.pathname !== "/api/scraper/data") { return real(address, options); }
	const said = name => Number(url.searchParams.get(name) ?? 0), size = said("limit"), items = [];
	window.reads = (window.reads ?? 0) + 1;
	const from = said("cursor") + said("skip"), down = url.searchParams.get("sort") === "n,desc";
	if (!down && said("skip")) { return new Response("{}", {status: 400}); }
	for (let i = from; i < Math.min(from + size, 1e6); i++) {
		items.push({title: "Row " + (down ? 1e6 - 1 - i : i), n: i}); }
	const more = from + size < 1e6;
	return new Response(JSON.stringify({items, hasMore: more,
		nextCursor: more ? String(from + size) : null}),
		{headers: {"Content-Type": "application/json"}}); }; })()`

// manyEvents replaces the stream of events: it sends the page what the test says. It makes the
// ended run appear active.
const manyEvents = `(ask => { window.fetch = async (to, options) => {
		const answer = await ask(to, options);
		return !to.includes("/load-history?") ? answer : new Response((await answer.text()).replaceAll(
			/"state":"[A-Z]+"/g, '"state":"RUNNING"')); }; })(fetch);
	window.EventSource = class extends EventTarget {
	constructor() { super(); window.told = (name, event) => this.dispatchEvent(
		new MessageEvent(name, {data: JSON.stringify(event)}));
		setTimeout(() => this.onopen?.()); }
	close() {} };`

// before runs a script in each page before the page's own.
func (p *person) before(script string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		p.t.Fatal(err)
	}
}

// measure returns the browser's DOM nodes and script memory, after garbage collection.
func (p *person) measure() (nodes, heap float64) {
	p.t.Helper()
	for _, command := range []cdp.Command[cdp.Empty, cdp.Empty]{heapprofiler.CollectGarbage,
		heapprofiler.CollectGarbage} { // nodes are freed after what holds them
		if _, err := chromedp.Call(p.ctx, command, cdp.Empty{}); err != nil {
			p.t.Fatal(err)
		}
	}
	if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	answer, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range answer.Metrics {
		switch m.Name {
		case "Nodes":
			nodes = m.Value
		case "JSHeapUsedSize":
			heap = m.Value
		}
	}
	return nodes, heap
}

// TestPortalStaysSmall: a table of a million rows, and a run of 100,000 pages followed live, do not
// make the page larger.
func TestPortalStaysSmall(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	product := &single{data: t.TempDir(), args: append(suite.Fast(), "--egress-allow",
		"127.0.0.0/8", "--egress-origin", "shop.example="+newShop(t), "--chromium", "none")}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	p := newPerson(t, path, s.Server)
	p.signsIn(s)
	p.do(chromedp.SendKeys(chromedp.CSS("#addresses"), "http://shop.example/list/1"))
	p.clicks("form button")
	p.clicks(".card button")
	p.sees(`document.querySelector("#cap")?.value`)
	p.clicks("form button")
	p.sees(`document.querySelector(".state.completed, .state.success")`)
	run := asks[string](p, `location.href`)
	rows := asks[string](p, `document.querySelector(".actions a").href.split("?")[0]`)

	p.before(manyRows)
	p.do(chromedp.Navigate(rows))
	p.sees(`document.querySelector(".rows tr[aria-rowindex='3'] td")?.innerText === "Row 1"`)
	for _, row := range []int{1_000_000, 500_000, 1, 999_000} {
		p.goesToRow(row)
		p.seesAfter(fmt.Sprintf(`[...document.querySelectorAll(".rows td")].some(c =>
			c.innerText === "Row %d" && c.getBoundingClientRect().top <
				document.querySelector(".rows").getBoundingClientRect().bottom)`, row-1),
			"window.reads")
		if n := asks[int](p, `document.querySelectorAll(".rows tbody tr").length`); n > 120 {
			t.Errorf("%d rows are in the page", n)
		}
	}
	if n := asks[string](p, `document.querySelector(".rows table").ariaRowCount`); n != "1000001" {
		t.Errorf("the table has %s rows", n)
	}
	p.sortsMany(rows)

	p.before(manyEvents)
	p.do(chromedp.Navigate(run))
	p.sees(`document.querySelector("progress") && window.told`)
	p.follows(1, 20_000) // until everything has been created once
	nodes, heap := p.measure()
	p.follows(20_000, 120_000)
	p.sees(`document.querySelector("progress").value === 120000`)
	if n, h := p.measure(); n > nodes+500 || h > heap+5e6 {
		t.Errorf("the page has grown from %.0f nodes and %.0f bytes to %.0f and %.0f", nodes, heap,
			n, h)
	}
	p.shows("run-live")
	product.Down(t)
}

// goesToRow jumps to a row by number.
func (p *person) goesToRow(row int) {
	p.t.Helper()
	asks[bool](p, fmt.Sprintf(`(() => { const input = document.querySelector("#row");
		input.value = %d; input.dispatchEvent(new Event("input", { bubbles: true }));
		input.form.requestSubmit(); return true; })()`, row))
}

// sortsMany goes through a million rows in the order of a field. Each read costs the API a scan of
// all rows. So it skips rows on the way, and drops reads for rows scrolled past.
func (p *person) sortsMany(rows string) {
	p.t.Helper()
	p.do(chromedp.Navigate(rows + "?sort=n&desc=yes"))
	p.sees(`document.querySelector(".rows tr[aria-rowindex='3'] td")?.innerText === "Row 999998"`)
	for _, row := range []int{1_000_000, 500_000, 1, 999_000} {
		p.goesToRow(row)
		p.sees(fmt.Sprintf(`[...document.querySelectorAll(".rows td")].some(c =>
			c.innerText === "Row %d" && c.getBoundingClientRect().top <
				document.querySelector(".rows").getBoundingClientRect().bottom)`, 1_000_000-row))
	}
	before := asks[int](p, `window.reads`)
	if before > 60 {
		p.t.Errorf("sorted rows were read %d times", before)
	}
	asks[bool](p, `(async () => { const box = document.querySelector(".rows");
		for (let i = 1; i <= 100; i++) {
			box.scrollTop = box.scrollHeight * i / 200;
			await new Promise(requestAnimationFrame);
		} window.scrolled = true; })(), true`)
	p.sees(`window.scrolled && [...document.querySelectorAll(".rows tbody tr:not(.gap)")].every(
		row => row.querySelector("td").innerText !== "")`)
	if n := asks[int](p, `window.reads`); n <= before {
		p.t.Error("nothing was read for what is seen")
	}
	if n := asks[string](p, `document.querySelector(".rows table").ariaRowCount`); n != "1000001" {
		p.t.Errorf("the sorted table has %s rows", n)
	}
}

// follows sends the page a run's events, page by page.
func (p *person) follows(from, to int) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(async () => {
		const [, , , scraperId, jobId] = location.pathname.split("/");
		for (let n = %d; n <= %d; n++) {
			told("job.status", {jobId, scraperId, groupId: scraperId, state: "RUNNING",
				itemsQuantity: 24 * n, totalRequests: n, successLinks: n, errorLinks: 0,
				totalLinks: 150000, deliveredPages: n, chargedMicros: n});
			if (n %% 500 === 0) { await new Promise(done => setTimeout(done)); }
		} })()`, from, to), chromedp.EvalAwaitPromise))
}
