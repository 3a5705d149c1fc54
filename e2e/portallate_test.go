package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
)

// meddling sits between the portal and the API. It records each call with its key. It can hold an
// answer until it is freed, lose one, or replace one.
const meddling = `(() => { const ask = fetch, rules = new Map(), held = new Map();
	window.asked = [];
	window.fetch = (to, options = {}) => {
		const name = options.method + " " + to;
		asked.push([name, options.headers?.["Idempotency-Key"] ?? ""]);
		const part = [...rules.keys()].find(part => name.startsWith(part)), rule = rules.get(part);
		rules.delete(part);
		return rule ? rule(() => ask(to, options)) : ask(to, options); };
	window.hold = (part, said) => rules.set(part, async (go) => {
		const answer = said ? new Response(JSON.stringify(said)) : await go();
		const read = answer.text.bind(answer);
		await new Promise(free => held.set(part, () => new Promise(done => {
			answer.text = async () => { const text = await read(); setTimeout(done); return text; };
			free(); })));
		return answer; });
	window.holds = (part) => held.has(part);
	window.free = async (part) => { await held.get(part)(); held.delete(part); return true; };
	window.lose = (part) => rules.set(part, async (go) => { await go(); throw new TypeError(); });
	window.answer = (part, status, said, then) => rules.set(part, async () => {
		then?.(); // of the next call
		return new Response(JSON.stringify(said), { status }); });
	window.allow = (part) => rules.delete(part);
	window.alter = (part, how) => rules.set(part, async (go) => new Response(
		JSON.stringify(how(await (await go()).json()))));
	window.refuse = (part, status, code, then) => answer(part, status, { code, status,
		detail: code, title: code, correlationId: "", errors: [] }, then); })()`

// meddles runs a command of meddling.
func (v *visit) meddles(said string, args ...any) {
	v.person.t.Helper()
	v.do(chromedp.Evaluate[chromedp.Void]("(" + fmt.Sprintf(said, args...) + ", undefined)"))
}

// frees releases a held answer, and waits until the page has received it.
func (v *visit) frees(part string) {
	v.person.t.Helper()
	v.sees(fmt.Sprintf("holds(%q)", part))
	v.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("free(%q).then(() => undefined)", part),
		chromedp.EvalAwaitPromise))
}

// keysOf returns the keys of calls with that prefix.
func (v *visit) keysOf(part string) []string {
	v.person.t.Helper()
	return asks[[]string](v.person, fmt.Sprintf(`asked.filter(([name]) => name.startsWith(%q)).map(
		([, key]) => key)`, part))
}

// sentAs compares the keys of calls with a pattern: the same letter means the same key.
func (v *visit) sentAs(part, pattern string) {
	v.person.t.Helper()
	said, names := "", []string{}
	for _, key := range v.keysOf(part) {
		if !slices.Contains(names, key) {
			names = append(names, key)
		}
		said += string(rune('a' + slices.Index(names, key)))
	}
	if said != pattern {
		v.person.t.Errorf("the keys of %q are %q, want %q", part, said, pattern)
	}
}

