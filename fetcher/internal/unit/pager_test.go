package unit

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/model"
)

func intp(n int) *int { return &n }

// TestPagers checks the addresses of a chain by each type of pagination.
func TestPagers(t *testing.T) {
	for _, c := range []struct {
		name         string
		p            model.Pagination
		curl         string
		start        string
		link, cursor string
		want         string // for pages 1, 2 and 9999
	}{
		{"page", model.Pagination{Type: model.URLPageParam, Param: "p"}, "", "http://a.test/?q=1",
			"", "",
			"http://a.test/?q=1&p=2 http://a.test/?q=1&p=3 http://a.test/?q=1&p=10000"},
		{"page from 0 by 10", model.Pagination{Type: model.URLPageParam, Param: "p", Start: intp(0),
			Step: intp(10)}, "",
			"http://a.test/?p=0", "", "", "http://a.test/?p=10 http://a.test/?p=20 " +
				"http://a.test/?p=99990"},
		{"page of the address",
			model.Pagination{Type: model.URLPageParam, Param: "p", Step: intp(2)}, "",
			"http://a.test/?p=0&q", "", "",
			"http://a.test/?p=2&q http://a.test/?p=4&q http://a.test/?p=19998&q"},
		{"page of the address, another told",
			model.Pagination{Type: model.URLPageParam, Param: "p", Start: intp(5)}, "",
			"http://a.test/?p=0", "", "", "http://a.test/?p=6 http://a.test/?p=7 " +
				"http://a.test/?p=10004"},
		{"page that is none", model.Pagination{Type: model.URLPageParam, Param: "p"}, "",
			"http://a.test/?p=x", "", "",
			"http://a.test/?p=2 http://a.test/?p=3 http://a.test/?p=10000"},
		{"page in the body", model.Pagination{Type: model.URLPageParam, Param: "p"},
			`curl http://a.test/ --json '{"p":0}'`, "http://a.test/", "", "",
			"http://a.test/?p=1 http://a.test/?p=2 http://a.test/?p=9999"},
		{"offset", model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: intp(24)}, "",
			"http://a.test/", "", "",
			"http://a.test/?o=24 http://a.test/?o=48 http://a.test/?o=239976"},
		{"offset of the address",
			model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: intp(24)}, "",
			"http://a.test/?o=100&x", "", "", "http://a.test/?o=124&x http://a.test/?o=148&x " +
				"http://a.test/?o=240076&x"},
		{"offset that is none",
			model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: intp(1)}, "",
			"http://a.test/?o=-5", "", "", "http://a.test/?o=1 http://a.test/?o=2 " +
				"http://a.test/?o=9999"},
		{"offset beyond reason",
			model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: intp(1)},
			`curl http://a.test/ --json '{"o":99999999999999999999}'`, "http://a.test/", "", "",
			"http://a.test/?o=1 http://a.test/?o=2 http://a.test/?o=9999"},
		{"offset in the body",
			model.Pagination{Type: model.OffsetParam, Param: "o", PageSize: intp(5)},
			`curl http://a.test/ --json '{"o":10}'`, "http://a.test/", "", "",
			"http://a.test/?o=15 http://a.test/?o=20 http://a.test/?o=50005"},
		{"template", model.Pagination{Type: model.URLTemplate,
			Template: "/list/{page}/{page}.html"}, "", "http://a.test/list/?x=1", "", "",
			"http://a.test/list/2/2.html http://a.test/list/3/3.html " +
				"http://a.test/list/10000/10000.html"},
		{"whole template", model.Pagination{Type: model.URLTemplate,
			Template: "https://b.test/?p={page}#x"}, "", "http://a.test/", "", "",
			"https://b.test/?p=2 https://b.test/?p=3 https://b.test/?p=10000"},
		{"link", model.Pagination{Type: model.NextLink}, "", "http://a.test/", "http://a.test/2",
			"",
			"http://a.test/2 http://a.test/2 http://a.test/2"},
		{"no link", model.Pagination{Type: model.NextLink}, "", "http://a.test/", "", "x", "  "},
		{"cursor", model.Pagination{Type: model.JSONCursor, Param: "after[id]"}, "",
			"http://a.test/?after%5Bid%5D=0", "", "a/b&c=",
			strings.TrimSpace(strings.Repeat("http://a.test/?after%5Bid%5D=a%2Fb%26c%3D ", 3))},
		{"no cursor", model.Pagination{Type: model.JSONCursor, Param: "c"}, "", "http://a.test/",
			"http://a.test/2", "", "  "},
		{"a cursor beyond an address", model.Pagination{Type: model.JSONCursor, Param: "c"}, "",
			"http://a.test/", "",
			strings.Repeat("x", address.Longest+1), "  "},
	} {
		var source *curl.Request
		if c.curl != "" {
			source, _ = curl.Parse(c.curl)
		}
		var got []string
		for _, page := range []uint32{1, 2, 9999} {
			got = append(got, newPager(&c.p, source).next(c.start, page, c.link, c.cursor))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: addresses are %q, want %q", c.name, got, c.want)
		}
	}
	for _, p := range []*model.Pagination{nil, {Type: model.PaginationNone}, {Type: model.LoadMore},
		{Type: model.InfiniteScroll}} {
		if newPager(p, nil) != nil || p.MaxPages() != 1 {
			t.Errorf("%+v makes a chain of %d pages", p, p.MaxPages())
		}
	}
}

