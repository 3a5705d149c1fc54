package dom

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antchfx/htmlquery"
	"github.com/antchfx/xpath"
	"golang.org/x/net/html"
)

// expressions cover all axes and all kinds of predicates.
var expressions = []string{
	"/html/body/*", "//p", "//p/text()", "//*", "//text()", "//@*", "//a/@href", "//li[1]",
	"//li[last()]", "//ul/li[2]/text()",
	"//p[@class='x']", "//*[@class and not(@id)]", "//*[contains(@class, 'c')]",
	"//p[contains(., 'x')]", "//td[. = 'y']",
	"//b/..", "//b/ancestor::*", "//b/ancestor-or-self::p", "//p/following-sibling::*[1]",
	"//p/preceding-sibling::*",
	"//b/following::*", "//u/preceding::b", "//div//p", "//div//*//b", "//*[count(*) = 2]",
	"//*[text()]", "//p | //b",
	"//li/descendant-or-self::node()", "(//li)[2]", "//body/node()", "//p[position() < 3]",
	"//tr/td[2]", "//*[self::p or self::b]",
	"//p[normalize-space() = 'x']", "//*[starts-with(name(), 'h')]", "//div/p[1]/text()[1]",
	"//text()[2]", "//li[2]/text()[1]",
	"//*[string-length(normalize-space(.)) > 3]", "//option[../@label]", "//*[@a = 1]",
	"//pre/text()", "//*[not(*)]",
	"//head/following-sibling::body", "//x-card/@data-a", "//p[b and i]", "//script/text()",
}

