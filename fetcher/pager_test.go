package fetcher

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// The page parameter of a curl command stays where the command has it: in the address or the body.
// Otherwise it is added to the address. Even if it is in the body, the page's address shows it.
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
					r.web.at(address, note)
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

// A cursor on a page leads to the next page, until there is none or it repeats.
func TestCursorChain(t *testing.T) {
	for name, c := range map[string]struct {
		last string // the last page's cursor
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
					r.web.at(address, func(_ context.Context, req web.Request) (*web.Page,
						error) {
						answer := r.web.html(req.URL, body)
						answer.ContentType = "application/json"
						return answer, nil
					})
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

// countedList is a list of 47 things on pages of 10. Each page begins with the thing of that number
// and links to some pages by their first thing. base is the number of the first thing.
type countedList struct {
	base  int
	links []int // page numbers
}

func (l countedList) page(first int) string {
	body := "<h1>All things</h1><ul>"
	for n := first; n < min(first+10, 47+l.base); n++ {
		body += fmt.Sprintf(`<li class="item"><a href="/thing/%d-x">Thing of kind %d with words</a>`+
			`<p>What it is %d</p></li>`, n, n, n)
	}
	body += `</ul><p class="pages">`
	for _, page := range l.links {
		body += fmt.Sprintf(`<a href="/list?first=%d">%d</a> `, l.base+10*(page-1), page)
	}
	return body + "</p>"
}

// The pagination proposed for a list that counts its items in the address reads each item once,
// from 0 or from 1.
func TestProposedCounting(t *testing.T) {
	for name, list := range map[string]countedList{
		"from 0":                    {0, []int{1, 2, 3}},
		"from 1":                    {1, []int{1, 2, 3}},
		"from 1, without the first": {1, []int{2, 3}},
		"from 1, with the last":     {1, []int{2, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			const url = "http://a.test/list"
			detector, err := extract.Compile(model.Recipe{Type: model.Detection})
			if err != nil {
				t.Fatal(err)
			}
			found, err := detector.Extract(extract.Page{URL: url, ContentType: "text/html",
				Body: []byte(list.page(list.base))})
			if err != nil || len(found.Rows) == 0 {
				t.Fatalf("%d proposals, %v", len(found.Rows), err)
			}
			var first extract.Proposal
			if err := json.Unmarshal(found.Rows[0], &first); err != nil {
				t.Fatal(err)
			}
			bubble(t, func(t *testing.T) {
				r, stop := start(t, 1, first.Scraper.Recipe(), nil)
				defer stop()
				r.web.page(url, list.page(list.base))
				for n := range 100 {
					r.web.page(fmt.Sprintf("%s?first=%d", url, n), list.page(n))
				}
				r.send(r.task(0, url))
				next := list.base
				for _, p := range r.pages(6) {
					for _, line := range p.Rows {
						want := fmt.Sprintf("Thing of kind %d with words", next)
						if !strings.Contains(string(line), want) {
							t.Errorf("%s has %s, want %s", p.URL, line, want)
						}
						next++
					}
				}
				if read := next - list.base; read != 47 {
					t.Errorf("%d rows of 47", read)
				}
			})
		})
	}
}
