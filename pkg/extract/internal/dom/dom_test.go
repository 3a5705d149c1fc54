package dom

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/pattern"
)

// pages are small pages of the kinds that affect how a tree is built.
var pages = []string{
	"",
	" ",
	"text",
	"x<pre><!-- c -->\nx",
	"<!doctype html><html lang=en><head><title>a &amp; b</title></head><body class='x y' " +
		"id=b><p>One<p>Two</body></html>",
	"<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"x\"><p>a<table><tr><td>b</table>",
	"<p>quirky<table><tr><td>in p</table>",
	"<!doctype html><p>closed<table><tr><td>after p</table>",
	"<ul><li>1<li>2<ul><li>2.1</ul><li>3</ul><ol><li><p>a<li>b</ol>",
	"<dl><dt>a<dd>b<dt>c<dd><p>d</dl>",
	"<table><tr><td>1<td>2<tr><th>3</table><table><caption>c</caption><col><tbody><tr><td>x</tbody><tfoot><tr><td>y</table>",
	"<table><thead><tr><th>a</thead><tr><td><table><tr><td>in</table></td></tr></table>",
	"<table> <colgroup><col> <col></colgroup> <tr> <td>x</td> </tr> <form><input type=hidden " +
		"name=q></form></table>",
	"<table>moved<tr><td>1</table>",
	"<table><div>moved</div></table>",
	"<p><b>bold<p>still bold</b> not",
	"<p><b><i>both</b> i</i> none",
	"<b><div>block</b> in</div>",
	"<a href=1>one<a href=2>two</a>",
	"<td><a>x<div><a>y",
	"<a>x<table><tr><td><a>y</a></table></a>",
	"<font><font><font><font>deep</p>x",
	"<form><div><form></div></form>x<form>y</form>",
	"<select><option>1<option>2<optgroup label=x><option>3</select><select><select>",
	"<button>a<button>b</button>",
	"<h1>a<h2>b</h1>c",
	"<script>var a = '<p>' + \"</p>\";</script><style>p > a {}</style><noscript><img></noscript>",
	"<script><!-- if (a<b) document.write('<script>x</script>'); --></script><p>x",
	"<title>a</titles></title><textarea>\n<p>&lt;</textarea><iframe><p></iframe><xmp><b></xmp>",
	"<head><template><tr><td>x</td></tr><template>y</template></template><link rel=canonical " +
		"href=/p></head>x",
	"<template><svg></svg></template>",
	"<head></head> <script>late</script> <link rel=a><body>x<!-- c --><!----><!-->-->y<!--- a --!>z",
	"<svg viewBox='0 0 1 1' xlink:href=x><path d=m /><title>t<b></title><a " +
		"href=x>y</a></svg><svg/>after",
	"<svg><style>a{}</style><script>x</script><g><use xlink:href=#a /></g></svg><p>after<svg><p>out",
	"<math><mi>x</mi></math>",
	"<p a=1 A=2 b='x\"y' c=\"&amp;&copy=1&notit;&#x41;\" d e= f=/ g=x/><br/><img " +
		"src=a.png/>x</br></p></p>",
	"<div =x ==y / a = b c/d></div x=y>z</ p></><?php ?><!x>",
	"a < b <3 <",
	"<div class='a\r\nb' id=a&#x62;c>\r\n1\r2</div><pre>\n\nx</pre><pre>\r\ny</pre>",
	"<ruby>a<rp>(<rt>b<rp>)</ruby><rt>x",
	"<object><b>x</object>y<applet>z</applet>",
	"</div></p></br><p>x</body>y</html>z<p>w",
	"<html a=1><html b=2><body c=3><body d=4>",
	"<frameset><frame></frameset>",
	"<plaintext><p>",
	"x\x00y",
	"<p",
	"<p a='",
	"<!-- open",
	"\ufeff<!doctype html><p>bom",
	"&lt;&nbsp;&notin;&notit;&#0;&#128;&#xD800;&bogus;&amp&#",
	"<hr><p>a<hr><li>x<hr><address><li>y</address><nobr>a<nobr>b</nobr>",
	"<center><menu><dialog><search><summary>x</search></center><image><keygen>",
	"<b><b><b><b>x</b></b></b></b><p>y",
	"<table><tr><td><b>x</td><td>y</table>z",
	"<table><caption><b>x<tr><td>y</table>",
	"<table><tbody></thead></tbody></tr><tr></tbody><td></th></td></table>",
	"<p><table></p></table>",
	"<div><p>x</div>y<span>z</div>w</span>",
	"<dd><div><dd>x<dt>y",
	"<x-card data-a=1><X-Item>v</x-item></x-card>",
	"<html lang=a><body class=x><p>1<html lang=b id=main-part><body class=price id=sku title=t><p>2",
	"<p class=price>1</p><table><body class=card><tr><html class=dark><td class=price>2</table>",
	"<script><!-- <script>a</script> <p class=price>no --></script><p class=price>1",
	"<script><!-- <scripty> </script><p class=price>1</p><script><!--<SCRIPT/--></script>x-->",
	"<script><!-- < <script></script><p class=price>2</p><!-- --><script><!--></script><p>3",
	"<template><svg><style><p></style><title>t</title><path d=x/></svg></template><p class=price>1",
	"<template><svg><g></template><p class=price>1</p><template><svg><p>x</svg></template><p>2",
	"<template><col><svg><title></template></title></svg><p class=price>1",
	"<b class=price><i><div class=card><u>x<p>y</b>z</i><a>w</div></u>after<p>v",
	"<a href=1><div class=card><p class=price>1<a href=2><div class=card><p class=price>2</a>x",
	"<b><b class=x><b class=x><b class=x><b class=x><p class=price>y</p>",
	"<table><tr><td><b class=price><div><p>1</b>2</div></td></tr></table></b>3",
	"<form><b><p></form>x</b>y</p><div class=price>z",
	"<i><em><strong><b><u><p class=price>x</i>y</em>z</p>",
	"<!doctype html public '-//w3c//dtd html 3.2//en'><p>a<table><tr><td class=price>b</table>",
	"<head><title>a</title></head> <!-- c --> <script>b</script> <title>c</title> <p>x",
	"<math><mi class=price>x</mi><mrow><mo>+</mo></mrow></math><p class=price>y",
	"<ſcript>x</ſcript><p>ſ",
	"<b>\xe1<i>\x9a\x80</i></b>", "<p>x \xe1<b>\x9a<i>\x80y</i>\x80</b>\xc2<b>\xa0 " +
		"z\xc2</b>\xa0\xc2<b>x",
	strings.Repeat("<p>x<i></i></p><b>y</b>", 40) + "<u></u><div class=c>" +
		strings.Repeat("<p class=c></p><b></b>", 40),
}

