package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/browser"
)

// witness records everything that a browser complains about: console errors and warnings, uncaught
// exceptions, policy violations, and failed requests.
type witness struct {
	mu    sync.Mutex
	seen  []string
	asked map[network.RequestID]string // addresses of requests in flight
}

// watches makes a witness watch a person's browser from now on.
func (p *person) watches() *witness {
	p.t.Helper()
	w := &witness{asked: map[network.RequestID]string{}}
	if err := chromedp.Listen(p.ctx, w.see); err != nil {
		p.t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		p.t.Fatal(err)
	}
	return w
}

func (w *witness) see(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	complain := func(format string, args ...any) {
		w.seen = append(w.seen, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError &&
			e.Type != runtime.ConsoleAPICalledTypeWarning &&
			e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		said := []string{}
		for _, arg := range e.Args {
			said = append(said, string(arg.Value)+arg.Description)
		}
		complain("console %s: %s", e.Type, strings.Join(said, " "))
	case *runtime.EventExceptionThrown:
		said := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			said += " " + e.ExceptionDetails.Exception.Description
		}
		complain("not caught: %s", said)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			complain("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if e.Type == network.ResourceTypeDocument {
			clear(w.asked) // of the previous page, which reports nothing any more
		}
		if e.Type != network.ResourceTypeEventSource { // it ends with the page
			w.asked[e.RequestID] = e.Request.URL
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= http.StatusBadRequest {
			complain("%s is answered %d", e.Response.URL, e.Response.Status)
		}
	case *network.EventLoadingFinished:
		delete(w.asked, e.RequestID)
	case *network.EventLoadingFailed:
		if !e.Canceled { // by the page itself
			complain("%s fails: %s %s", w.asked[e.RequestID], e.ErrorText, e.BlockedReason)
		}
		delete(w.asked, e.RequestID)
	}
}

// awaitIdle waits until no requests are in flight, even after the page has drawn their answers.
func (w *witness) awaitIdle(p *person) {
	p.t.Helper()
	for idle, deadline := 0, time.Now().Add(suite.Patience); idle < 3; idle++ {
		p.do(chromedp.Evaluate[chromedp.Void](`new Promise((drawn) => {
			requestAnimationFrame(() => setTimeout(drawn)); })`, chromedp.EvalAwaitPromise))
		w.mu.Lock()
		open := slices.Collect(maps.Values(w.asked))
		w.mu.Unlock()
		if len(open) == 0 {
			continue
		}
		if idle = 0; time.Now().After(deadline) {
			p.t.Fatalf("never answered: %v", open)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// complaints returns those since the last call.
func (w *witness) complaints() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.seen
	w.seen = nil
	return said
}

// TestWitnessSees: each kind of complaint is seen, and a page without one is quiet.
func TestWitnessSees(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "script-src 'nonce-a'; img-src data:")
		_, _ = fmt.Fprintf(w, "<link rel=icon href=data:,><h1>%s</h1><script nonce=a>%s</script>%s",
			r.URL.Path, r.URL.Query().Get("script"), r.URL.Query().Get("html"))
	}))
	t.Cleanup(site.Close)
	p := newPerson(t, path, site.URL)
	w := p.watches()
	for _, c := range []struct{ query, want string }{
		{"", ""},
		{"script=console.log(1)", ""},
		{"script=console.warn('careful')", "careful"},
		{"script=console.error('wrong')", "wrong"},
		{"script=throw+new+Error('thrown')", "thrown"},
		{"script=Promise.reject(new+Error('rejected'))", "rejected"},
		{"script=fetch('/gone')", "404"},
		{"script=fetch('http://127.0.0.1:1/').catch(()=>0)", "fails"},
		{"html=<script>1</script>", "Content Security Policy"},
		{"html=<img+src=/x.png>", "Content Security Policy"},
	} {
		p.do(chromedp.Navigate(site.URL + "/page?" + c.query))
		p.sees(`document.readyState === "complete"`)
		w.awaitIdle(p)
		seen := strings.Join(w.complaints(), "\n")
		if (seen == "") != (c.want == "") || !strings.Contains(seen, c.want) {
			t.Errorf("%s: seen is %q, want %q", c.query, seen, c.want)
		}
	}
	if *axeScript != "" {
		if found := p.axe(); !strings.Contains(found, "image-alt") {
			t.Errorf("axe finds %s where a picture has no text", found)
		}
	}
}

