package extract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/asgoquery"
)

// goqueryRow makes the row of SINGLE_PRODUCT with goquery.
func goqueryRow(doc *goquery.Document, r model.Recipe) map[string]any {
	row := map[string]any{}
	for _, f := range r.Fields {
		row[f.Name] = asgoquery.Field(doc, f)
	}
	return row
}

// fieldSelectors are the selectors of these tests' recipes. They match early, late or never, and
// some can be decided by the start tag alone.
var fieldSelectors = []string{"p", "b", "i", "a", "div", "span", "ul", "li", "table", "td", "tr",
	"tbody", "form", "title", "body", "html",
	"head", "h1", "svg", "select", "option", "script", "textarea", "font", "main",
	"*:not(html, head, body)", ".price", "h1.title",
	"main .price", "div.sku", "[rel=canonical]", "#main-part", ".card .name", "div.missing-class",
	".another-missing", "#no-such-id",
	"a[title='nothing']", "p b", "div > p", "b + i", "p ~ div", "td b", "li:nth-child(2)",
	"table td", "body > *", "p:last-child",
	"div:has(b)", "span:empty", "a[href]", "[class]", "[id]", "p.price-tag, b.price-tag", "input",
	"br", "button", "font b", "nobr",
	"aside p:not(html.dark .card)", "aside p:lang(en)", "aside .card .price"}

var fieldKinds = []string{"TEXT", "TEXT", "TEXT", "EXISTS", "@class", "@href", "@id"}

// randomRecipe returns a recipe of one to six fields.
func randomRecipe(rng *rand.Rand, t model.ScraperType) model.Recipe {
	var fields []string
	for i := range 1 + rng.IntN(6) {
		fields = append(fields,
			fmt.Sprintf("f%d %s %s", i, fieldKinds[rng.IntN(len(fieldKinds))],
				fieldSelectors[rng.IntN(len(fieldSelectors))]))
	}
	return recipe(t, fields...)
}

// checkFields fails unless a page's fields equal those that goquery gives. The page has no address,
// so links stay as written.
func checkFields(t *testing.T, page string, rng *rand.Rand, recipes int) {
	t.Helper()
	doc, docErr := asgoquery.Page(page)
	for range recipes {
		r := randomRecipe(rng, model.SingleProduct)
		got, err := mustCompile(t, r).Extract(Page{ContentType: "text/html", Body: []byte(page)})
		if docErr != nil {
			// A page that nests too deep may have been read only as far as was needed.
			if err != nil && fault.CodeOf(err) != fault.PageUnparsable {
				t.Fatalf("%.200q: %v, want %v", page, err, docErr)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%.2000q: %v", page, err)
		}
		want := goqueryRow(doc, r)
		row := map[string]any{}
		for _, f := range r.Fields { // a row without values is left out
			row[f.Name] = nil
			if f.Kind == model.Exists {
				row[f.Name] = false
			}
		}
		if len(got.Rows) > 0 {
			if err := json.Unmarshal(got.Rows[0], &row); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range r.Fields {
			if row[f.Name] != want[f.Name] {
				t.Fatalf("%s %s%s with %v\n got %q\nwant %q\nof %q", f.Kind, f.Selector, f.Attr,
					r.Fields, row[f.Name], want[f.Name], page)
			}
		}
		if rng.IntN(3) > 0 {
			continue
		}
		m := randomRecipe(rng, model.MultipleProducts)
		if got, want := extract(t, m, page), goqueryRows(doc, m); !slices.Equal(got, want) {
			t.Fatalf("%v of %q\n got %v\nwant %v", m.Fields, page, got, want)
		}
	}
}

// goqueryRows makes the rows of MULTIPLE_PRODUCTS with goquery, applying decision 36 literally.
func goqueryRows(doc *goquery.Document, r model.Recipe) []string {
	matches := make([][]*html.Node, len(r.Fields))
	for i, f := range r.Fields {
		matches[i] = doc.Find(f.Selector).Nodes
	}
	if found, ok := oracleItems(matches); ok {
		matches = found
	}
	return oracleLines(r, matches, len(matches[0]))
}

// TestFieldsAreGoquerysOnHTML5lib reads the tree-construction inputs of html5lib-tests, which come
// with the sources of x/net/html.
func TestFieldsAreGoquerysOnHTML5lib(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	var inputs int
	rng := rand.New(rand.NewPCG(1, 2))
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(dir)), "html", "testdata"),
		func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".dat" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, test := range bytes.Split(text, []byte("#data\n"))[1:] {
				if page, _, ok := bytes.Cut(test, []byte("\n#errors")); ok {
					inputs++
					checkFields(t, string(page), rng, 10)
				}
			}
			return err
		})
	if err != nil || inputs < 1500 {
		t.Errorf("%d inputs, %v", inputs, err)
	}
}

