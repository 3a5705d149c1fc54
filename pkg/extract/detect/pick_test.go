package detect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// viewOf returns a page as it is stored.
func viewOf(t *testing.T, page string) *View {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	v, err := newView(root, "https://shop.test/list")
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

func markupOf(t *testing.T, v *View) string {
	t.Helper()
	markup, err := v.Markup()
	if err != nil {
		t.Fatal(err)
	}
	return string(markup)
}

func shown(t *testing.T, page string) *Showing {
	t.Helper()
	s, err := Show(viewOf(t, page))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// number returns the number of the element around a text.
func (s *Showing) number(t *testing.T, text string) int {
	t.Helper()
	for _, n := range s.Nodes {
		if n.Name == "" && strings.TrimSpace(n.Text) == text {
			return n.In
		}
	}
	t.Fatalf("%q is not shown", text)
	return 0
}

func (s *Showing) matched(t *testing.T, kind model.ScraperType, fields []model.Field) [][]int {
	t.Helper()
	all, err := s.Matches(t.Context(), kind, fields)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const goods = `<!doctype html><head><title>x</title><script>var a = "<li>"</script></head>
<nav><ul><li><a href="/a">Home</a><li><a href="/b">Shop</a></ul></nav>
<!-- a remark --><style>li { color: red }</style><ul class="goods">
<li class="good"><a href="/1"><h3>Blue one</h3></a><img src="/1.png" alt="Blue"><b class="price">€1.50</b><span>5 left</span><span>new</span></li>
<li class="good"><a href="/2"><h3>Red one</h3></a><b class="price">€2.50</b><span>6 left</span><span>old</span></li>
<li class="good"><a href="/3"><h3>Green one</h3></a><img src="/3.png"><b class="price">€3.50</b><span>7 left</span></li></ul>
<p id="foot">3 of 30</p>`

// A pick matches all similar elements; later picks are found in each row.
func TestPicks(t *testing.T) {
	s := shown(t, goods)
	var fields []model.Field
	for _, c := range []struct {
		text, name, selector string
		found                int
	}{
		{"Red one", "title", "h3", 3},
		{"€2.50", "price", ".price", 3},
		{"6 left", "field", "span", 3},
		{"old", "field2", "span:nth-of-type(2)", 2},
	} {
		f, choices, err := s.Pick(t.Context(), model.MultipleProducts, fields,
			s.number(t, c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if f.Name != c.name || !strings.Contains(f.Selector, c.selector) || f.Kind != model.Text ||
			choices[0].Value != c.text {
			t.Errorf("%s: %+v, %+v", c.text, f, choices)
		}
		fields = append(fields, f)
		all := s.matched(t, model.MultipleProducts, fields)
		if found := all[len(fields)-1]; len(found) != c.found ||
			!slices.Contains(found, s.number(t, c.text)) {
			t.Errorf("%s: %q finds %v", c.text, f.Selector, found)
		}
	}
	image := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Name == "img" })
	f, choices, err := s.Pick(t.Context(), model.MultipleProducts, fields, image)
	if err != nil || f.Kind != model.Attr || f.Attr != "src" || f.Name != "image" ||
		len(s.matched(t, model.MultipleProducts, append(fields, f))[4]) != 2 || len(choices) != 2 {
		t.Errorf("the image: %+v, %+v, %v", f, choices, err)
	}
	f, _, err = s.Pick(t.Context(), model.SingleProduct, nil, s.number(t, "3 of 30"))
	if err != nil || len(s.matched(t, model.SingleProduct, []model.Field{f})[0]) != 1 {
		t.Errorf("the foot: %+v, %v", f, err)
	}
}

func TestPicksAreRefused(t *testing.T) {
	s := shown(t, goods)
	title := model.Field{Name: "title", Selector: ".good h3", Kind: model.Text}
	for name, c := range map[string]struct {
		fields  []model.Field
		element int
	}{
		"none":           {nil, -1},
		"beyond":         {nil, len(s.Nodes)},
		"a text":         {nil, s.number(t, "Red one") + 1},
		"outside":        {[]model.Field{title}, s.number(t, "3 of 30")},
		"no rows":        {[]model.Field{{Selector: ".missing"}}, s.number(t, "€2.50")},
		"no CSS":         {[]model.Field{{Selector: "//h3"}}, s.number(t, "€2.50")},
		"rows overlap":   {[]model.Field{{Selector: "li, h3"}}, s.number(t, "€2.50")},
		"not understood": {[]model.Field{{Selector: "((("}}, s.number(t, "€2.50")},
	} {
		_, _, err := s.Pick(t.Context(), model.MultipleProducts, c.fields, c.element)
		if fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// leaving is a context that ends once Err has been called twice.
type leaving struct {
	context.Context
	asked int
}

func (l *leaving) Err() error {
	if l.asked++; l.asked > 2 {
		return context.Canceled
	}
	return nil
}

// A caller's selectors are paid from the steps of the page, and end with the caller. That holds for
// the first field's, which makes the rows, and for those of the fields after it.
func TestCostlySelectorsInPicks(t *testing.T) {
	slow := strings.Repeat("a{0,999}", 3) + "z"
	for selector, page := range map[string]string{
		"p:matches(" + slow + ")":    "<p>" + strings.Repeat("a", 400_000),
		":has(:has(:has(:has(.y))))": strings.Repeat("<div class=x>a", 400),
	} {
		fields := []model.Field{{Name: "a", Selector: selector, Kind: model.Text}}
		if _, err := rows.CompileSelector("a", selector, new(pattern.Total)); err != nil {
			t.Fatal(err)
		}
		for name, ask := range map[string]func(context.Context, *Showing) error{
			"pick": func(ctx context.Context, s *Showing) error {
				_, _, err := s.Pick(ctx, model.MultipleProducts, fields, len(s.Nodes)-2)
				return err
			},
			"matches": func(ctx context.Context, s *Showing) error {
				_, err := s.Matches(ctx, model.MultipleProducts,
					append([]model.Field{{Selector: "div"}}, fields...))
				return err
			},
		} {
			if err := ask(t.Context(), shown(t, page)); fault.CodeOf(err) != fault.PageTooCostly {
				t.Errorf("%.40s: %s: %v", selector, name, err)
			}
			gone := &leaving{Context: t.Context()}
			if err := ask(gone, shown(t, page)); !errors.Is(err, context.Canceled) ||
				gone.asked > 10 {
				t.Errorf("%.40s: %s: %v after the context was asked %d times", selector, name, err,
					gone.asked)
			}
		}
	}
}

// Selectors that a pick tries are its own: no part of the caller's first field is in them.
func TestPicksBuildOnNoForeignSelector(t *testing.T) {
	s := shown(t, goods)
	title := model.Field{Name: "title", Selector: "li:has(b) h3:matches(one)", Kind: model.Text}
	f, _, err := s.Pick(t.Context(), model.MultipleProducts, []model.Field{title},
		s.number(t, "€2.50"))
	if err != nil {
		t.Fatal(err)
	}
	for css := range s.probe.sel.found {
		if strings.Contains(css, ":has(b)") || strings.Contains(css, ":matches") {
			t.Errorf("%q is tried", css)
		}
	}
	fields := []model.Field{title, f, {Name: "XPath", Selector: "//b"}}
	if all := s.matched(t, model.MultipleProducts, fields); len(all[0]) != 3 || len(all[1]) != 3 ||
		len(all[2]) != 0 {
		t.Errorf("%q finds %v", f.Selector, all)
	}
}

// A view parses to the elements of its page, whatever their names and contents.
func TestViewsHaveTheElementsOfPages(t *testing.T) {
	for name, page := range map[string]string{
		"goods":      goods,
		"pre":        "<!doctype html><pre>\n\n a</pre><textarea>\nb</textarea>",
		"table":      "<!doctype html><table><tr><td>1<td>2<tr><td>3</table>",
		"quirks":     "<p><table><tr><td>1</table>",
		"formatting": "<!doctype html><b><p>1<b>2</p>3</b>4",
	} {
		root, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		again, err := html.Parse(strings.NewReader(markupOf(t, viewOf(t, page))))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := outlineOf(again), outlineOf(root); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
}

func outlineOf(root *html.Node) string {
	var b strings.Builder
	elements(root, func(n *html.Node) bool {
		fmt.Fprintf(&b, "%s.%s ", n.Data, tree.Attr(n, "class"))
		if n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
			fmt.Fprintf(&b, "%q ", n.FirstChild.Data)
		}
		return true
	})
	return b.String()
}

// What is stored and shown of a page has nothing that runs, loads or leads anywhere.
func TestHostilePagesAreInert(t *testing.T) {
	for _, page := range hostilePages() {
		v := viewOf(t, page)
		markup := markupOf(t, v)
		root, err := html.Parse(strings.NewReader(markup))
		if err != nil {
			t.Fatal(err)
		}
		for n := range root.Descendants() {
			if n.Type == html.CommentNode || n.Namespace != "" && n.FirstChild != nil ||
				emptied[n.Data] && n.FirstChild != nil {
				t.Errorf("%.60s: %s is kept", page, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
					t.Errorf("%.60s: %s=%q is kept", page, a.Key, a.Val)
				}
			}
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(markup) > MaxViewBytes+64<<10 || len(data) > 640<<10 {
			t.Errorf("%.60s: %d bytes of it, %d as JSON, are kept", page, len(markup), len(data))
		}
		s, err := Show(v)
		if err != nil {
			t.Errorf("%.60s: %v", page, err)
			continue
		}
		for i, n := range s.Nodes {
			if n.In >= i || !shownNames[n.Name] && !slices.Contains([]string{"", "div", "span",
				"img"}, n.Name) || len(n.Text) > MaxShownText {
				t.Errorf("%.60s: %+v is shown", page, n)
			}
		}
	}
}

func hostilePages() []string {
	deep := strings.Repeat("<div>", 400) + "deep"
	return []string{
		"<script>alert(1)</script><img src=x onerror=alert(1)>",
		"<svg><style><img src=x onerror=alert(1)></style><script>1</script><a href=x>x</a></svg>",
		"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;<img src=1 onerror=1>\">",
		"<base href=//evil.test><meta http-equiv=refresh content=0;url=//evil.test>",
		"<style>@import '//evil.test'</style><p style=background:url(//evil.test)>x",
		"<iframe srcdoc='<script>1</script>'></iframe><object data=x><embed src=x></object>",
		"<form action=//evil.test><input name=a><button formaction=//evil.test>x</button></form>",
		"<plaintext><b>x", "<xmp><b>x</xmp>", "<noscript><p title='</noscript><img src=x>'>",
		"<template><script>1</script></template><frameset><frame src=x></frameset>",
		"<p>\u202eleft\u2066\u0007\u0000\u200b</p>", deep,
		"<p>" + strings.Repeat("x", 5<<20), strings.Repeat("<b>x</b>", 20_000),
		"<p title=\"" + strings.Repeat("\"", 1<<20), "<p>" + strings.Repeat("\"<>&", 1<<18),
		"<a\"b<c onclick=1 =x>1</a\"b<c>",
		strings.Repeat("<p "+strings.Repeat("a", 90)+"='"+strings.Repeat("&", 2000)+"'>x", 600),
	}
}