// failer is implemented by *testing.T and *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkSame fails unless both parsers give the same document or ours gives up.
func checkSame(t failer, page string) (odd bool) {
	t.Helper()
	oracle, err := parseOracle(page)
	var ours, theirs Document
	theirs.Reset()
	if convErr := theirs.convert([]byte(page)); (err == nil) != (convErr == nil) {
		t.Fatalf("convert: %v, x/net/html: %v", convErr, err)
	}
	ours.Reset()
	if ours.build.run(&ours, strings.TrimPrefix(page, "\ufeff")) != notOdd {
		odd = true
	}
	if err != nil {
		if !odd {
			t.Fatalf("x/net/html refuses the page (%v), the builder does not", err)
		}
		return odd
	}
	want := oracle.dump()
	diff(t, page, "converted", theirs.dump(), want)
	if !odd {
		diff(t, page, "built", ours.dump(), want)
	}
	return odd
}

func diff(t failer, page, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		// x/net/html sorts the attributes of formatting elements.
		if g != w && !slices.Equal(slices.Sorted(strings.FieldsSeq(g)),
			slices.Sorted(strings.FieldsSeq(w))) {
			t.Fatalf("%s: element %d\n got %s\nwant %s\nof %q", what, i, g, w, page)
		}
	}
}

func TestBuilderIsXNetHTML(t *testing.T) {
	odd := 0
	for _, page := range pages {
		t.Run(fmt.Sprintf("%.40q", page), func(t *testing.T) {
			if checkSame(t, page) {
				odd++
			}
		})
	}
	if odd > len(pages)/2 {
		t.Errorf("%d of %d pages are odd", odd, len(pages))
	}
}

