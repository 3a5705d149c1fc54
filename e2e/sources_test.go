package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
)

// Chains of the sources' web are long enough to take two dispatches each.
const (
	chainPages = 14
	pageItems  = 3
)

// origin is a web whose sites are read in every way that a scraper supports. Each has one chain of
// pages, whose form depends on the way. renew changes its tokens and builds.
type origin struct {
	*httptest.Server
	mu       sync.Mutex
	release  int
	requests map[string]int // by site and page number, answered with a page
	faults   []string
}

func newOrigin(t *testing.T) *origin {
	o := &origin{requests: map[string]int{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

// renew invalidates all tokens and builds so far.
func (o *origin) renew() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release++
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a truncated body counts as a fault below
	site, _, _ := strings.Cut(r.Host, ".")
	o.mu.Lock()
	token, build := fmt.Sprintf("token-%d", o.release), fmt.Sprintf("build-%d", o.release)
	if text := fmt.Sprint(r.URL, r.Header, string(body)); strings.Contains(text, "{{") ||
		strings.Contains(text, "%7B%7B") {
		o.faults = append(o.faults, "a placeholder has come: "+text)
	}
	o.mu.Unlock()
	switch r.URL.Path {
	case "/robots.txt":
		w.WriteHeader(http.StatusNotFound)
		return
	case "/":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w,
			`<html><head><meta name="api-token" content="%s"></head><body><script id="__NEXT_DATA__" type="application/json">`+
				`{"buildId":"%s"}</script></body></html>`, token, build)
		return
	}
	page, next, isJSON := pageOf(site, r, string(body), token, build)
	if page < 1 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	select {
	case <-time.After(50 * time.Millisecond): // so that kills hit pages in flight
	case <-r.Context().Done():
	}
	o.mu.Lock()
	o.requests[fmt.Sprint(site, " ", page)]++
	o.mu.Unlock()
	write(w, site, page, next, isJSON)
}

// pageOf returns the number of the requested page, 0 for none, and how its answer names the next
// one.
func pageOf(site string, r *http.Request, body, token, build string) (page int, next string,
	isJSON bool) {
	query := r.URL.Query()
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	after := func(cursor string) int { return number(strings.TrimPrefix(cursor, "after:")) + 1 }
	switch site {
	case "param":
		page = number(cmp.Or(query.Get("page"), "1"))
	case "offset":
		page = number(query.Get("offset"))/pageItems + 1
	case "template":
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/list"), ".html")
		page = number(cmp.Or(strings.TrimPrefix(name, "-"), "1"))
	case "link":
		page = number(cmp.Or(query.Get("at"), "1"))
		next = fmt.Sprintf("/list?at=%d", page+1)
	case "cursor":
		page, isJSON = after(query.Get("cursor")), true
		next = fmt.Sprintf("after:%d", page)
	case "graph":
		var asked struct{ Variables struct{ After *string } }
		if r.Method != "POST" || json.Unmarshal([]byte(body), &asked) != nil ||
			r.Header.Get("Cookie") != "session=s1; theme=dark" {
			return 0, "", false
		}
		page, isJSON = 1, true
		if asked.Variables.After != nil {
			page = after(*asked.Variables.After)
		}
		next = fmt.Sprintf("after:%d", page)
	case "form":
		form, err := url.ParseQuery(body)
		if r.Method != "PUT" || err != nil || form.Get("q") != "a&b" {
			return 0, "", false
		}
		page, isJSON = number(form.Get("from"))/pageItems+1, true
	case "token":
		if r.Header.Get("X-Token") == token {
			page, isJSON = number(query.Get("page")), true
		}
	case "build":
		if strings.HasPrefix(r.URL.Path, "/_next/data/"+build+"/") {
			page, isJSON = number(query.Get("page")), true
		}
	}
	return page, next, isJSON
}

func write(w http.ResponseWriter, site string, page int, next string, isJSON bool) {
	var names []string // none after the last page
	for n := 0; n < pageItems && page <= chainPages; n++ {
		names = append(names, itemName(site, page, n))
	}
	if !isJSON {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><ul>")
		for _, name := range names {
			fmt.Fprintf(w, "<li><b class=name>%s</b></li>", name)
		}
		if next != "" && page < chainPages {
			fmt.Fprintf(w, `</ul><a rel=next href="%s">more</a>`, next)
		}
		return
	}
	answer := map[string]any{"items": []any{}, "next": nil}
	for _, name := range names {
		answer["items"] = append(answer["items"].([]any), map[string]any{"name": name})
	}
	if page < chainPages {
		answer["next"] = next
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may have died
}

func itemName(site string, page, n int) string { return fmt.Sprintf("%s %d/%d", site, page, n) }

// sources has a scraper for each way.
func sources() map[string]model.SourceConfig {
	three := pageItems
	paged := func(p model.Pagination) *model.Pagination { return &p }
	return map[string]model.SourceConfig{
		"param": {URL: "http://param.example/list?q=1",
			Pagination: paged(model.Pagination{Type: model.URLPageParam, Param: "page"})},
		"offset": {URL: "http://offset.example/list",
			Pagination: paged(model.Pagination{Type: model.OffsetParam, Param: "offset",
				PageSize: &three})},
		"template": {URL: "http://template.example/list.html",
			Pagination: paged(model.Pagination{Type: model.URLTemplate,
				Template: "/list-{page}.html"})},
		"link": {URL: "http://link.example/list",
			Pagination: paged(model.Pagination{Type: model.NextLink, Selector: "a[rel=next]"})},
		"cursor": {Curl: "curl 'http://cursor.example/api' --compressed -H 'User-Agent: " +
			"Mozilla/5.0'",
			Pagination: paged(model.Pagination{Type: model.JSONCursor, Param: "cursor",
				CursorPath: "$.next"})},
		"graph": {Curl: "curl 'http://graph.example/graphql' \\\n  -X 'POST' \\\n  -H " +
			"'content-type: application/json' \\\n" +
			"  -b 'session=s1; theme=dark' \\\n  --data-raw $'{\"query\":\"query { items " +
			"}\\u0021\",\"variables\":{\"first\":3,\"after\":null}}'",
			Pagination: paged(model.Pagination{Type: model.JSONCursor, Param: "/variables/after",
				CursorPath: "$.next"})},
		"form": {Curl: "curl ^\"http://form.example/search^\" ^\r\n  -X ^\"PUT^\" ^\r\n  " +
			"--data-raw ^\"q=a^%^26b^&from=0^\"",
			Pagination: paged(model.Pagination{Type: model.OffsetParam, Param: "from",
				PageSize: &three})},
		"token": {Curl: "curl 'http://token.example/api?page=1' -H 'X-Token: {{TOKEN}}'",
			Pagination: paged(model.Pagination{Type: model.URLPageParam, Param: "page"}),
			Prelaunch: &model.Prelaunch{DiscoveryURL: "http://token.example/",
				Tokens: []model.TokenRule{{Name: "TOKEN", Source: "META",
					Expression: "api-token"}}}},
		"build": {Curl: "curl 'http://build.example/_next/data/build-old/list.json?page=1'",
			Pagination: paged(model.Pagination{Type: model.URLPageParam, Param: "page"})},
	}
}

// TestSourcesSurviveKills reads a chain in every way at once. It is killed twice in the middle, and
// finds other tokens and builds after each death. Every page still has its rows once and is charged
// once, and no placeholder is sent.
func TestSourcesSurviveKills(t *testing.T) {
	t.Parallel()
	web := newOrigin(t)
	args := []string{"--no-rate-limits", "--host-rate", "2", "--max-host-rate", "2", "--chromium",
		"none",
		"--egress-origin", "*.example=" + web.Listener.Addr().String()}
	s := &service{single: newSingle(t, args)}
	s.Service = &suite.Service{T: t, Product: s.single, Args: args}
	s.start()
	s.Fill(s.Client, suite.Plenty)
	group := suite.Must(s.PutGroup(t.Context(), "sources"))(t)
	runs := map[string]suite.Launched{}
	for name, source := range sources() {
		fields := []model.Field{{Name: "name", Selector: "li .name", Kind: model.Text}}
		if source.Curl != "" {
			fields[0].Selector = "$.items[*].name"
		}
		id := suite.Must(s.PutScraper(t.Context(),
			suite.Scraper{GroupRef: group, Scraper: model.Scraper{Name: name,
				Type: model.MultipleProducts, ItemsConfig: fields, SourceConfig: source}}))(t)
		runs[name] = suite.Must(s.RunScraper(t.Context(), id))(t)
	}
	for _, pages := range []int64{3, 8} {
		suite.Begun(t, s.Client, runs["token"], pages)
		s.kill()
		web.renew()
		s.start()
	}
	for name, run := range runs {
		reported := suite.Must(s.Report(suite.Within(t, suite.Patience), run))(t)
		var got, want []string
		for _, row := range reported.Rows {
			got = append(got, fmt.Sprint(row["name"]))
		}
		for page := 1; page <= chainPages; page++ {
			for n := range pageItems {
				want = append(want, itemName(name, page, n))
			}
			if n := web.requests[fmt.Sprint(name, " ", page)]; n < 1 || n > 3 {
				t.Errorf("%s: page %d was answered %d times", name, page, n)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows are %q", name, got)
		}
		var pages int64
		for _, line := range reported.Entry.Lines {
			pages += line.Pages + line.FreePages
		}
		if reported.Job.State != "COMPLETED" || pages != chainPages || len(reported.Errors) > 0 {
			t.Errorf("%s: %d pages are charged, job %+v, errors %v", name, pages, reported.Job,
				reported.Errors)
		}
	}
	for _, fault := range web.faults {
		t.Error(fault)
	}
	suite.CheckWallet(t, s.Client)
	s.CheckBooks()
}