// TestPortalSendsOnce: a call that may have been carried out is repeated under its key. A call that
// was refused, or has changed, gets another key: the service answers a key as it did before.
func TestPortalSendsOnce(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	v.before(meddling)
	const group, scraper = "PUT /api/scraper/group", "PUT /api/scraper"
	v.goes("/groups", `document.querySelector("#group-name")`)
	v.meddles("lose(%q)", group)
	v.enters("group-name", "Lamps")
	v.presses("Create the group")
	v.says("The service does not answer.")
	v.meddles("refuse(%q, 409, 'idempotency_in_flight')", group)
	v.presses("Create the group")
	v.says("Idempotency_in_flight")
	v.meddles("refuse(%q, 503, 'unavailable')", group)
	v.presses("Create the group")
	v.says("Unavailable.")
	v.presses("Create the group")
	v.sees(`/^\/portal\/groups\/[0-9a-f]{24}$/.test(location.pathname)`)
	v.sentAs(group, "aaaa")

	of := asks[string](v.person, `location.pathname.split("/").at(-1)`)
	id := suite.Must(v.PutScraper(ctx, suite.Scraper{GroupRef: of, Scraper: model.Scraper{
		Name: "Lamps", Type: model.MultipleProducts,
		SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name",
			Kind: model.Text}}}}))(t)
	harvest := "POST /api/scraper/" + id + "/sitemaps/harvest"
	v.goes("/sites/"+id, `document.querySelector("#links")`)
	v.meddles("refuse(%q, 409, 'harvest_running')", harvest)
	v.presses("Harvest the sitemaps")
	v.says("Harvest_running.")
	v.meddles("answer(%q, 202, 3, () => hold(%q))", harvest, harvest)
	v.presses("Harvest the sitemaps")
	v.says("Addresses found so far: 3.")
	v.frees(harvest)
	v.says("Addresses found: 0.")
	v.sentAs(harvest, "abb")

	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", "http://shop.example/list/3")
	v.clicks("#build")
	v.sees(`document.querySelector("iframe.page")`)
	v.clicksIn("Lamp 2 of list 3")
	v.says("of 24 rows")
	v.meddles("refuse('POST /api/scraper/', 402, 'limit_reached')")
	v.clicks("form .actions button")
	v.says("Limit_reached.")
	v.clicks("form .actions button")
	v.sees(`document.querySelector("#cap")`)
	v.sentAs(scraper, "aa")

	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", "http://other.example/list/4")
	v.meddles("alter('POST /api/scraper-simple/url-based', ([one]) => [one, one])")
	v.clicks("form button")
	v.sees(`document.querySelectorAll(".card button").length > 1`)
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.walks("/candidates")
	v.clicks(".card:nth-of-type(2) button")
	v.sees(`document.querySelector("#cap")`)
	v.sentAs(scraper, "ab")
	v.meddles("refuse('POST /api/scraper/', 402, 'WALLET_INSUFFICIENT_BALANCE')")
	v.presses("Launch")
	v.sees(`document.querySelector("main .trouble")`)
	v.presses("Launch")
	v.sees(`location.pathname.startsWith("/portal/runs/")`)
	if keys := slices.DeleteFunc(v.keysOf("POST /api/scraper/"), func(key string) bool {
		return key == "" // of an estimate
	}); len(keys) != 2 || keys[0] == keys[1] {
		t.Errorf("the launches have the keys %v, want two", keys)
	}
	v.ends()
}

// TestPortalLeadsNobodyAway: a late answer does not navigate a person who has gone elsewhere, and
// changes no other draft.
func TestPortalLeadsNobodyAway(t *testing.T) {
	t.Parallel()
	v := newVisit(t, false)
	ctx := t.Context()
	v.before(meddling)
	stays := func(path string) {
		t.Helper()
		if at := asks[string](v.person, "location.pathname"); at != "/portal"+path {
			t.Errorf("a late answer leads from %s to %s", path, at)
		}
	}
	const proposed = "POST /api/scraper-simple/url-based"
	const draft = `JSON.parse(sessionStorage.getItem("shoal-draft"))`
	v.goes("/", `document.querySelector("#addresses")`)
	v.meddles("hold(%q)", proposed)
	v.enters("addresses", "http://shop.example/list/1")
	v.clicks("form button")
	v.sees(fmt.Sprintf("holds(%q)", proposed))
	v.walks("/runs")
	v.frees(proposed)
	v.sees(draft + `.proposals.length > 0`)
	stays("/runs")

	v.walks("/candidates")
	v.meddles("hold('POST /api/scraper/')")
	v.clicks(".card button")
	v.sees("holds('POST /api/scraper/')")
	v.walks("")
	v.enters("addresses", "http://shop.example/list/2")
	v.clicks("#build")
	v.sees(`location.pathname === "/portal/build"`)
	v.frees("POST /api/scraper/")
	stays("/build")
	was := asks[string](v.person, "JSON.stringify("+draft+")")
	if !strings.Contains(was, "list/2") || strings.Contains(was, "estimate") {
		t.Errorf("a late answer has changed another draft: %.200s", was)
	}

	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := v.lamps(group)
	run := suite.Must(v.RunScraper(ctx, scraper))(t)
	if _, _, err := v.Finished(ctx, run); err != nil {
		t.Fatal(err)
	}
	v.goes("/runs", `document.querySelector("table.runs a")`)
	v.clicks("table.runs a")
	estimate := "POST /api/scraper/" + scraper
	v.meddles("hold(%q)", estimate)
	v.presses("Run again")
	v.walks("/groups")
	v.frees(estimate)
	stays("/groups")
	v.ends()
}