// named matches the places that the portal's sources distinguish, by name in the address.
var named = regexp.MustCompile(`(?:case|name ===|what ===|parts\[\d\] ===) "([a-z]+)"`)

// TestPortalIsQuiet opens every page of the portal and of the sign-in. None writes an error or a
// warning to the console, violates its policy, or makes a refused request. Light and dark, each has
// enough contrast, and is checked with axe-core, if available.
func TestPortalIsQuiet(t *testing.T) {
	t.Parallel()
	v := newVisit(t, true)
	places := v.places()
	v.doesNotOmit(places)
	w := v.watches()
	for _, place := range places {
		v.do(chromedp.Navigate(v.Server + place))
		v.quiet(w, place)
		if strings.HasPrefix(place, "/portal") {
			v.sees(`document.title.startsWith(document.querySelector("h1").textContent.trim())`)
		}
	}

	// content that only exists in the middle of a task
	v.goes("/", `document.querySelector("#addresses")`)
	v.enters("addresses", "http://shop.example/list/7")
	v.clicks("form button")
	v.sees(`document.querySelector(".card button")`)
	v.quiet(w, "the candidates")
	v.clicks(".card button")
	v.sees(`document.querySelector("#cap")`)
	v.quiet(w, "the launch")
	v.clicks("form button")
	v.sees(`document.querySelector(".state.completed, .state.success")`)
	v.quiet(w, "a run that goes on")
	v.clicks(".actions a")
	v.sees(`document.querySelector(".rows tr[aria-rowindex='3'] button")`)
	v.clicks(".rows tr[aria-rowindex='3'] button")
	v.presses("Where it comes from")
	v.sees(`document.querySelector("dialog ol li")`)
	v.quiet(w, "a row")
	v.product.Down(t)
}

// cutRuns lists what does not fit in tables of runs: a table itself, or a text in a cell.
const cutRuns = `[...document.querySelectorAll("table.runs")].flatMap((table) =>
	[table.parentElement, ...table.querySelectorAll("th, td")].filter((of) =>
		of.scrollWidth > of.clientWidth).map((of) => of.innerText.slice(0, 60)))`

// quiet waits until a page has everything it requests, and reports the browser's complaints.
func (v *visit) quiet(w *witness, place string) {
	v.person.t.Helper()
	v.sees(`document.readyState === "complete" && document.querySelector("h1")`)
	w.awaitIdle(v.person)
	for _, said := range w.complaints() {
		v.person.t.Errorf("%s: %s", place, said)
	}
	for _, width := range []int64{390, 960, 1280} {
		v.do(chromedp.EmulateViewport(width, 900))
		if wide := asks[int64](v.person, `document.documentElement.scrollWidth`); wide > width {
			v.person.t.Errorf("%s is %d wide where %d can be seen", place, wide, width)
		}
		if cut := asks[[]string](v.person, cutRuns); width >= 960 && len(cut) > 0 {
			v.person.t.Errorf("%s, %d wide: the table of runs is cut off: %s", place, width, cut)
		}
		for _, scheme := range []string{"dark", "light"} {
			v.prefers(scheme)
			name := fmt.Sprintf("%s, %d wide, %s", place, width, scheme)
			v.reads(name)
			v.judge(name)
		}
	}
	w.complaints() // of the checks themselves
}