// markup returns pieces of pages.
func markup() []string {
	pieces := []string{" ", "x", "&amp;", "long-class", "<i class=long-class>",
		"<div id='long-i&#100;'>", "<em title=\"a long-class b\">", "<!-- c -->", "<br>",
		"<img src=a>", "<input type=hidden>", "<script>a<b</script>",
		"<title>t</title>", "</head> <title>t</title>", "<svg><noscript><g>x</g></noscript>",
		"<svg><iframe>x<g>y", "<textarea>a</textarea>", "<template><p>x</template>",
		"<svg><path/></svg>", "<link rel=x>",
		"<body lang=x>", "<html title=y>", "<textarea>&#13;&#10;&#10;x</textarea>",
		"<pre>&NewLine;\n", "&#10;", "<table>x<tr>y", "<table><b><p>", "<tr><div>",
		"&#32;", "</table>",
		"<script><!--<script>", "</script>-->", "<template><svg><style>x</style></svg></template>",
		"<math><mi>x</mi></math>", "<b><i><p>", "<a><div>", "</a>", "<em><em class=c>",
		"<hr>", "</br>", "</p>", "<!doctype html>"}
	for _, name := range []string{"html", "head", "body", "div", "p", "span", "a", "b", "i", "li",
		"ul", "dl", "dt", "dd",
		"table", "tbody", "thead", "tr", "td", "th", "caption", "colgroup", "col", "form", "button",
		"select", "option",
		"optgroup", "h1", "h2", "pre", "svg", "g", "object", "section", "nobr", "font", "ruby",
		"rt", "address", "x-y"} {
		pieces = append(pieces, "<"+name+">", "<"+name+" class=c id=i>", "</"+name+">")
	}
	return pieces
}

// TestBuilderIsXNetHTMLAtRandom joins random pieces of markup.
func TestBuilderIsXNetHTMLAtRandom(t *testing.T) {
	pieces := markup()
	rapid.Check(t, func(rt *rapid.T) {
		page := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 25).Draw(rt, "page"), "")
		checkSame(rt, page)
	})
}

// place returns an element's path from the root, with its attributes. Unlike indexes, paths do not
// change when elements that do not matter are dropped.
func place(d *Document, e Elem) (path string) {
	if e != None {
		for i := d.elems[e].attrs; i < d.elems[e].attrsEnd; i++ {
			path += fmt.Sprintf(" %s=%q", d.attrs[i].name, d.value(i))
		}
	}
	for ; e != None; e = d.elems[e].parent {
		path = fmt.Sprintf("/%s[%d]%s", d.elems[e].name(), d.elems[e].index, path)
	}
	return path
}

// checkEnough fails unless reading a page only as far as needed gives the same first matches and
// texts.
func checkEnough(t failer, page string, only []*Selector) (read float64) {
	t.Helper()
	var part, whole Document
	if whole.Parse([]byte(page)) != nil {
		return 1
	}
	if err := part.Parse([]byte(page), only...); err != nil {
		t.Fatalf("%v", err)
	}
	for _, s := range only {
		got, want := s.First(&part, Whole), s.First(&whole, Whole)
		if got, want := place(&part, got), place(&whole, want); got != want {
			t.Fatalf("%q: first match %s, want %s", page, got, want)
		}
		if got == None {
			continue
		}
		if got, want := part.AppendText(nil, got),
			whole.AppendText(nil, want); string(got) != string(want) {
			t.Fatalf("%q: text %q, want %q", page, got, want)
		}
	}
	return float64(max(len(part.elems), part.mostElems)) / float64(len(whole.elems))
}

func TestEnoughOfAPageIsAllOfIt(t *testing.T) {
	pieces := markup()
	rapid.Check(t, func(rt *rapid.T) {
		page := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(rt, "page"), "")
		var only []*Selector
		for range rapid.IntRange(1, 3).Draw(rt, "selectors") {
			s, err := CompileSelector(rapid.SampledFrom([]string{"p", "div", "b", "li", "a", ".c",
				"b div", "a > b", "p + b",
				"p ~ a", "td", "li:nth-child(2)", "*:not(html, body, head)", "svg *",
				"div:is(.c, #i)",
				"head", "html", "title", "head > link", "link", "svg", ".long-class", "#long-id",
				"p .long-class, b#long-id", "em[title~=long-class]", "b.missing-class"}).Draw(rt,
				"selector"), new(pattern.Total))
			if err != nil {
				rt.Fatal(err)
			}
			only = append(only, s)
		}
		checkEnough(rt, page, only)
	})
	title, _ := CompileSelector("h1", new(pattern.Total))
	if read := checkEnough(t, "<h1>x</h1>"+strings.Repeat("<p>", 100),
		[]*Selector{title}); read > 0.1 {
		t.Errorf("%.2f of the page read", read)
	}
}