// A JSON pointer names a nested member. The cursor passes from page to page.
func TestCursorInTheBody(t *testing.T) {
	source, err := curl.Parse(`curl http://a.test/graphql --json '{"variables":{"after":null}}'`)
	if err != nil {
		t.Fatal(err)
	}
	p := &model.Pagination{Type: model.JSONCursor, Param: "/variables/after"}
	r := &recipe{curl: source, pager: newPager(p, source), bodyParam: p.Param}
	if _, inBody := bodyParam(p, source); !inBody {
		t.Fatal("the parameter is not found in the body")
	}
	at := "http://a.test/graphql"
	for _, cursor := range []string{"Y3Vyc29yOjE=", `"&`} {
		page := r.pager.next("http://a.test/graphql", 1, "", cursor)
		if page == at {
			t.Errorf("the page after %s has the same address", at)
		}
		at = page
		on := Turn{Chain: &Chain{fetch: fetchState{at: at}}, recipe: r}
		asked, as := on.target()
		if want := fmt.Sprintf(`{"variables":{"after":%q}}`,
			cursor); asked != "http://a.test/graphql" || string(as.Body) != want {
			t.Errorf("%s is asked for as %s %s, want %s", page, asked, as.Body, want)
		}
	}
	if string(source.Body) != `{"variables":{"after":null}}` {
		t.Errorf("the command has become %s", source.Body)
	}
}

func TestWithoutParam(t *testing.T) {
	for address, want := range map[string]string{
		"http://a.test/?p=1":           "http://a.test/",
		"http://a.test/?a&p=1&b=2&p=3": "http://a.test/?a&b=2",
		"http://a.test/":               "http://a.test/",
		"http://a.test/?pp=1&&":        "http://a.test/?pp=1&&",
		"http://a.test/?%70=1&x":       "http://a.test/?x",
	} {
		if got := withoutParam(address, "p"); got != want {
			t.Errorf("%s becomes %s, want %s", address, got, want)
		}
	}
}

func TestWithParam(t *testing.T) {
	for _, c := range []struct{ url, param, want string }{
		{"http://a.test/", "p", "http://a.test/?p=2"},
		{"http://a.test/?q=a%2fb&x", "p", "http://a.test/?q=a%2fb&x&p=2"},
		{"http://a.test/?p=1&q=2", "p", "http://a.test/?p=2&q=2"},
		{"http://a.test/?p=1&p=9", "p", "http://a.test/?p=2"},
		{"http://a.test/?pp=1", "p", "http://a.test/?pp=1&p=2"},
		{"http://a.test/", "a&b", "http://a.test/?a%26b=2"},
	} {
		if got := withParam(c.url, c.param, "2"); got != c.want {
			t.Errorf("withParam(%q, %q) = %q, want %q", c.url, c.param, got, c.want)
		}
	}
}

func pace(rate float64, connections int) frontier.Pace {
	return frontier.Pace{Rate: rate, Connections: connections}
}

// A scraper's pace applies up to the operator's ceiling.
func TestPaces(t *testing.T) {
	config := Config{Pace: pace(1, 2), MaxPace: pace(5, 4)}
	for _, c := range []struct{ asked, want frontier.Pace }{
		{pace(0, 0), pace(1, 2)}, {pace(0.1, 1), pace(0.1, 1)}, {pace(100, 100), pace(5, 4)},
		{pace(3, 0), pace(3, 2)}, {pace(1e-12, 0), pace(1.0/30, 2)},
	} {
		if got := config.paceFor(c.asked); got != c.want {
			t.Errorf("asked for %+v a scraper gets %+v, want %+v", c.asked, got, c.want)
		}
	}
}
