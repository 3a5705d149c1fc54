//go:build linux

package e2e

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/forbidden"
	"shoal.dev/shoal/testkit/netns"
)

// hostileSite is the public web under the attacker's control: redirects, next links and robots.txt
// files that lead to targets.
type hostileSite struct{ targets []forbidden.Target }

func (s hostileSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var target int
	read := func(text, format string) bool {
		_, err := fmt.Sscanf(text+"$", format+"$", &target)
		return err == nil && target < len(s.targets)
	}
	switch {
	case read(r.URL.Path, "/to/%d"):
		w.Header().Set("Location", s.targets[target].URL)
		w.WriteHeader(http.StatusFound)
	case read(r.URL.Path, "/next/%d"):
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<div><h1>%d</h1></div><a rel=next href="%s">`, target,
			html.EscapeString(s.targets[target].URL))
	case r.URL.Path == "/robots.txt" && read(r.Host, "robots-%d.example"):
		w.Header().Set("Location", s.targets[target].URL)
		w.WriteHeader(http.StatusFound)
	case r.URL.Path == "/robots.txt":
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<div><h1>public</h1></div>")
	}
}

func everyNth(n int, targets []forbidden.Target) []forbidden.Target {
	var some []forbidden.Target
	for i := 0; i < len(targets); i += n {
		some = append(some, targets[i])
	}
	return some
}

// TestGuard runs the whole product where every address is the test's. It requests forbidden targets
// through everything a customer writes: lists, scrapers, previews, samples, commands, discoveries,
// redirects, next links, robots.txt files, names. A short run requests a quarter.
func TestGuard(t *testing.T) {
	t.Parallel()
	if !netns.Alone(t) {
		return
	}
	names, sparser := &forbidden.Names{}, 1
	if testing.Short() {
		sparser = 4
	}
	hosts := everyNth(5*sparser, names.Rebind(forbidden.Addresses()))
	spelled := everyNth(60*sparser, forbidden.Targets())
	resolver, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	defer resolver.Close()
	go func() { _ = names.Serve(resolver) }() // until it is closed
	netns.AskAt(t, netip.MustParseAddr("127.0.0.1"))
	site := hostileSite{append(spelled, hosts...)}
	trap, err := forbidden.NewTrap(site)
	if err != nil {
		t.Fatal(err)
	}
	// including the API
	trap.Expect(netip.MustParseAddrPort("127.0.0.1:53"), netip.MustParseAddrPort("127.0.0.1:0"))

	product := &single{data: t.TempDir(), args: append(suite.Fast(), "--no-rate-limits")}
	product.Up(t)
	service := &suite.Service{T: t, Product: product, Client: product.Self()}
	service.Fill(service.Client, suite.Plenty)
	g := &productGuard{Service: service,
		fields: []model.Field{{Name: "title", Selector: "h1", Kind: model.Text}}}

	for _, target := range spelled {
		g.try([]string{target.URL}, nil)
		g.scraper(model.SourceConfig{URL: target.URL})
		g.scraper(model.SourceConfig{Curl: "curl -L '" + target.URL + "'"})
		g.scraper(model.SourceConfig{URL: "http://public.example/",
			Pagination: &model.Pagination{Type: model.URLTemplate,
				Template: strings.TrimSuffix(target.URL, "/") + "/{page}"}})
	}
	for i := 0; i < len(site.targets); i += 7 {
		for _, url := range []string{site.targets[i].URL,
			fmt.Sprintf("http://public.example/to/%d", i)} {
			g.trials(url)
			g.scraper(model.SourceConfig{Curl: "curl 'http://public.example/?t={{T}}'",
				Prelaunch: &model.Prelaunch{DiscoveryURL: url,
					Tokens: []model.TokenRule{{Name: "T", Source: "META", Expression: "token"}}}})
		}
	}
	var all, redirects, robots, next []string
	for _, target := range hosts {
		all = append(all, target.URL)
	}
	for i := range site.targets {
		redirects = append(redirects, fmt.Sprintf("http://public.example/to/%d", i))
		robots = append(robots, fmt.Sprintf("http://robots-%d.example/", i))
		next = append(next, fmt.Sprintf("http://public.example/next/%d", i))
	}
	g.try(all, nil)
	g.try(redirects, nil)
	g.try(robots, nil)
	link := suite.NextLink()
	link.Selector = "a[rel=next]"
	g.try(next, &link)
	g.wait()
	product.Down(t)

	if caught := trap.Caught(); len(caught) > 0 {
		t.Errorf("%d connections reached what is forbidden: %.500s", len(caught),
			strings.Join(caught, " "))
	}
	if want := 3 * len(site.targets); trap.Served() < want {
		t.Errorf("only %d requests reached the public site, want %d", trap.Served(), want)
	}
	if err := trap.Close(); err != nil {
		t.Error(err)
	}
	if leaks := trap.Leaks(); len(leaks) > 0 {
		t.Errorf("packets went where nothing should go: %v", leaks)
	}
	t.Logf("%d spellings, %d names; %d launches, %d of them refused", len(spelled), len(hosts),
		g.launched+g.refused, g.refused)
}

// trials makes the previews of an address, and the sample of a scraper for it. They may be refused,
// or find nothing.
func (g *productGuard) trials(url string) {
	g.T.Helper()
	group := suite.Must(g.PutGroup(g.T.Context(), "trials "+suite.NewKey()))(g.T)
	for _, preview := range []struct {
		path string
		body map[string]any
	}{
		{"url-based", map[string]any{"name": "x", "groupId": group, "url": url}},
		{"curl-based", map[string]any{"name": "x", "groupId": group, "curl": "curl '" + url + "'"}},
		{"preview-from-url", map[string]any{"url": url, "fields": []string{"price"}}},
	} {
		g.tried(g.Call(g.T.Context(), "POST", "/api/scraper-simple/"+preview.path, nil,
			preview.body, nil))
	}
	id, err := g.PutScraper(g.T.Context(),
		suite.Scraper{GroupRef: group, Scraper: model.Scraper{Name: "sample " + suite.NewKey(),
			Type: model.MultipleProducts, ItemsConfig: g.fields,
			SourceConfig: model.SourceConfig{URL: url}}})
	if err == nil {
		err = g.Call(g.T.Context(), "GET", "/api/scraper/"+id+"/get-sample-data", nil, nil, nil)
	}
	g.tried(err)
}

// tried counts a call; if it fails, its error must have a code.
func (g *productGuard) tried(err error) {
	g.T.Helper()
	switch {
	case err == nil:
		g.launched++
	case suite.CodeOf(err) == "":
		g.T.Error(err)
	default:
		g.refused++
	}
}

// productGuard launches runs where that is allowed.
type productGuard struct {
	*suite.Service
	fields            []model.Field
	runs              []suite.Launched
	launched, refused int
}

// try makes a list run, which may be refused.
func (g *productGuard) try(urls []string, pagination *model.Pagination) {
	g.T.Helper()
	order := suite.Order{Order: api.Order{Who: g.Client, URLs: urls, Kind: model.MultipleProducts,
		Fields: g.fields}}
	if pagination != nil {
		order.Pagination = *pagination
	}
	query := suite.Must(order.Query(g.T.Context()))(g.T)
	run, err := g.RunList(g.T.Context(), query, order.Body())
	g.note(run, err)
}

// scraper saves and runs a scraper of one source, which may be refused.
func (g *productGuard) scraper(source model.SourceConfig) {
	g.T.Helper()
	name := "scraper " + suite.NewKey()
	group := suite.Must(g.PutGroup(g.T.Context(), name))(g.T)
	id, err := g.PutScraper(g.T.Context(),
		suite.Scraper{GroupRef: group, Scraper: model.Scraper{Name: name,
			Type: model.MultipleProducts, ItemsConfig: g.fields, SourceConfig: source}})
	if err != nil {
		g.refused++
		return
	}
	run, err := g.RunScraper(g.T.Context(), id)
	g.note(run, err)
}

func (g *productGuard) note(run suite.Launched, err error) {
	if err != nil {
		g.refused++
		return
	}
	g.launched++
	g.runs = append(g.runs, run)
}

// wait returns once all runs have ended.
func (g *productGuard) wait() {
	g.T.Helper()
	for _, run := range g.runs {
		job, _, err := g.Finished(suite.Within(g.T, suite.Patience), run)
		if err != nil {
			g.T.Fatal(err)
		}
		if job.State != string(model.Completed) && job.State != string(model.Failed) {
			g.T.Errorf("run %s is %s", run.JobID, job.State)
		}
	}
}
