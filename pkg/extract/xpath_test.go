package extract

import (
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// TestXPathIsCSS gets the same fields in both languages, which may be mixed in one recipe.
func TestXPathIsCSS(t *testing.T) {
	pairs := [][2]string{
		{"h1.title", "//h1[contains(concat(' ', @class, ' '), ' title ')]"},
		{"main .price", "//main//*[contains(concat(' ', @class, ' '), ' price ')]"},
		{"div.sku", "/html/body//div[@class='sku']"},
		{"li a", "//li//a"},
		{"#b", "xpath: //*[@id='b']"},
		{"td:nth-child(2)", "//td[count(preceding-sibling::*) = 1]"},
		{"p", "(//p)"},
		{"b + i", "//b/following-sibling::*[1][self::i]"},
	}
	pages := []string{string(productPage(t)),
		"<p> a\u00a0 \n<b>b</b><i>c</i><script>x</script><template><p>t</template>",
		"<table><tr><td>1<td>2<tr><td>3<td><b>4</b><i>5</i></table>",
		"<ul><li><a href=x>1</a><li id=b>2</ul>", "<p>1<p>2<p>3", ""}
	for _, pair := range pairs {
		for _, kind := range []string{"TEXT", "EXISTS", "@class", "@href"} {
			for _, typ := range []model.ScraperType{model.SingleProduct, model.MultipleProducts} {
				for _, page := range pages {
					want := extract(t,
						recipe(typ, "a "+kind+" "+pair[0], "b "+kind+" css:"+pair[0]), page)
					for _, fields := range [][]string{{pair[1], pair[1]}, {pair[0], pair[1]},
						{pair[1], pair[0]}} {
						got := extract(t,
							recipe(typ, "a "+kind+" "+fields[0], "b "+kind+" "+fields[1]), page)
						if strings.Join(got, "\n") != strings.Join(want, "\n") {
							t.Errorf("%s %s %q of %.60q:\n got %s\nwant %s", typ, kind, fields,
								page, got, want)
						}
					}
				}
			}
		}
	}
}

func TestXPathFields(t *testing.T) {
	const list = `<ul><li><h2> A  1 </h2><a href=/1 title="x  y">go</a><b>1</b><b>2</b><li><h2>B</h2><a href=/2>on</a></ul>`
	for _, c := range []struct {
		name, body string
		typ        model.ScraperType
		fields     []string
		want       []string
	}{
		{"attributes and texts", list, model.SingleProduct,
			[]string{"h TEXT //a/@href", "t TEXT //a/@title", "x TEXT //a/text()",
				"a @title //a/text()", "e EXISTS //a/@rel"},
			[]string{`{"h":"/1","t":"x y","x":"go","a":"x  y","e":false}`}},
		{"values", list, model.SingleProduct,
			[]string{"s TEXT string(//h2)", "n TEXT count(//li)", "b TEXT //li = 'x'",
				"i TEXT xpath:1 div 4", "m TEXT number('x')",
				"e EXISTS count(//p)", "f EXISTS count(//b)"},
			[]string{`{"s":"A 1","n":2,"b":false,"i":0.25,"m":null,"e":false,"f":true}`}},
		{"steps by an axis", list, model.SingleProduct,
			[]string{"d TEXT descendant::h2", "c EXISTS descendant-or-self :: b", "p TEXT css:h2"},
			[]string{`{"d":"A 1","c":true,"p":"A 1"}`}},
		{"values of nothing are no row", "<p>", model.SingleProduct,
			[]string{"s TEXT string(//h2)", "n TEXT count(//li)"}, nil},
		{"values at each item", list, model.MultipleProducts,
			[]string{"h TEXT //h2", "n TEXT count(.//b)", "all TEXT count(//b)",
				"s TEXT concat('-', .//a)", "u TEXT //a/@href"},
			[]string{`{"h":"A 1","n":2,"all":2,"s":"-go","u":"/1"}`,
				`{"h":"B","n":0,"all":2,"s":"-on","u":"/2"}`}},
		{"values alone make items", list, model.MultipleProducts,
			[]string{"h TEXT //h2", "n TEXT count(.//b)"},
			[]string{`{"h":"A 1","n":2}`, `{"h":"B","n":0}`}},
		{"attributes make items", list, model.MultipleProducts,
			[]string{"u TEXT //a/@href", "b TEXT b"},
			[]string{`{"u":"/1","b":"1"}`, `{"u":"/2","b":null}`}},
		{"several attributes of an element: the n-th matches",
			`<a href=1 title=2></a><b>x</b><b>y</b>`, model.MultipleProducts,
			[]string{"u TEXT //a/@*", "b TEXT //b/text()"},
			[]string{`{"u":"1","b":"x"}`, `{"u":"2","b":"y"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := extract(t, recipe(c.typ, c.fields...), c.body)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// linked is a recipe whose pages lead on by a link.
func linked(r model.Recipe, selector string) model.Recipe {
	r.Pagination = &model.Pagination{Type: model.NextLink, Selector: selector}
	return r
}

func TestXPathLinks(t *testing.T) {
	const body = `<base href=/b/><a class=next href="c?d">x</a><i>e</i>`
	for selector, want := range map[string]string{
		"//a[@class='next']":       "http://shop.test/b/c?d",
		"//a/@href":                "http://shop.test/b/c?d",
		"//i/text()":               "http://shop.test/b/e",
		"concat('/x/', //i)":       "http://shop.test/x/e",
		"string(//p)":              "",
		"//i":                      "",
		"//p":                      "",
		"count(//a)":               "",
		"xpath:descendant::a[1]":   "http://shop.test/b/c?d",
		"css:a.next":               "http://shop.test/b/c?d",
		"//a[contains(., 'x')]/..": "",
	} {
		r := linked(recipe(model.SingleProduct, "i TEXT i"), selector)
		got, err := mustCompile(t,
			r).Extract(Page{URL: "http://shop.test/", ContentType: "text/html", Body: []byte(body)})
		if err != nil || got.Next != want {
			t.Errorf("%s: got %q, %v, want %q", selector, got.Next, err, want)
		}
	}
}

func TestValidateXPath(t *testing.T) {
	for _, c := range []struct {
		name, fault string
		recipe      model.Recipe
	}{
		{"all well", "", recipe(model.SingleProduct, "a TEXT //a", "b TEXT ./html",
			"c TEXT (//c)[1]", "d TEXT count( //d )", "e TEXT @x",
			"f TEXT xpath:html", "g EXISTS not(//a)", "h TEXT ../a")},
		{"no expression", "itemsConfig[0].selector", recipe(model.SingleProduct, "a TEXT //p[")},
		{"an unknown function", "itemsConfig[0].selector",
			recipe(model.SingleProduct, "a TEXT document('x')")},
		{"an attribute of a value", "itemsConfig[0].selector",
			recipe(model.SingleProduct, "a @b string(//p)")},
		{"a value as the first of many", "itemsConfig[0].selector",
			recipe(model.MultipleProducts, "a TEXT string(//p)")},
		{"a comment", "itemsConfig[1].selector",
			recipe(model.SingleProduct, "a EXISTS //a[not(comment())]", "b TEXT //comment()")},
		{"a comment as the link", "sourceConfig.pagination.selector",
			linked(recipe(model.SingleProduct, "a TEXT //a"), "//p/comment()")},
		{"beside JSON", "itemsConfig[1].selector",
			recipe(model.SingleProduct, "a TEXT $.a", "b TEXT //a")},
		{"too long", "itemsConfig[0].selector",
			recipe(model.SingleProduct, "a TEXT //a"+strings.Repeat("/a", 1024))},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range CheckNew(c.recipe) {
				got = append(got, f.Field)
				if f.Detail == "" {
					t.Error("no reason")
				}
			}
			if strings.Join(got, " ") != c.fault {
				t.Errorf("got %v, want %s", got, c.fault)
			}
		})
	}
}

// A recipe that was saved before runs as it did.
func TestSavedRecipesMayMatchNothing(t *testing.T) {
	saved := recipe(model.SingleProduct, "a TEXT //a", "b TEXT //comment()")
	if faults := Validate(saved); len(faults) > 0 {
		t.Errorf("refused: %v", faults)
	}
	if got := extract(t, saved, "<a>x</a><!-- c -->"); strings.Join(got, "") != `{"a":"x","b":null}` {
		t.Errorf("got %s", got)
	}
}

func TestHostileXPath(t *testing.T) {
	e := mustCompile(t, recipe(model.MultipleProducts, "a TEXT //p[sum(preceding::p) > 1]"))
	body := strings.Repeat("<p>a</p>", 20_000)
	if _, err := e.Extract(Page{ContentType: "text/html",
		Body: []byte(body)}); fault.CodeOf(err) != fault.PageTooCostly {
		t.Errorf("an expression that takes long: %v", err)
	}
}
