package extract

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// chairs returns five comma-separated objects made from format, with # replaced by their number.
func chairs(format string) string {
	var list []string
	for i := range 5 {
		list = append(list, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return strings.Join(list, ",")
}

// streamed returns a script of Next.js's streamed data: lines without rows, and one that is value.
func streamed(value string) string {
	var lines strings.Builder
	lines.WriteString("1:I[123,[],\"\"]\n")
	for i := range 5 {
		fmt.Fprintf(&lines, "%d:[\"$\",\"link\",null,{\"href\":\"/a.css\"}]\n", 2+i)
	}
	return fmt.Sprintf("<script>self.__next_f.push([1,%q])</script>", lines.String()+"a:"+value+"\n")
}

// TestDetectEmbedded: JSON embedded for scripts is proposed, and the proposal reads it.
func TestDetectEmbedded(t *testing.T) {
	const object = `{"id":#,"title":"Chair number #","price":"#9.50","slug":"chair-#"}`
	shell := `<!doctype html><title>Chairs</title><div id="root"></div><a rel="next" href="/list?page=2">›</a>`
	for name, c := range map[string]struct{ page, first string }{
		"Next": {shell + `<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":` +
			`{"items":[` + chairs(object) + `]}}}</script>`,
			"$.embedded.__NEXT_DATA__.props.pageProps.items[*].title"},
		"Nuxt": {shell + `<script>window.__NUXT__={data:[{products:[` + chairs(object) +
			`]}]}</script>`, "$.embedded.__NUXT__.data[*].products[*].title"},
		"Nuxt, called": {shell + `<script>window.__NUXT__=(function(a,b){return {layout:a,data:[{` +
			`products:[` + chairs(`{id:#,title:"Chair number #",price:"#9.50",kind:b}`) +
			`]}]}}("default","chair"));</script>`,
			"$.embedded.__NUXT__.data[*].products[*].title"},
		"an attribute": {shell + `<chair-list :chairs='[` + chairs(object) + `]'></chair-list>`,
			"$.embedded[':chairs'][*][*].title"},
		"an attribute with the name of a variable": {shell + `<script>var props=[1,2,3,4,5,6,7,8]` +
			`</script><island props='{"chairs":[` + chairs(object) + `]}'></island>`,
			"$.embedded.props_2[*].chairs[*].title"},
		"Apollo": {shell + `<script>window.__APOLLO_STATE__={"ROOT_QUERY":{"a":1},` +
			chairs(`"Chair:#":{"__typename":"Chair","title":"Chair number #","price":"#9.50",`+
				`"id":#}`) + `}</script>`,
			"$.embedded.__APOLLO_STATE__[?@.__typename == 'Chair'].title"},
		"Next, streamed": {shell + streamed(`["$","$L7",null,{"items":[`+chairs(object)+`]}]`),
			"$.embedded.__next_f[*][3].items[*].title"},
		"Next, streamed as an object": {shell + streamed(`{"items":[`+chairs(object)+`]}`),
			"$.embedded.__next_f[*].items[*].title"},
		// No level of elements and no element before the list hides it.
		"Next, streamed deep within": {shell + streamed(strings.Repeat(`["$","div",null,{"children":[`+
			`["$","b",null,{}],["$","b",null,{}],["$","b",null,{}],["$","b",null,{}],`, 9)+
			`["$","$L7",null,{"items":[`+chairs(object)+`]}]`+strings.Repeat(`]}]`, 9)),
			"$.embedded.__next_f[*]" + strings.Repeat("[3].children[*]", 9) + "[3].items[*].title"},
		"attributes": {shell + strings.ReplaceAll(chairs(`<div data-chair='`+object+`'></div>`),
			"</div>,", "</div>"), "$.embedded['data-chair'][*].title"},
	} {
		got := proposalsOf(t, model.Recipe{}, "text/html; charset=utf-8", c.page)
		if len(got) == 0 || got[0].Strategy != "embedded" {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		p := got[0]
		if first := p.Scraper.ItemsConfig[0].Selector; first != c.first || len(p.SampleData) != 5 {
			t.Errorf("%s: %s, %d rows", name, first, len(p.SampleData))
		}
		if row := string(p.SampleData[4]); !strings.Contains(row, `"title":"Chair number 4"`) ||
			!strings.Contains(row, `"price":"49.50"`) {
			t.Errorf("%s: %s", name, row)
		}
		recipe := p.Scraper.Recipe()
		made, err := mustCompile(t, recipe).Extract(Page{URL: "https://shop.test/list?page=1",
			ContentType: "text/html", Body: []byte(c.page)})
		if err != nil || len(made.Rows) != 5 || made.Next != "https://shop.test/list?page=2" {
			t.Errorf("%s: %d rows, next %q: %v", name, len(made.Rows), made.Next, err)
		}
	}
}

// TestEmbeddedIsAskedFor: a path reads an HTML page's embedded JSON only if it asks for that.
func TestEmbeddedIsAskedFor(t *testing.T) {
	const page = `<p>A page<script>var state = {"embedded": {"a": 1}, "items": [1, 2, 3]}</script>`
	for _, c := range []struct {
		selector, media, body string
		code                  fault.Code
		rows                  int
	}{
		{"$.embedded.state.items[*]", "text/html", page, "", 3},
		{"$['embedded'].state.items[*]", "text/html", page, "", 3},
		{"$.items[*]", "text/html", page, fault.PageNotJSON, 0},
		{"$.embeddedness[*]", "text/html", page, fault.PageNotJSON, 0},
		{"$.embedded.state.items[*]", "text/html", "<p>A wall", fault.PageNotJSON, 0},
		{"$.embedded.items[*]", "application/json", `{"embedded":{"items":[1,2]}}`, "", 2},
	} {
		got, err := mustCompile(t, model.Recipe{Type: model.MultipleProducts,
			Fields: []model.Field{{Name: "a", Selector: c.selector, Kind: model.Text}}}).Extract(
			Page{URL: "https://shop.test/", ContentType: c.media, Body: []byte(c.body)})
		if fault.CodeOf(err) != c.code && err != nil || len(got.Rows) != c.rows ||
			(err == nil) != (c.code == "") {
			t.Errorf("%s of %s: %d rows, %v", c.selector, c.media, len(got.Rows), err)
		}
	}
}

// TestDetectEmbeddedStandsBehind: the list that a page shows is proposed before its embedded data.
func TestDetectEmbeddedStandsBehind(t *testing.T) {
	var cards strings.Builder
	for i := range 9 {
		fmt.Fprintf(&cards, `<div class="card"><h3><a href="/chair/%d">Chair number %d</a></h3>`+
			`<p class="price">€ %d.50</p></div>`, i, i, 20+i)
	}
	got := proposalsOf(t, model.Recipe{}, "text/html", `<title>Chairs</title><h1>Chairs</h1>`+
		cards.String()+`<script>var state = {"items":[`+
		chairs(`{"title":"Chair number #","price":"#9.50"}`)+`]}</script>`)
	var strategies []string
	for _, p := range got {
		strategies = append(strategies, p.Strategy)
	}
	if all := strings.Join(strategies, " "); !strings.HasPrefix(all, "list ") ||
		!strings.Contains(all, "embedded") {
		t.Error(all)
	}
}
