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
// reads. It refuses what the API refuses.
const manyRows = `(() => { const real = fetch; window.fetch = async (address, options) => {
	const url = new URL(address, location.href);
	if (url.pathname !== "/api/scraper/data") { return real(address, options); }
	window.reads = (window.reads ?? 0) + 1;
	const said = name => url.searchParams.get(name) ?? "", sort = said("sort"), items = [];
	const [order, after] = (said("cursor") || sort + " 0").split(" ");
	const size = Math.min(Number(said("limit") || 100), 1000), skip = Number(said("skip"));
	if (!["", "n,desc"].includes(sort) || order !== sort || skip > (sort ? 40_000 : 0) || size < 1) {
		return new Response("{}", {status: 400}); }
	const from = Number(after) + skip, end = Math.min(from + size, 1e6), more = end < 1e6;
	for (let i = from; i < end; i++) {
		items.push({title: "Row " + (sort ? 1e6 - 1 - i : i), n: i}); }
	return new Response(JSON.stringify({items, hasMore: more,
		nextCursor: more ? sort + " " + end : null}),
		{headers: {"Content-Type": "application/json"}}); }; })()`

// manyEvents replaces the stream of events: it sends the page what the test says. It makes the
// ended run appear active, with as many errors as the test says, of three kinds.
const manyEvents = `(ask => { window.failed = 0; window.failuresRead = 0;
	const failures = query => { const found = [];
		const limit = Math.min(Number(query.get("limit") ?? 1e5), 1e5);
		for (let i = Number((query.get("after") ?? "0.0").split(".")[1]);
			i < failed && found.length < limit; i++) {
			found.push({url: "http://shop.example/gone/" + i, status: 404 + i % 3, place: "0." + (i + 1),
				error: "status " + (404 + i % 3), code: "http_status"}); }
		failuresRead++;
		return found; };
	window.fetch = async (to, options) => {
		if (to.includes("/errors?")) {
			return new Response(JSON.stringify(failures(new URL(to, location.href).searchParams))); }
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

	p.before(breaking)
	p.before(manyEvents)
	p.do(chromedp.Navigate(run))
	p.sees(`document.querySelector("progress") && window.told`)
	p.follows(1, 20_000) // until everything has been created once
	nodes, heap := p.measure()
	p.follows(20_000, 120_000)
	p.sees(`document.querySelector("progress").value === 120000`)
	if n, h := p.measure(); n > nodes+500 || h > heap+2e6 {
		t.Errorf("the page has grown from %.0f nodes and %.0f bytes to %.0f and %.0f", nodes, heap,
			n, h)
	}
	p.shows("run-live")
	p.forgets()
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

// follows sends the page a run's events, page by page. Each tenth page fails. With each fifth
// another run ends. The page reads the errors again every 2,000 pages.
func (p *person) follows(from, to int) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(async () => {
		const [, , , scraperId, jobId] = location.pathname.split("/");
		window.tells = (id, n, state) => told("job.status", {jobId: id, scraperId, groupId: scraperId,
			state, itemsQuantity: 24 * n, totalRequests: n, successLinks: n - failed,
			errorLinks: failed, totalLinks: 150000, deliveredPages: n - failed, chargedMicros: n,
			errorMessage: id === jobId ? null : id.padEnd(2000, id)});
		for (let n = %d; n <= %d; n++) {
			failed = Math.floor(n / 10);
			if (n %% 5 === 0) { tells("other" + n, 1, "FAILED"); }
			tells(jobId, n, "RUNNING");
			if (n %% 500 === 0) { await new Promise(done => setTimeout(done)); }
			for (const read = failuresRead; n %% 2000 === 0 && failuresRead === read;) {
				later();
				await new Promise(requestAnimationFrame);
			}
		} })()`, from, to), chromedp.EvalAwaitPromise))
}

// forgets tells the page of as many other runs as it keeps, and then of another one. It keeps the
// followed run until then. When that ends, the page counts all its errors.
func (p *person) forgets() {
	p.t.Helper()
	tell := func(first, last int) {
		asks[bool](p, fmt.Sprintf(`(async () => { for (let n = %d; n <= %d; n++) {
			tells("another" + n, 1, "RUNNING"); }
			await new Promise(requestAnimationFrame);
			await new Promise(done => setTimeout(done)); return true; })()`, first, last))
	}
	tell(1, 999)
	if n := asks[int](p, `document.querySelector("progress").value`); n != 120_000 {
		p.t.Errorf("with 1,000 runs under way, the page shows page %d, want 120000", n)
	}
	tell(1000, 1000)
	p.sees(`document.querySelector("progress").value === 1`) // as it was read
	asks[bool](p, `(tells(location.pathname.split("/").pop(), 120000, "SUCCESS"), true)`)
	p.sees(`[...document.querySelectorAll("section td.n")].map(n => n.innerText).join(" ") ===
		"4,000 4,000 4,000" && !document.querySelector("section > .hint")`)
}