// places creates some of everything, and returns the addresses of all pages.
func (v *visit) places() (places []string) {
	t, ctx := v.person.t, v.person.t.Context()
	t.Helper()
	group := suite.Must(v.PutGroup(ctx, "Lamps"))(t)
	scraper := suite.Must(v.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: model.Scraper{
		Name: hostileName, Type: model.MultipleProducts,
		SourceConfig: model.SourceConfig{URL: "http://shop.example/list/1"},
		ItemsConfig: []model.Field{{Name: "name", Selector: ".thing .name", Kind: model.Text},
			{Name: "price", Selector: ".thing .price", Kind: model.Text}}}}))(t)
	run := suite.Must(v.RunScraper(ctx, scraper))(t)
	if _, _, err := v.Finished(ctx, run); err != nil {
		t.Fatal(err)
	}
	var schema, hook struct{ ID string }
	for _, made := range []struct {
		method, path string
		body, into   any
	}{
		{"PUT", "/api/schema/customer", map[string]any{"name": "Things", "type": "CUSTOM",
			"version": 1, "content": map[string]any{"type": "object",
				"properties": map[string]any{"title": map[string]any{"type": "string"}}}},
			&schema},
		{"POST", "/api/webhooks", map[string]any{"url": "http://127.0.0.1:1/",
			"events": []string{"SCRAPER_RUN_COMPLETED"}}, &hook},
		{"PUT", "/api/scraper/site", map[string]any{"name": "Lamps", "scraperRef": scraper,
			"links": []map[string]any{{"url": "http://shop.example/list/1"}}}, nil},
	} {
		if err := v.Call(ctx, made.method, made.path, nil, made.body, made.into); err != nil {
			t.Fatal(err)
		}
	}
	var program struct {
		ID string `json:"client_id"`
	}
	if err := v.Call(ctx, "POST", "/oauth/register", nil, map[string]any{
		"client_name": "A <b>program</b>", "redirect_uris": []string{"http://127.0.0.1:1/"},
	}, &program); err != nil {
		t.Fatal(err)
	}
	of := "/runs/" + scraper + "/" + run.JobID
	for _, place := range []string{"", "/candidates", "/launch",
		"/build?url=http://shop.example/list/1", "/runs", "/runs?state=FAILED", of,
		of + "/fields", of + "/changes", "/runs/" + scraper, "/rows", "/rows/" + group,
		"/rows/" + group + "?job=" + run.JobID + "&sort=price", "/groups", "/groups/" + group,
		"/scrapers", "/scrapers/" + scraper, "/calendar", "/sites", "/sites/" + scraper,
		"/uploads", "/schemas",
		"/schemas/" + schema.ID, "/wallet", "/statements", "/prices", "/plan", "/notices", "/keys",
		"/webhooks", "/webhooks/" + hook.ID, "/preferences", "/operators", "/operators/nodes",
		"/operators/work", "/operators/backups", "/operators/customers",
		"/operators/customer?ref=self", "/operators/prices", "/operators/plans",
		"/operators/settings", "/operators/audit", "/nowhere"} {
		places = append(places, "/portal"+place)
	}
	return append(places, "/sign-in", "/sign-in/password", "/sign-in/passkeys",
		"/sign-in/programs", "/sign-in/recover", "/sign-up",
		"/oauth/authorize?"+url.Values{"response_type": {"code"}, "client_id": {program.ID},
			"redirect_uri": {"http://127.0.0.1:1/"}, "scope": {"LLM_READ"}, "state": {"s"},
			"code_challenge":        {strings.Repeat("a", 43)},
			"code_challenge_method": {"S256"}}.Encode(),
		"/api/wallet/statements/"+time.Now().UTC().Format("2006-01")+"?format=html",
		"/api/customer/user-agreement", "/api/customer/subscription/success",
		"/api/customer/payment/canceled")
}

// doesNotOmit compares the list of places with the names that the sources distinguish.
func (v *visit) doesNotOmit(places []string) {
	t := v.person.t
	t.Helper()
	var known []string
	for _, place := range places {
		at, _, _ := strings.Cut(place, "?")
		known = append(known, strings.Split(at, "/")...)
	}
	names := 0
	for _, file := range []string{"app.tsx", "rest.tsx", "account.tsx", "operators.tsx"} {
		source, err := os.ReadFile(filepath.Join("..", "apiserver", "portal", "web", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllSubmatch(source, -1) {
			names++
			if !slices.Contains(known, string(found[1])) {
				t.Errorf("no page of %q (%s) is opened", found[1], file)
			}
		}
	}
	if names < 20 {
		t.Errorf("the sources tell %d places apart: they are written in another way", names)
	}
}
