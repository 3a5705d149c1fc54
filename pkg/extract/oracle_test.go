package extract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/asgoquery"
)

// oracleRows makes a page's rows with x/net/html and cascadia, applying decision 36 literally.
func oracleRows(t testing.TB, r model.Recipe, page string) []string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	matches := make([][]*html.Node, len(r.Fields))
	for i, f := range r.Fields {
		group, err := cascadia.ParseGroup(f.Selector)
		if err != nil {
			t.Fatal(err)
		}
		matches[i] = cascadia.QueryAll(root, group)
	}
	if r.Type == model.SingleProduct {
		for i := range matches {
			matches[i] = append(matches[i], nil)[:1]
		}
		return oracleLines(r, matches, 1)
	}
	if found, ok := oracleItems(matches); ok {
		matches = found
	}
	return oracleLines(r, matches, len(matches[0]))
}

// oracleItems finds the first match of each field in each item.
func oracleItems(matches [][]*html.Node) (found [][]*html.Node, ok bool) {
	holds := func(n *html.Node, all []*html.Node) (held []*html.Node) {
		for _, m := range all {
			for p := m; p != nil; p = p.Parent {
				if p == n {
					held = append(held, m)
				}
			}
		}
		return held
	}
	found = make([][]*html.Node, len(matches))
	some := len(matches) == 1
	for _, match := range matches[0] {
		if len(holds(match, matches[0])) != 1 {
			return nil, false
		}
		item := match
		for p := match.Parent; p != nil && p.Type == html.ElementNode &&
			len(holds(p, matches[0])) == 1; p = p.Parent {
			item = p
		}
		for i := range matches {
			held := append(holds(item, matches[i]), nil)
			some = some || i > 0 && held[0] != nil
			found[i] = append(found[i], held[0])
		}
	}
	return found, some
}

func oracleLines(r model.Recipe, matches [][]*html.Node, n int) []string {
	lines := []string{}
	for row := range n {
		var members []string
		filled := false
		for i, f := range r.Fields {
			var node *html.Node
			if row < len(matches[i]) {
				node = matches[i][row]
			}
			value := "null"
			switch {
			case f.Kind == model.Exists:
				value = fmt.Sprint(node != nil)
			case node == nil:
			case f.Kind == model.Text:
				value = jsonString(asgoquery.Text(node))
			default:
				for _, a := range node.Attr {
					if a.Key == f.Attr {
						value = jsonString(a.Val)
					}
				}
			}
			filled = filled || value != "null" && value != "false"
			members = append(members, jsonString(f.Name)+":"+value)
		}
		if filled {
			lines = append(lines, "{"+strings.Join(members, ",")+"}")
		}
	}
	return lines
}

func jsonString(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// a string always encodes; each byte that is not UTF-8 becomes U+FFFD
	_ = enc.Encode(string([]rune(s)))
	return strings.TrimSuffix(b.String(), "\n")
}

// TestRowsAreTheOracles compares the rows of random pages and recipes with the oracle's.
func TestRowsAreTheOracles(t *testing.T) {
	pieces := []string{"x", " y ", "&amp;", "<p>", "</p>", "<div>", "<div class=c>", "</div>",
		"<ul>", "<li>",
		"<li class=c>", "</ul>", "<a href='/x?a=1&amp;b=2'>", "</a>", "<b>", "</b>",
		"<i class='c d'>", "</i>", "<table>", "<tr>", "<td>",
		"</table>", "<script>a<b</script>", "<img src=i.png>", "<span id=s>", "</span>",
		"<!-- c -->", "</body>"}
	selectors := []string{"p", "div", "li", "a", "b", "i", ".c", ".d", "td", "ul > li", "div p",
		"li a", "img", "#s",
		"[href]", "p:first-child", "li:nth-child(2)", "div:not(.c)", "li + li", "p ~ b", "html",
		"tr td:last-child", "li b, td b"}
	kinds := []string{"TEXT", "TEXT", "EXISTS", "@href", "@class", "@src"}
	rapid.Check(t, func(rt *rapid.T) {
		page := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(rt, "page"), "")
		var fields []string
		for i := range rapid.IntRange(1, 4).Draw(rt, "fields") {
			fields = append(fields,
				fmt.Sprintf("f%d %s %s", i, rapid.SampledFrom(kinds).Draw(rt, "kind"),
					rapid.SampledFrom(selectors).Draw(rt, "selector")))
		}
		r := recipe(rapid.SampledFrom([]model.ScraperType{model.SingleProduct,
			model.MultipleProducts}).Draw(rt, "type"),
			fields...)
		got, want := extract(t, r, page), oracleRows(t, r, page)
		if !slices.Equal(got, want) {
			rt.Fatalf("%s %v of %q\n got %v\nwant %v", r.Type, fields, page, got, want)
		}
	})
}

func FuzzExtract(f *testing.F) {
	f.Add("<ul><li><a href=1>x</a><li><a>y</a></ul>", "a", "li", true)
	f.Add("<h1>x</h1>", "h1.title:nth-child(2n+1)", "[a='b' i]:not(:has(p > i))", false)
	f.Fuzz(func(t *testing.T, page, first, second string, multiple bool) {
		r := recipe(model.SingleProduct, "a TEXT "+first, "b @class "+second)
		if multiple {
			r.Type = model.MultipleProducts
		}
		r.Pagination = &model.Pagination{Type: model.NextLink, Selector: second}
		e, err := Compile(r)
		if err != nil {
			return
		}
		got, err := e.Extract(Page{URL: "http://shop.test/", ContentType: "text/html",
			Body: []byte(page)})
		if err != nil {
			return
		}
		for _, row := range got.Rows {
			if !json.Valid(row) || len(row) > MaxRowBytes {
				t.Fatalf("row %q", row)
			}
		}
	})
}
