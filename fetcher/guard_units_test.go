//go:build linux

package fetcher

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/testkit/forbidden"
	"shoal.dev/shoal/testkit/netns"
)

// unitEntry is a way in which a run gets to request a target: a recipe, and the address of its
// unit.
type unitEntry struct {
	name  string
	unit  func(i int, target string) (model.Recipe, string)
	tiers model.TierSet
	// leads: the way begins at the public site, which must see a request.
	leads bool
}

// leading returns an address of the public site that redirects to a target, by all kinds in turn.
func leading(i int) string {
	return fmt.Sprintf("http://public.example/to/%d/%d", i, []int{301, 302, 303, 307, 308}[i%5])
}

// quoted quotes an argument for a shell command.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// unitEntries are all ways: sources, paginations, discoveries, further pages, endpoints, by each
// tier without a browser.
func unitEntries() []unitEntry {
	plain, super := model.TiersOf(model.Plain), model.TiersOf(model.Super)
	listed := func(_ int, target string) (model.Recipe, string) { return unrobotic(title), target }
	led := func(i int, _ string) (model.Recipe, string) { return unrobotic(title), leading(i) }
	paginated := func(curl, path string, p model.Pagination) func(int, string) (model.Recipe,
		string) {
		return func(i int, target string) (model.Recipe, string) {
			recipe, at := unrobotic(paged(p)), fmt.Sprintf("http://public.example/%s/%d", path, i)
			recipe.Pagination.Template = strings.ReplaceAll(p.Template, "TARGET", target)
			if curl != "" {
				recipe.Curl = fmt.Sprintf(curl, quoted(at))
			}
			return recipe, at
		}
	}
	cursor := paginated("curl %s -d q=1", "cursor",
		model.Pagination{Type: model.JSONCursor, Param: "c", CursorPath: "$.next"})
	discovery := func(i int, target string) (model.Recipe, string) {
		recipe := unrobotic(withTokens())
		if recipe.Prelaunch.DiscoveryURL = target; i/4%2 == 0 {
			recipe.Prelaunch.DiscoveryURL = leading(i)
		}
		return recipe, "http://public.example/api?t=%7B%7BT%7D%7D"
	}
	curl := func(_ int, target string) (model.Recipe, string) {
		return unrobotic(curlRecipe("curl "+quoted(target)+" -d a=b -b c=d", nil)), target
	}
	return []unitEntry{
		{name: "listed", unit: listed, tiers: plain},
		{name: "listed, by proxies", unit: listed, tiers: super},
		{name: "listed, as robots.txt says", tiers: plain,
			unit: func(_ int, target string) (model.Recipe, string) { return title, target }},
		{name: "redirect", unit: led, tiers: plain, leads: true},
		{name: "redirect, by proxies", unit: led, tiers: super, leads: true},
		{name: "redirect, as robots.txt says", tiers: plain, leads: true,
			unit: func(i int, _ string) (model.Recipe, string) { return title, leading(i) }},
		{name: "command", unit: curl, tiers: plain},
		{name: "command, by proxies", unit: curl, tiers: super},
		{name: "redirect of a command", tiers: plain, leads: true,
			unit: func(i int, _ string) (model.Recipe, string) {
				return unrobotic(curlRecipe("curl "+quoted(leading(i))+" -d a=b -b c=d", nil)),
					leading(i)
			}},
		{name: "template of pages", tiers: plain, leads: true,
			unit: paginated("", "list",
				model.Pagination{Type: model.URLTemplate, Template: "TARGET#{page}"})},
		{name: "template of a command's pages", tiers: plain, leads: true,
			unit: paginated("curl %s -d q=1", "list",
				model.Pagination{Type: model.URLTemplate, Template: "TARGET?{page}"})},
		{name: "link to the next page", tiers: plain, leads: true,
			unit: paginated("", "links", model.Pagination{Type: model.NextLink, Selector: "a"})},
		{name: "second page by a parameter", tiers: plain, leads: true,
			unit: paginated("", "second", model.Pagination{Type: model.URLPageParam, Param: "p"})},
		{name: "second page by a body", tiers: plain, leads: true,
			unit: paginated("curl %s -d p=1", "second",
				model.Pagination{Type: model.URLPageParam, Param: "p"})},
		{name: "second page by an offset", tiers: plain, leads: true,
			unit: paginated("curl %s -d o=0", "second",
				model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: intp(2)})},
		{name: "second page by a cursor", tiers: plain, leads: true,
			unit: func(i int, target string) (model.Recipe, string) {
				recipe, at := cursor(i, target)
				recipe.Fields = []model.Field{{Name: "a", Selector: "$.items[*].a",
					Kind: model.Text}}
				return recipe, at
			}},
		{name: "discovery", unit: discovery, tiers: plain, leads: true},
		{name: "discovery, by proxies", unit: discovery, tiers: super, leads: true},
		{name: "new build", tiers: plain, leads: true,
			unit: func(i int, _ string) (model.Recipe, string) {
				at := fmt.Sprintf("http://build-%d.example/_next/data/one/p.json", i)
				return unrobotic(curlRecipe("curl "+at, nil)), at
			}},
		{name: "contact pages", tiers: plain, leads: true,
			unit: func(i int, _ string) (model.Recipe, string) {
				return unrobotic(contactsRecipe), fmt.Sprintf("http://contact-%d.example/", i)
			}},
		{name: "website", tiers: plain,
			unit: func(_ int, target string) (model.Recipe,
				string) {
				return unrobotic(contactsRecipe), target
			}},
		{name: "preview", tiers: plain, leads: true,
			unit: func(i int, target string) (model.Recipe, string) {
				return unrobotic(model.Recipe{Type: model.Detection}),
					[]string{target, leading(i)}[i/4%2]
			}},
		{name: "preview of a command", tiers: plain, leads: true,
			unit: func(i int, target string) (model.Recipe, string) {
				at := []string{target, leading(i)}[i/4%2]
				return unrobotic(model.Recipe{Type: model.Detection, Curl: "curl " + quoted(at)}),
					at
			}},
		{name: "search engine", tiers: plain, leads: true,
			unit: func(i int, target string) (model.Recipe, string) {
				at := []string{target, leading(i)}[i/4%2]
				return model.Recipe{Type: model.SearchEngineSearch, Endpoint: model.SearchTag,
						Search: &model.SearchEngine{Name: "e", URL: at + "?q={query}",
							IgnoreRobots: true}},
					at
			}},
		{name: "shop", tiers: plain, leads: true,
			unit: func(i int, target string) (model.Recipe, string) {
				return unrobotic(model.Recipe{Type: model.Marketplace,
						Endpoint: model.ProductPageTag}),
					[]string{target, leading(i)}[i/4%2]
			}},
	}
}