// checkXPath fails unless an expression chooses the same in a document and in the tree of
// x/net/html.
func checkXPath(t *testing.T, page, expr string) {
	t.Helper()
	o, err := parseOracle(page)
	if err != nil {
		return
	}
	place := map[*html.Node]int{o.root: -1}
	for i, n := range o.elems {
		place[n] = i
	}
	want := map[string]bool{}
	for set := xpath.MustCompile(expr).Select(
		htmlquery.CreateXPathNavigator(o.root)); set.MoveNext(); {
		nav := set.Current().(*htmlquery.NodeNavigator)
		switch n := nav.Current(); nav.NodeType() {
		case xpath.ElementNode:
			want[fmt.Sprint(place[n])] = true
		case xpath.AttributeNode:
			want[fmt.Sprintf("%d @%s=%s", place[n], nav.LocalName(), nav.Value())] = true
		case xpath.TextNode:
			want[fmt.Sprintf("%d %q", place[n.Parent], AppendCollapsed(nil, n.Data))] = true
		}
	}
	x, err := CompileXPath(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var d Document
	if err := d.Parse([]byte(page)); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range x.All(&d) {
		switch {
		case m.attr >= 0:
			got[fmt.Sprintf("%d @%s=%s", m.Elem, d.attrs[m.attr].name, d.value(m.attr))] = true
		case m.text >= 0:
			got[fmt.Sprintf("%d %q", m.Elem, d.AppendMatch(nil, m))] = true
		default:
			got[fmt.Sprint(m.Elem)] = true
		}
	}
	if d.Err() != nil || !sameKeys(got, want) {
		t.Fatalf("%s of %q: %v\n got %q\nwant %q", expr, page, d.Err(), keys(got), keys(want))
	}
}

func keys(m map[string]bool) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func sameKeys(a, b map[string]bool) bool { return slices.Equal(keys(a), keys(b)) }

func TestXPathIsHTMLQuery(t *testing.T) {
	for _, page := range pages {
		if strings.Contains(page, "<svg") || strings.Contains(page, "</head> ") {
			// attributes have no prefixes there, and white space around the head is not kept in
			// order
			continue
		}
		for _, expr := range expressions {
			checkXPath(t, page, expr)
		}
	}
}

func TestXPathOrder(t *testing.T) {
	var d Document
	if err := d.Parse([]byte("<div id=1>a<p class=b id=2>c</p>d<!-- -->e</div><p>f<b>g</b></p>")); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		"//b | //div | //@id | //text() | //p": "acde|1|a|c|2|c|d|e|fg|f|g|g",
		"//b/ancestor::*":                      "acdefg|acdefg|fg",
		"//div/text()":                         "a|d|e",
		"//p/@*":                               "b|2",
	} {
		x, err := CompileXPath(expr)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range x.All(&d) {
			got = append(got, string(d.AppendMatch(nil, m)))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

// An expression in vain asks for what no page has. Whatever else asks for it as well may match.
func TestVainXPath(t *testing.T) {
	var d Document
	if err := d.Parse([]byte("<?pi x?><!-- a --><p><!-- b -->b<?pi y?><a>c</a></p>")); err != nil {
		t.Fatal(err)
	}
	vain := []string{"//comment()", "//processing-instruction('x')", "(//comment())[1]",
		"//p/comment()/..", "//p[comment()]", "//p[.//comment() = 'b']",
		"//p[following::comment() = 'b']", "//p[comment() != 'b' and a]", "string(//comment())",
		"//comment() | //processing-instruction()", "//p[comment() or a[comment()]]",
		"normalize-space(//p[boolean(comment())])"}
	others := []string{"//p[not(comment())]", "//comment() | //a", "count(//comment())",
		"//p[comment() or a]", "//p[count(comment()) = 0]", "//node()", "//p[comment() = false()]",
		"concat(//a, //comment())", "/", "//a[last()]", "string(//comment() = 'b')",
		"//p[boolean(string(comment() = 'b'))]"}
	for _, expr := range slices.Concat(vain, others) {
		x, err := CompileXPath(expr)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Contains(vain, expr)
		if x.IsVain() != want {
			t.Errorf("%s: in vain %v", expr, !want)
		}
		found := len(x.All(&d)) > 0
		if x.IsScalar() {
			found = x.Value(&d, Whole) != ""
		}
		if found && want {
			t.Errorf("%s matches", expr)
		}
	}
}

func TestXPathValues(t *testing.T) {
	var d Document
	if err := d.Parse([]byte("<h1> a  <b>b</b></h1><ul><li>1<li>2.5<script>x</script></ul>")); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]any{
		"string(//h1)": " a  b", "normalize-space(//h1)": "a b", "count(//li)": 2.0,
		"count(//li) > 1": true, "boolean(//p)": false,
		"sum(//li[1])": 1.0, "number(//h1)": nil, "1 div 0": nil, "concat(//b, '-', //li)": "b-1",
		"string(//p)": "", "'x'": "x",
		"translate(//b, 'b', 'ä')": "ä", "substring(//h1, 2, 1)": "a", "//li = '1'": true,
		"not(//p)": true, "number(//h1 = 1)": 0.0, "number(true())": 1.0,
		"number(1 div 0) > 5": true, "number(' -2.5 ')": -2.5, "count(//li[number() = 1])": 1.0,
	} {
		x, err := CompileXPath(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := x.Value(&d, Whole); !x.IsScalar() || got != want || d.Err() != nil {
			t.Errorf("%s: got %v, %v, want %v", expr, got, d.Err(), want)
		}
	}
}

// Nested elements of one name have separate positions, and positions on an axis count along it.
func TestXPathPlaces(t *testing.T) {
	const page = `<div id=a><div id=b>1</div><div id=c>2<div id=d>3</div><div id=e>4</div></div></div><ul><li>5<li>6<p>7</p></ul><ul><li>8</ul>`
	for expr, want := range map[string]string{
		"string(//div[2])":                                     "234",
		"//div[2]/@id":                                         "c|e",
		"(//div)[2]/@id":                                       "b",
		"//div[last()]/@id":                                    "a|c|e",
		"//ul/descendant::*[last()]":                           "7|8",
		"//ul/descendant::*[1]":                                "5|8",
		"//p/ancestor::*[1]":                                   "67",
		"//div[@id='e']/ancestor::div[2]/@id":                  "a",
		"(//div[@id='e']/ancestor::div)[1]/@id":                "a",
		"//p/preceding::div[1]/@id":                            "e",
		"//p/preceding::div[last()]/@id":                       "a",
		"//li/following::li[1]":                                "67|8",
		"//div[@id='e']/preceding-sibling::*/@id":              "d",
		"//li[position() = last() - 1]":                        "5",
		"//div[div][1]/div[position() mod 2]/@id":              "b|d",
		"//div[@id][2][. = '4']/@id":                           "e",
		"//div[count(ancestor::div) = 2]/@id":                  "d|e",
		"//ul[li[2]]/li[1] | //ul[not(li[2])]":                 "5|8",
		"//li[. < //li[last()]]":                               "5|8",
		"//@id[. = 'c']/../div[1]/@id":                         "d",
		"//li[preceding-sibling::li][last()]":                  "67",
		"concat(count(//div | //li), '-', -(2 - 3) * 4 div 8)": "8-0.5",
		"substring('12345', 1.5, 2.6)":                         "234",
		"substring('12345', 0, 3)":                             "12",
		"substring('12345', -42, 1 div 0)":                     "12345",
		"concat(round(-0.5), round(2.5), -5 mod 2, 1 div 0)":   "03-1Infinity",
	} {
		x, err := CompileXPath(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		var d Document
		if err := d.Parse([]byte(page)); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		if x.IsScalar() {
			got = append(got, fmt.Sprint(x.Value(&d, Whole)))
		}
		for _, m := range x.All(&d) {
			got = append(got, string(d.AppendMatch(nil, m)))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

func TestBadXPaths(t *testing.T) {
	for _, expr := range []string{"", "//", "//p[", "//p[@", "foo(//p)", "replace(//p, 'a', 'b')",
		"matches(., '(a*)*')", "//p[string-join(b, '')]",
		"//a['", "$x", "//$x", "fn:count(//p)", "ancestors::p", "//p[position(]", "concat('a')",
		"count()", "/html/[1]",
		"namespace::x", "count('a')", "//a | 1", "'a'/b", "//a)", "1 2", "//a/..[1]"} {
		if _, err := CompileXPath(expr); err == nil {
			t.Errorf("%q is accepted", expr)
		}
	}
}

// TestHostileXPaths gives expressions and pages made to take long; a regression shows as a test
// that does not end.
func TestHostileXPaths(t *testing.T) {
	siblings := strings.Repeat("<p>a</p>", 20_000)
	deep := strings.Repeat("<div>a", 480)
	for _, c := range []struct {
		page, expr string
		fails      bool
	}{
		{siblings, "//p[position() > 5]", false},
		{siblings, "//p[last()]", false},
		{siblings, "//p[position() = last() - 1]", false},
		{siblings, "//p[2]", false},
		{siblings, "//p/following-sibling::p/following-sibling::p", false},
		{siblings, "//p/preceding-sibling::p/preceding::p/following::p", false},
		{siblings, "//p[count(preceding::*) > 5]", false},
		{siblings, "//p[count(preceding::*[. != 'x']) > 5]", false},
		{siblings, "//p[following::p[following::p[preceding::p]]]", false},
		{siblings, "//p[count(//p) > 1]", false},
		{siblings, "//p | //b | //p/text()", false},
		{deep, "//*" + strings.Repeat("//*", 100), false},
		{deep, strings.Repeat("//div[", 100) + "1" + strings.Repeat("]", 100), false},
		{deep, "//div[contains(., 'b')]", false},
		{siblings, "concat(" + strings.Repeat("/,", 600) + "'')", false},
		{siblings, "//p[contains(/, string(.))]", true},
		{siblings, "//p[contains(., //p)]", false},
	} {
		x, err := CompileXPath(c.expr)
		if err != nil {
			t.Errorf("%.40s: %v", c.expr, err)
			continue
		}
		var d Document
		if err := d.Parse([]byte(c.page)); err != nil {
			t.Fatal(err)
		}
		x.evaluate(&d, None)
		if fails := d.Err() != nil; fails != c.fails {
			t.Errorf("%.40s of %.20s…: %v", c.expr, c.page, d.Err())
		}
	}
}

func TestXPathConcurrently(t *testing.T) {
	x, err := CompileXPath("//p[count(b) = 1 and (contains(., 'x') or position() = last())]/b")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var d Document
			for range 100 {
				if err := d.Parse([]byte(
					"<p>x<b>1</b></p><p>y<b>2</b></p><p><b>3</b></p>")); err != nil {
					t.Error(err)
				}
				if got := len(x.All(&d)); got != 2 {
					t.Errorf("%d matches", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzXPath(f *testing.F) {
	for i, expr := range expressions {
		f.Add(pages[i%len(pages)], expr)
	}
	f.Fuzz(func(t *testing.T, page, expr string) {
		x, err := CompileXPath(expr)
		if err != nil || len(page) > 2000 || len(expr) > 200 {
			return
		}
		var d Document
		if err := d.Parse([]byte(page)); err == nil {
			x.evaluate(&d, None)
		}
	})
}

// Errors name what is refused: unsupported XPath 1.0, later versions, and mistakes.
func TestRefusedXPathIsNamed(t *testing.T) {
	for expr, named := range map[string]string{
		"//a[$x]": "variables", "for $x in //a return $x": "variables",
		"some $x in //a satisfies $x": "variables",
		"//a/namespace::*":            "axis namespace", "//a[foo::b]": "axis foo",
		"id('x')": "id()", "lang('en')": "lang()", "document('x')": "document()",
		"key('a', 'b')": "key()", "current()": "current()",
		"generate-id()": "generate-id()", "system-property('x')": "system-property()",
		"format-number(1, '0')": "format-number()",
		"matches(., 'a')":       "matches()", "string-join(//a, ',')": "string-join()",
		"exists(//a)": "exists()", "re:test('a', 'b')": "re:test()",
		"element(a)": "element()", "if (1) then 2 else 3": "if()",
		"//a except //b": `"except"`, "//a intersect //b": `"intersect"`, "//a eq //b": `"eq"`,
		"//a is //b": `"is"`, "1 to 3": `"to"`,
		"(1, 2)": `","`, "//a ! string(.)": "'!'", "//@*:href": "':'", "//a/string()": `"("`,
		"//a/(b|c)": `"("`,
		"//a[1":     "] is missing", "//a]": `"]"`, "//a/": "a name is missing", "'a": "quote",
		"":        "the end",
		"count()": "count() does not take 0", "count(1)": "count() takes nodes",
		"position(1)": "position() does not take 1", "1 | //a": "|",
	} {
		if _, err := CompileXPath(expr); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v does not name %q", expr, err, named)
		}
	}
}