func FuzzBuilder(f *testing.F) {
	for _, page := range pages {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) < 20_000 {
			checkSame(t, page)
		}
	})
}

// selectors are those that cascadia also reads.
var selectors = []string{
	"*", "p", "P", "div", "li", "a", "#b", "#i", ".x", ".x.y", ".c", "p.c", "a#i.c", "[href]",
	"[class=c]", "[class~=y]", "[id|=a]",
	"[href^='1']", "[src$='png']", "[lang*=n]", "[class!=c]", "[class=C i]", "[id#=^a.c$]", "ul li",
	"ul > li", "li + li",
	"li ~ li", "body > *", "html > body p", "ul li ul > li", "div p, td", "td a",
	"table td:first-child",
	"li:first-child", "li:last-child", "li:nth-child(2)", "li:nth-child(2n+1)", "li:nth-child(odd)",
	"li:nth-child(-n+2)",
	"*:nth-last-child(2)", "*:nth-of-type(2)", "*:nth-last-of-type(1)", "*:only-child",
	"*:only-of-type", "p:empty",
	":root", ":root > *", "*:not(p)", "*:not(.c, #i)", "body:has(td)", "ul:has(> li)",
	"*:haschild(li)", "p:contains(x)",
	"*:containsown('one')", "td:matches(^y$)", "*:matchesown([0-9])", "*:lang(en)", "*:link",
	"*:input", "*:enabled",
	"*:disabled", "*:checked", "a:hover", "link[rel=canonical]", "link[rel]",
	"*:not(:nth-child(n+2))", "x-card > x-item",
	"p b i", "b + i", "head > *", "tr td + td", "tr > td ~ td", "a:not([href=\"1\"])", "x-y",
	"span ~ b > i", "*|*",
	"div:not(:has(p)) > a", "p\\:x", "#\\31 ", "[a=\"1\\\n2\"]", "/* c */ p", "td/**/a", "u ~ b",
	"b ~ p",
	"u ~ div p.c ~ b", "i ~ b", "p ~ b ~ p ~ b", "p + b ~ p", "*:not(u ~ *) ~ b",
	"p.c ~ u, p > i ~ b",
}

// checkSelector fails unless the selector finds what cascadia finds.
func checkSelector(t *testing.T, page, css string) {
	t.Helper()
	ours, err := CompileSelector(css, new(pattern.Total))
	theirs, theirErr := cascadia.ParseGroup(css)
	if err != nil || theirErr != nil {
		return
	}
	oracle, parseErr := parseOracle(page)
	if parseErr != nil {
		return
	}
	var want []Elem
	for i, n := range oracle.elems {
		if theirs.Match(n) {
			want = append(want, Elem(i))
		}
	}
	var d Document
	if err := d.Parse([]byte(page)); err != nil {
		t.Fatal(err)
	}
	got := ours.All(&d)
	if !slices.Equal(got, want) {
		t.Fatalf("%q in %q: got %v, want %v", css, page, got, want)
	}
	first := None
	if len(want) > 0 {
		first = want[0]
	}
	if got := ours.First(&d, Whole); got != first {
		t.Fatalf("%q in %q: first %d, want %d", css, page, got, first)
	}
}

func TestSelectorsAreCascadia(t *testing.T) {
	for _, css := range selectors {
		_, theirErr := cascadia.ParseGroup(css)
		if _, err := CompileSelector(css, new(pattern.Total)); (err == nil) != (theirErr == nil) {
			t.Errorf("%q: %v, cascadia %v", css, err, theirErr)
		}
		for _, page := range pages {
			checkSelector(t, page, css)
		}
	}
}

func FuzzSelector(f *testing.F) {
	for i, css := range selectors {
		f.Add(pages[i%len(pages)], css)
	}
	f.Fuzz(func(t *testing.T, page, css string) {
		if len(page) < 5_000 && len(css) < 200 {
			checkSelector(t, page, css)
		}
	})
}