// serveUnits serves the pages of the public site that lead to targets, besides plain redirects.
func (g *guarded) serveUnits(w http.ResponseWriter, r *http.Request) bool {
	var target int
	host := func(format string) bool { n, _ := fmt.Sscanf(r.Host, format, &target); return n == 1 }
	path := func(format string) bool {
		n,
			_ := fmt.Sscanf(r.URL.Path, format, &target)
		return n == 1
	}
	lead := func() {
		w.Header().Set("Location", g.targets[target].URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	page := func(text string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, text)
	}
	switch body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10)); {
	case host("build-%d.example") && r.URL.Path == "/":
		lead()
	case host("build-%d.example"):
		w.WriteHeader(http.StatusNotFound)
	case host("contact-%d.example") && r.URL.Path == "/":
		prose := strings.Repeat("<p>We have sold bread and cakes here since 1950.</p>", 10)
		to := html.EscapeString(g.targets[target].URL)
		if target/4%2 == 0 {
			prose += `<meta http-equiv=refresh content="0;url=` + to + `">`
		}
		page(prose + `<a href="/contact">Contact</a> <a href="` + to + `">Imprint</a>`)
	case host("contact-%d.example"):
		lead()
	case path("/list/%d"):
		page("<h1>first</h1>")
	case path("/links/%d"):
		page(`<h1>first</h1><a href="` + html.EscapeString(g.targets[target].URL) + `">next</a>`)
	case path("/second/%d") &&
		(strings.Contains(r.URL.RawQuery, "=2") || strings.HasSuffix(string(body), "=2")):
		lead()
	case path("/second/%d"):
		page("<h1>first</h1>")
	case path("/cursor/%d") && strings.Contains(r.URL.RawQuery, "c="):
		lead()
	case path("/cursor/%d"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[{"a":1}],"next":"x"}`)
	default:
		return false
	}
	return true
}

// runUnits lets a fetcher work on targets, given by index, through one entry, and waits until all
// are done.
func (g *guarded) runUnits(entry unitEntry, targets []int, model Model) {
	t := g.t
	t.Helper()
	g.now.Advance(10 * time.Minute) // expires the names' look-ups
	memory, err := stream.NewMemory(stream.Config{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	reader, err := memory.Consume(stream.Pages, "test")
	if err != nil {
		t.Fatal(err)
	}
	control := newControl(1, title)
	held, told := make(chan struct{}), sync.Once{}
	control.answer = func(beat client.Heartbeat) (client.Leases, error) {
		if len(beat.Holding) > 0 {
			told.Do(func() { close(held) })
		}
		return control.holdAll(time.Hour), nil
	}
	var records [][]byte
	for _, i := range targets {
		recipe, at := entry.unit(i, g.targets[i].URL)
		revision := uint32(i + 1)
		control.recipes[revision] = &client.Recipe{Recipe: recipe}
		records = append(records, stream.EncodeTask(unitTask(revision, at, entry.tiers)))
	}
	f := New(Config{Node: "n", Log: memory, Control: control, Web: g.web, Model: model,
		IDs:     &sequence{Sequence: ids.Sequence{}},
		ShardOf: func(string) int { return 0 }, Workers: 64, Timeout: 5 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	defer running.Wait()
	defer cancel()
	<-held
	if err := memory.Publish(ctx, stream.Tasks, 0, records...); err != nil {
		t.Fatal(err)
	}
	limit, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	for done := 0; done < len(records); {
		messages, err := reader.Fetch(limit, 512)
		if err != nil {
			t.Fatalf("%s: %d of %d units are done with: %v", entry.name, done, len(records), err)
		}
		for _, m := range messages {
			if page, _, err := stream.DecodePages(m.Value); err == nil && page != nil && page.Last {
				done++
			}
		}
		_ = reader.Commit(limit, messages)
	}
}

func unitTask(revision uint32, at string, tiers model.TierSet) model.Task {
	return model.Task{Job: jobID, Seq: revision, Customer: "c", Scraper: scraperID,
		Revision: revision, URL: at, Tiers: tiers,
		Budget: 2, Attempt: 1, Number: uint64(revision)}
}

// TestGuardOfUnits lets runs reach for every spelling of every forbidden address by everything that
// customers can set: sources, paginations, discoveries, endpoints. Each entry gets a quarter of the
// spellings, more than 5,000. Forbidden addresses see no connection.
func TestGuardOfUnits(t *testing.T) {
	if !netns.Alone(t) {
		return
	}
	g := newGuarded(t, egress.Config{}, WebConfig{})
	for n, entry := range unitEntries() {
		t.Run(entry.name, func(t *testing.T) {
			before, began := g.trap.Served(), time.Now()
			var quarter []int
			for i := n % 4; i < len(g.targets); i += 4 {
				quarter = append(quarter, i)
			}
			if len(quarter) < 5000 && whole() {
				t.Errorf("only %d targets", len(quarter))
			}
			g.runUnits(entry, quarter, nil)
			if caught := g.trap.Caught(); len(caught) > 0 {
				t.Errorf("%d connections reached what is forbidden: %.500s", len(caught),
					strings.Join(caught, " "))
			}
			served := g.trap.Served() - before
			if entry.leads && served < len(quarter)/3 {
				t.Errorf("only %d requests reached the public site", served)
			}
			t.Logf("%d requests at the public site, %v", served,
				time.Since(began).Round(time.Millisecond))
		})
	}
	g.close(t)
}

// close ends the trap, which has then seen all packets.
func (g *guarded) close(t *testing.T) {
	t.Helper()
	if err := g.trap.Close(); err != nil {
		t.Error(err)
	}
	if leaks := g.trap.Leaks(); len(leaks) > 0 {
		t.Errorf("packets went where nothing should go: %v", leaks)
	}
}

// TestGuardOfRates requests rates from every place that an operator or a redirect may name.
func TestGuardOfRates(t *testing.T) {
	if !netns.Alone(t) {
		return
	}
	g := newGuarded(t, egress.Config{}, WebConfig{})
	bundled := ecb.Bundled().Date()
	g.askAll(func(ctx context.Context, i int, url string) {
		for _, at := range []string{url, leading(i)} {
			table := ecb.NewSource(g.client, ecb.Config{URL: at, Clock: g.now}).Table(ctx)
			if table.Date() != bundled {
				t.Errorf("%s: rates of %s", at, table.Date())
			}
		}
	})
	if caught := g.trap.Caught(); len(caught) > 0 {
		t.Errorf("%d connections reached what is forbidden: %.500s", len(caught),
			strings.Join(caught, " "))
	}
	if g.trap.Served() < len(g.targets) {
		t.Errorf("only %d requests reached the public site", g.trap.Served())
	}
	g.close(t)
}

// modelEndpoint is a language model at a private address. It counts all other requests.
type modelEndpoint struct {
	*httptest.Server
	mu        sync.Mutex
	questions int
	others    []string
}

func newModelEndpoint(t *testing.T, g *guarded, place string) *modelEndpoint {
	t.Helper()
	listener, err := net.Listen("tcp", place)
	if err != nil {
		t.Fatal(err)
	}
	e := &modelEndpoint{}
	e.Server = &httptest.Server{Listener: listener,
		Config: &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}}
	e.Start()
	t.Cleanup(e.Close)
	g.trap.Expect(netip.MustParseAddrPort(place))
	return e
}

func (e *modelEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" ||
		r.Header.Get("Authorization") != "Bearer k" {
		e.others = append(e.others, r.Method+" "+r.URL.Path)
	}
	e.questions++
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"finish_reason": "stop",
			"message": map[string]any{"content": `{"name":"Radio","price":59}`}}}})
}

// TestGuardOfTheModel: only the model reaches its endpoint's private range. No page, redirect or
// command gets there, and the endpoint leads nowhere else.
func TestGuardOfTheModel(t *testing.T) {
	if !netns.Alone(t) {
		return
	}
	const place = "10.20.0.5:9000"
	g := newGuarded(t, egress.Config{}, WebConfig{})
	endpoint := newModelEndpoint(t, g, place)
	g.names.Set("model.example", []netip.Addr{netip.MustParseAddr("10.20.0.5")})
	out, err := egress.New(egress.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}, Resolver: g.names,
		Clock: g.now})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ask := func(base string) Model {
		m, err := NewModel(ModelConfig{BaseURL: base, Model: "m", Key: "k",
			Timeout: 5 * time.Second}, out, clock.System{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, url := range []string{"http://10.20.0.5:9000/v1/chat/completions",
		"http://model.example:9000/", "http://0x0a140005:9000/",
		"http://[::ffff:10.20.0.5]:9000/", "http://10.1310725:9000/"} {
		g.targets = append(g.targets,
			forbidden.Target{URL: url, For: netip.MustParseAddr("10.20.0.5")})
	}
	first := len(g.targets) - 5
	theirs := []int{first, first + 1, first + 2, first + 3, first + 4}
	for _, entry := range unitEntries() {
		g.runUnits(entry, theirs, ask("http://10.20.0.5:9000/v1"))
	}
	if endpoint.questions > 0 {
		t.Errorf("%d requests reached the model's endpoint, %v", endpoint.questions,
			endpoint.others)
	}
	// A page that needs the model reaches it, by name and by number.
	needy := unitEntry{name: "prompt", tiers: model.TiersOf(model.Plain),
		unit: func(int, string) (model.Recipe, string) {
			return unrobotic(modelRecipe), "http://public.example/"
		}}
	for n, base := range []string{"http://10.20.0.5:9000/v1", "http://model.example:9000/v1"} {
		g.runUnits(needy, theirs[:1], ask(base))
		if endpoint.questions != n+1 || len(endpoint.others) > 0 {
			t.Errorf("%s: %d questions, and %v", base, endpoint.questions, endpoint.others)
		}
	}
	// An endpoint elsewhere is not requested, and an endpoint's redirects are not followed.
	g.askAll(func(ctx context.Context, i int, url string) {
		if i%10 > 0 || i >= first {
			return
		}
		for _, base := range []string{strings.TrimSpace(url), leading(i)} {
			if !strings.HasPrefix(base, "http://") {
				continue
			}
			_, _ = ask(base).Ask(ctx, "c", "s", "u", json.RawMessage(`{}`))
		}
	})
	if caught := g.trap.Caught(); len(caught) > 0 {
		t.Errorf("%d connections reached what is forbidden: %.500s", len(caught),
			strings.Join(caught, " "))
	}
	g.close(t)
}
