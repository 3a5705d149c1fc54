package fetcher

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/model"
)

func intp(n int) *int { return &n }

// The addresses of a chain by each type of pagination.
func TestPagers(t *testing.T) {
	for _, c := range []struct {
		name         string
		p            model.Pagination
		curl         string
		start        string
		link, cursor string
		want         string // of pages 1, 2 and 9999
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

// The page parameter of a curl command stands where the command has it: in the address, else in the
// body, else it is added to the address. Where it is in the body, the page's address shows it all
// the same.
func TestPageParamOfCurl(t *testing.T) {
	for name, c := range map[string]struct{ command, second string }{
		"in the address": {"curl 'http://a.test/api?p=1&q=2' -d p=1",
			`POST "p=1" http://a.test/api?p=2&q=2`},
		"in a form": {"curl 'http://a.test/api?q=2' -d 'x=1&p=1'",
			`POST "x=1&p=2" http://a.test/api?q=2`},
		"in JSON": {`curl http://a.test/api --json '{"p":1}'`,
			`POST "{\"p\":2}" http://a.test/api`},
		"in none": {`curl http://a.test/api --json '{"q":1}'`,
			`POST "{\"q\":1}" http://a.test/api?p=2`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := model.Pagination{Type: model.URLPageParam, Param: "p", Max: intp(2)}
				r, stop := start(t, 1, curlRecipe(c.command, &p), nil)
				defer stop()
				source, err := curl.Parse(c.command)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				note := r.web.note(&got)
				_, second, _ := strings.Cut(c.second, " http")
				for _, address := range []string{source.URL, "http" + second} {
					r.web.answers[address] = note
				}
				r.send(r.task(0, source.URL))
				pages := r.pages(2)
				if pages[1].URL == pages[0].URL || pages[1].URLHash == pages[0].URLHash ||
					pages[0].Next == nil {
					t.Errorf("pages are %s and %s", pages[0].URL, pages[1].URL)
				}
				short := strings.NewReplacer(" Accept=*/*", "",
					" Content-Type=application/x-www-form-urlencoded", "",
					" Content-Type=application/json", "", " Accept=application/json", "")
				if len(got) != 2 || short.Replace(got[1]) != c.second {
					t.Errorf("requests are %q, want the second to be %s", got, c.second)
				}
			})
		})
	}
}

// A JSON pointer names a member further down; the cursor goes from page to page.
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
		c := &chain{fetch: fetchState{at: at}}
		asked, as := c.request(r)
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

// A cursor on a page leads to the next one, until there is none or it comes again.
func TestCursorChain(t *testing.T) {
	for name, c := range map[string]struct {
		last string // what the last page has as cursor
		want []string
	}{
		"no cursor":      {`null`, []string{"0 delivered", "1 delivered", "2 delivered last"}},
		"a cursor again": {`"2"`, []string{"0 delivered", "1 delivered", "2 delivered last"}},
		"another, no rows": {`"3"`,
			[]string{"0 delivered", "1 delivered", "2 delivered", "3 empty last"}},
		"a number, no rows": {`3`,
			[]string{"0 delivered", "1 delivered", "2 delivered", "3 empty last"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				recipe := model.Recipe{Type: model.MultipleProducts, Curl: "curl http://a.test/api",
					Fields: []model.Field{{Name: "a", Selector: "$.items[*].a",
						Kind: model.Text}},
					Pagination: &model.Pagination{Type: model.JSONCursor, Param: "c",
						CursorPath: "$.next"}}
				r, stop := start(t, 1, recipe, nil)
				defer stop()
				for address, body := range map[string]string{
					"http://a.test/api":     `{"items":[{"a":"0"}],"next":"1"}`,
					"http://a.test/api?c=1": `{"items":[{"a":"1"}],"next":2}`,
					"http://a.test/api?c=2": `{"items":[{"a":"2"}],"next":` + c.last + `}`,
					"http://a.test/api?c=3": `{"items":[],"next":"4"}`,
				} {
					r.web.answers[address] = func(_ context.Context, req web.Request) (*web.Page,
						error) {
						answer := r.web.html(req.URL, body)
						answer.ContentType = "application/json"
						return answer, nil
					}
				}
				r.send(r.task(0, "http://a.test/api"))
				for i, p := range r.pages(len(c.want)) {
					if got := shorthand(p); got != c.want[i] {
						t.Errorf("page %d is %q, want %q", i, got, c.want[i])
					}
				}
				r.nothingMore()
			})
		})
	}
}