// malformed pages contain the mistakes that people and templates make.
var malformed = []string{
	"<ul><li>one<li>two<ul><li>in</ul><li>three</ul>after",
	"<table><tr><td>1<td>2<tr><td>3</table><p>x",
	"<table><p>moved</p><tr><td><b>x</table><b>y</b>",
	"<b>a<p>b</b>c</p><i>d<div>e</i>f</div>",
	"<a href=1>x<a href=2>y<div><a href=3>z</div>",
	"<p class=price class=other>1</p><p CLASS='Price'>2<p class=\"price sale\">3",
	"<div class=price>1</span></div></div></div><p>after</body></html><div class=sku>late",
	"<form><div><form><input></form></div><input></form><p>x",
	"<h1 class='title'>a < b & c &lt; d &notit; &copy=1</h1><p>5 < 6 <7>8",
	"<div id=main-part data-x='>' data-y=\">\" class=price/>x</div><br/><p/>y",
	"<div class='a><p class=price>lost</p><div class='b'>x</div>",
	"<!-- a -- b --><p>x<!--> <b>y</b> --><!-- open <p class=price>no",
	"<!doctype><html><head><title>t</title><body class=a><html id=main-part><body class=b id=c><p>x",
	"<head><link rel=canonical href=/p><p>body starts<link rel=canonical " +
		"href=/q></head><title>late</title>",
	"<script>if (a<b) '<p class=price>' + \"</p>\"</script><p " +
		"class=price>1</p><script>'<\\/script>'</script>",
	"<script><!-- <script> </script> --></script><p class=price>2",
	"<select><option>1<option>2<p>x</select><p>y<select><div>z</select>",
	"<textarea><p class=price></textarea><title><b></title><iframe><p></iframe><noscript><p " +
		"class=price>n</noscript><p class=price>3",
	"<svg><title><p>t</p></title><a class=price>s</a></svg><p class=price>4<math><mi>x</math>",
	"<template><p class=price>t</template><p class=price>5<template><table><tr></template>",
	"<table><tr><td><table><tr><td>in</td></table>out</td><td class=price>6</table>",
	"<table><caption>c<tr><th>h<td>d</caption><tbody><tr><td>x</table>text<table>text<td>y",
	"<p><table></p><tr><td></p>x</td></table>y",
	"<dl><dt>a<dd>b<p>c<dt>d<dd class=price>e</dl><dd>f",
	"<button>a<button>b<p>c</button>d</button><nobr>e<nobr>f",
	"<font><font><font><font><font><p>x</font>y<p>z",
	"<b><b><b><b><b><p>x</b></b>y<p>z",
	"<center><frameset><frame></center><p>x", "<frameset><frame></frameset><p>x",
	"<div></div><frameset><frame></frameset>",
	"x<frameset><p class=price>", "<p class=price>&#112;rice &#x41;&#0;&#xD800;&#128;",
	"<p class='&#112;rice'>x<p class=\"p&#114;ice\">y",
	"<div class=&#109;issing-class>z</div><p>x", "<p>x</p><i class=price>1</i><b " +
		"class=another&#45;missing>y</b>",
	"\ufeff<p class=price>bom", "\r\n<p>\r\nx\ry</p><pre>\r\n\r\nz</pre><pre>\n<b>w</b>\n</pre>",
	"<p\nclass\n=\nprice\n>x</p\n>",
	"<P CLASS=price>X<DIV CLASS=SKU>y</DIV><DiV cLaSs=sku>z",
	"<x-a class=price><X-B class=sku>z</x-b></x-A>",
	"<p>x<body><b>y</b></body><p class=price>z", "</p></br></b></div>x</table></td>",
	"<p></p></p></p>x<br></br>",
	"<a><b></a>x</b><a><p></a>y", "<ruby><rb>a<rt>b<rp>c<rtc>d</ruby><rt>e",
	"<object><p></object><applet><b></applet>x</b>",
	"<plaintext><p class=price>", "<xmp><p class=price></xmp><p class=price>x",
	"<image class=price><isindex><keygen><hr>x",
	"<li><address><li>x<p><li>y</p>", "<col><td>x<tr>y<caption>z<head>w<body>",
	"<p><b></p>x<p></b>y", "<i><p></i></p>x",
	"<div class=price><frameset></div>", "<div><![CDATA[ x <p> ]]></div><svg><![CDATA[ <p> " +
		"]]></svg><?php echo '<p>' ?>y",
	"<p class=price>x", "<p class=price", "<p class='price", "<p class=\"price\" ",
	"</p class=price>", "<", "<!", "</", "<!-", "&", "&#", "",
	strings.Repeat("<div>", 505) + "<p class=price>x", strings.Repeat("<b>", 600),
	strings.Repeat("<p><b>", 40) + "x",
	"<head><title>a</title></head><link rel=canonical href=/p><title>b</title><p class=price>1",
	"<head><title>a</title></head> <link rel=canonical href=/p> " +
		"<title>b</title><script>c</script><p class=price>1",
	"<p>x<svg class=price>a<noscript>b<g class=sku>c</g></noscript>d</svg>",
	"<svg><iframe><g class=price>x</g></iframe>y",
	"<svg><noembed><noframes><g class=price>x</g></noembed>y",
	"<math><noscript><mi class=price>x</mi></noscript>y</math>",
	"<aside><p class=card>x</p></aside>text<div>y</div><html class=dark lang=en><p>z",
	"<aside><p class=card><b class=price>x</b></p></aside>text<div>y</div>\x00<p class=price>z",
	"x<p class=price>y</p>z<i>\x00",
	"<html lang=a><body class=x><p>1<html lang=b id=main-part><body class=price id=sku title=t><p>2",
	"<p class=price>1</p><table><body class=card><tr><html class=dark><td class=price>2</table>",
	"<script><!-- <script>a</script> <p class=price>no --></script><p class=price>1",
	"<script><!-- <scripty> </script><p class=price>1</p><script><!--<SCRIPT/--></script>x-->",
	"<script><!-- < <script></script><p class=price>2</p><!-- --><script><!--></script><p>3",
	"<template><svg><style><p></style><title>t</title><path d=x/></svg></template><p class=price>1",
	"<template><svg><g></template><p class=price>1</p><template><svg><p>x</svg></template><p>2",
	"<template><col><svg><title></template></title></svg><p class=price>1",
	"<p>0<table class=price><b class=card>1<tr class=sku>2<td>3</b>4<div>5</table>6",
	"<table>a<!-- c -->b<tr> <!-- c --> <p class=price>c<td>d</table>e<table><i><p>f</i>g<tr>h",
	"<table><a href=1>x<tr><td class=price><a href=2>y</a></td></a><table>z<td>w</table></table>v",
	"<table><div><table><b>1<tr><td>2</table>3</div>4<tr><td class=price>5</table><p>6",
	"<table><colgroup> x</colgroup><select><option class=price>y<tr><td>z</select></table>w",
	"<table>&#32;<tr>&nbsp;<td class=price>x</td> a < b<form><input><input type=hidden></table>",
	"<table><tr><textarea>a</textarea><svg><g class=price>s</g></svg></p></br></tr>b</table>",
	"<b>1<table><b class=price>2<p>3</b>4<tr><td>5</table>6</b>7",
	"<ul><li class=card><table><li class=price>x<tr><td class=sku>y</table>z</ul>",
	"<b class=price><i><div class=card><u>x<p>y</b>z</i><a>w</div></u>after<p>v",
	"<a href=1><div class=card><p class=price>1<a href=2><div class=card><p class=price>2</a>x",
	"<b><b class=x><b class=x><b class=x><b class=x><p class=price>y</p>",
	"<table><tr><td><b class=price><div><p>1</b>2</div></td></tr></table></b>3",
	"<form><b><p></form>x</b>y</p><div class=price>z",
	"<i><em><strong><b><u><p class=price>x</i>y</em>z</p>",
	"<!doctype html public '-//w3c//dtd html 3.2//en'><p>a<table><tr><td class=price>b</table>",
	"<head><title>a</title></head> <!-- c --> <script>b</script> <title>c</title> <p>x",
	"<math><mi class=price>x</mi><mrow><mo>+</mo></mrow></math><p class=price>y",
	"a\x00b<p class=pr\x00ice>x", "<p class=price>\xff\xfe",
	"<div a=1 " + strings.Repeat("b=2 ", 120) + "class=price>x",
}

func TestFieldsAreGoquerysOnMalformedPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, page := range malformed {
		checkFields(t, page, rng, 60)
	}
	for range 1500 { // each is followed by others
		page := malformed[rng.IntN(len(malformed))] + malformed[rng.IntN(len(malformed))] +
			malformed[rng.IntN(len(malformed))]
		checkFields(t, page, rng, 2)
	}
}

// generate makes a mostly well-formed, nested page with occasional mistakes.
func generate(rng *rand.Rand) string {
	tags := []string{"div", "div", "div", "p", "p", "span", "span", "ul", "li", "li", "a", "b", "i",
		"h1", "h2", "section", "main", "article",
		"table", "tr", "td", "th", "tbody", "form", "button", "select", "option", "dl", "dt", "dd",
		"nav", "font", "em", "label", "svg"}
	classes := []string{"price", "title", "sku", "card", "name", "price-tag", "x", "", "missing",
		"price sale", "a&amp;b"}
	var b strings.Builder
	var stack []string
	if rng.IntN(3) > 0 {
		b.WriteString("<!doctype html><html><head><title>T</title><link rel=canonical " +
			"href=/c></head><body>")
	}
	for range 5 + rng.IntN(60) {
		switch n := rng.IntN(20); {
		case n < 8:
			tag := tags[rng.IntN(len(tags))]
			b.WriteString("<" + tag)
			if rng.IntN(2) == 0 {
				fmt.Fprintf(&b, ` class="%s"`, classes[rng.IntN(len(classes))])
			}
			if rng.IntN(6) == 0 {
				fmt.Fprintf(&b, " id=%s href='/h?a=%d&b'", []string{"main-part", "b"}[rng.IntN(2)],
					rng.IntN(9))
			}
			b.WriteString(">")
			stack = append(stack, tag)
		case n < 14 && len(stack) > 0:
			fmt.Fprintf(&b, "</%s>", stack[len(stack)-1])
			stack = stack[:len(stack)-1]
		case n == 14:
			b.WriteString([]string{"<br>", "<img src=x class=price>", "<input type=hidden>",
				"<hr/>", "<script>a<b;'</p>'</script>",
				"<style>p{}</style>", "<!-- c --><!--->", "<meta name=x>", "</p>", "</x>",
				"<textarea>t</textarea>"}[rng.IntN(11)])
		case n == 15 && rng.IntN(2) == 0: // a mistake: an end tag that may match nothing
			fmt.Fprintf(&b, "</%s>", tags[rng.IntN(len(tags))])
		default:
			b.WriteString([]string{"word ", " 9.99 &euro; ", "\n\t", "a < b", "&nbsp;x", "&#39;",
				"missing-class"}[rng.IntN(7)])
		}
	}
	for len(stack) > 0 && rng.IntN(8) > 0 {
		fmt.Fprintf(&b, "</%s>", stack[len(stack)-1])
		stack = stack[:len(stack)-1]
	}
	return b.String()
}

func TestFieldsAreGoquerysOnGeneratedPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		checkFields(t, generate(rng), rng, 1)
	}
}

func FuzzFieldsAreGoquerys(f *testing.F) {
	for i, page := range malformed {
		f.Add(page, uint64(i))
	}
	f.Fuzz(func(t *testing.T, page string, seed uint64) {
		if len(page) < 10_000 {
			checkFields(t, page, rand.New(rand.NewPCG(seed, 1)), 3)
		}
	})
}
