package structured

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline prints an item as one line: Type#id{name=value …}, numbers bare, texts quoted.
func outline(it *Item) string {
	var b strings.Builder
	b.WriteString(strings.Join(it.Types, ","))
	if it.ID != "" {
		b.WriteString("#" + it.ID)
	}
	b.WriteString("{")
	for i, p := range it.Props {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(p.Name + "=")
		for i, v := range p.Values {
			if i > 0 {
				b.WriteString("|")
			}
			switch v.Kind {
			case Entity:
				b.WriteString(outline(v.Item))
			case String:
				fmt.Fprintf(&b, "%q", v.Text)
			default:
				b.WriteString(v.Text)
			}
		}
	}
	return b.String() + "}"
}

func outlines(d *Data) []string {
	var lines []string
	for _, it := range d.Items {
		lines = append(lines, it.Source.String()+" "+outline(it))
	}
	return lines
}

func read(t *testing.T, page string) *Data {
	t.Helper()
	d, err := readHTML([]byte(page), "https://shop.example/p/1?a=b")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func script(json string) string {
	return `<script type="application/ld+json">` + json +
		`</script>`
}

func TestItems(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       []string
	}{
		{"one",
			script(`{"@context":"https://schema.org","@type":"Product","@id":"#p","name":"Kettle","weight":1.50,"new":true,"gone":null}`),
			[]string{`JSON-LD Product##p{name="Kettle" weight=1.50 new=true}`}},
		{"array", script(`[{"@type":"Product","name":"A"},{"@type":"Product","name":"B"}]`),
			[]string{`JSON-LD Product{name="A"}`, `JSON-LD Product{name="B"}`}},
		{"graph",
			script(`{"@context":"https://schema.org","@graph":[{"@type":"WebSite","name":"S"},{"@type":["Product","Thing"],"name":"A"}]}`),
			[]string{`JSON-LD WebSite{name="S"}`, `JSON-LD Product,Thing{name="A"}`}},
		{"nested",
			script(`{"@type":"Product","offers":{"@type":"Offer","price":"12.30","seller":{"@type":"Organization","name":"X"}},"image":["a","b"]}`),
			[]string{`JSON-LD Product{offers=Offer{price="12.30" seller=Organization{name="X"}} image="a"|"b"}`}},
		{"several blocks, a broken one among them",
			script(`{"@type":"Product","name":"A"}`) + script(`{"@type":"Product","name":"B`) +
				script(`{"@type":"Product","name":"C"}`),
			[]string{`JSON-LD Product{name="A"}`, `JSON-LD Product{name="C"}`}},
		{"vocabulary in names",
			script(`{"@type":"http://schema.org/Product","schema:name":"A","http://schema.org/sku":"1","gs1:gtin":"2"}`),
			[]string{`JSON-LD Product{name="A" sku="1" gs1:gtin="2"}`}},
		{"vocabulary without a scheme",
			script(`{"@type":"schema.org/Product","//schema.org/name":"A"}`),
			[]string{`JSON-LD Product{name="A"}`}},
		{"value, list, set",
			script(`{"@type":"Product","name":{"@value":"A","@language":"de"},"x":{"@list":[1,2]},"y":{"@set":["c"]}}`),
			[]string{`JSON-LD Product{name="A" x=1|2 y="c"}`}},
		{"trailing and missing commas",
			script(`{"@type":"Product","name":"A","tags":["x","y",],"sku":"1" "mpn":"2",}`),
			[]string{`JSON-LD Product{name="A" tags="x"|"y" sku="1" mpn="2"}`}},
		{"raw newlines", script("{\"@type\":\"Product\",\"name\":\"A\nB\tC\"}"),
			[]string{`JSON-LD Product{name="A\nB\tC"}`}},
		{"CDATA in a comment", script("//<![CDATA[\n{\"@type\":\"Product\",\"name\":\"A\"}\n//]]>"),
			[]string{`JSON-LD Product{name="A"}`}},
		{"CDATA on one line", script(`//<![CDATA[ {"@type":"Product","name":"A"} //]]>`),
			[]string{`JSON-LD Product{name="A"}`}},
		{"CDATA in a block comment", script(`/*<![CDATA[*/{"@type":"Product","name":"A"}/*]]>*/`),
			[]string{`JSON-LD Product{name="A"}`}},
		{"bare CDATA", script(`<![CDATA[{"@type":"Product","name":"A"}]]>`),
			[]string{`JSON-LD Product{name="A"}`}},
		{"HTML comment around", script("<!--\n{\"@type\":\"Product\",\"name\":\"A\"}\n-->"),
			[]string{`JSON-LD Product{name="A"}`}},
		{"HTML comment before",
			script("<!-- by a plugin -->\n{\"@type\":\"Product\",\"name\":\"A\"}"),
			[]string{`JSON-LD Product{name="A"}`}},
		{"comments", script("// made by\n{ /* x */ \"@type\":\"Product\", // y\n\"name\":\"A\"}"),
			[]string{`JSON-LD Product{name="A"}`}},
		{"escaped as a whole",
			script(`{&quot;@type&quot;:&quot;Product&quot;,&quot;name&quot;:&quot;A &amp;amp; B&quot;}`),
			[]string{`JSON-LD Product{name="A & B"}`}},
		{"escaped values",
			script(`{"@type":"Product","name":"Tom &amp; Jerry&#39;s &quot;best&quot;","url":"/?a=1&copy=2&amp;b=3"}`),
			[]string{`JSON-LD Product{name="Tom & Jerry's \"best\"" url="/?a=1&copy=2&b=3"}`}},
		{"several values in one block",
			script(`{"@type":"Product","name":"A"}{"@type":"Product","name":"B"};`),
			[]string{`JSON-LD Product{name="A"}`, `JSON-LD Product{name="B"}`}},
		{"cut before the end", script(`{"@type":"Product","name":"A","offers":{"price":1`),
			[]string{`JSON-LD Product{name="A" offers={price=1}}`}},
		{"the last of a name counts", script(`{"@type":"Product","name":"A","sku":"1","name":"B"}`),
			[]string{`JSON-LD Product{name="B" sku="1"}`}},
		{"escapes", script(`{"@type":"Product","name":"\u00e9\ud83d\ude00\/\'\ud83d"}`),
			[]string{`JSON-LD Product{name="é😀/'�"}`}},
		{"odd numbers are text",
			script(`{"@type":"Product","a":007,"b":.5,"c":1e400,"d":-0.0,"e":12345678901234567890.10}`),
			[]string{`JSON-LD Product{a="007" b=".5" c=1e400 d=-0.0 e=12345678901234567890.10}`}},
		{"type with parameters",
			`<script type="Application/LD+JSON; charset=utf-8">{"@type":"Product","name":"A"}</script>`,
			[]string{`JSON-LD Product{name="A"}`}},
		{"not data", script(`function(){}`) + script(``) + script(`"text"`), nil},
		{"microdata", `<div itemscope itemtype="https://schema.org/Product" itemid="urn:1"><h1 itemprop="name"> A <b>kettle</b></h1>
			<img itemprop="image" src="/i.jpg"><a itemprop="url" href="x">y</a><span itemprop="price" content="12.30">€ 12,30</span>
			<div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><meta itemprop="priceCurrency" content="EUR">
			<time itemprop="validFrom" datetime="2026-01-02">soon</time><data itemprop="sku" value="7">seven</data></div>
			<p itemprop="name alternateName">B</p></div>`,
			[]string{`microdata Product#urn:1{name="A kettle"|"B" image="https://shop.example/i.jpg" url="https://shop.example/p/x" ` +
				`price="12.30" offers=Offer{priceCurrency="EUR" validFrom="2026-01-02" sku="7"} alternateName="B"}`}},
		{"itemref",
			`<p id="x"><span itemprop="sku">1</span></p><div itemscope itemref="x y x" itemtype="Product" id="y"><b itemprop="name">A</b></div>`,
			[]string{`microdata Product{name="A" sku="1"|"1"}`}},
		{"scopes without a property stand alone",
			`<div itemscope itemtype="Product"><b itemprop="name">A</b><div itemscope itemtype="Review"><b itemprop="author">B</b></div></div><i itemprop="x">-</i>`,
			[]string{`microdata Product{name="A"}`, `microdata Review{author="B"}`}},
		{"the text of a nested item", `<div itemscope itemtype="Article"><a itemprop="author" itemscope itemtype="Person" href="/j"> Jane <b>Doe</b></a>
			<meta itemprop="editor" itemscope itemtype="Person" content="Jim"><i itemprop="publisher" itemscope itemid="#p">P</i><i itemprop="x" itemscope></i></div>`,
			[]string{`microdata Article{author=Person{name="Jane Doe"} editor=Person{name="Jim"} publisher=##p{} x={}}`}},
		{"the text of a nested item in RDFa",
			`<div vocab="https://schema.org/" typeof="Article"><span property="author" typeof="Person">Jane Doe</span></div>`,
			[]string{`RDFa Article{author=Person{name="Jane Doe"}}`}},
		{"RDFa Lite", `<div vocab="https://schema.org/" typeof="Product" resource="#p"><span property="name">A</span><img property="image" src="i.jpg">
			<div property="offers" typeof="Offer"><meta property="price" content="1.20"><link property="availability" href="https://schema.org/InStock"></div></div>`,
			[]string{`RDFa Product##p{name="A" image="https://shop.example/p/i.jpg" offers=Offer{price="1.20" availability="https://schema.org/InStock"}}`}},
		{"RDFa with prefixes", `<div xmlns:v="http://rdf.data-vocabulary.org/#" typeof="v:Product"><span property="v:name">A</span>
			<span rel="v:offerDetails"><span typeof="v:Offer"><span property="v:price" content="5">five</span></span></span></div>
			<div prefix="s: http://schema.org/ dc: http://purl.org/dc/terms/" typeof="s:Article"><b property="dc:title">T</b><b property="s:author">U</b></div>`,
			[]string{`RDFa Product{name="A" offerDetails=Offer{price="5"}}`,
				`RDFa Article{dc:title="T" author="U"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := read(t, c.page)
			if diff := cmp.Diff(c.want, outlines(d)); diff != "" || d.Cut {
				t.Errorf("cut %v, items (-want +got):\n%s", d.Cut, diff)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	d := read(t,
		script(`{"@graph":[{"@type":"Product","@id":"#p","offers":{"@id":"#o"},"brand":{"@id":"#none"}},{"@type":"Offer","@id":"#o","price":1}]}`))
	product := d.Items[0]
	if got := outline(d.Follow(product.Get("offers")[0].Item)); got != `Offer##o{price=1}` {
		t.Errorf("offers lead to %s", got)
	}
	if got := outline(d.Follow(product.Get("brand")[0].Item)); got != `##none{}` {
		t.Errorf("a reference without target leads to %s", got)
	}
	if !product.Is("thing", "product") || product.Is("Offer") || product.Text("offers") != "" {
		t.Error("types or texts of the product are wrong")
	}
}

func TestHead(t *testing.T) {
	d := read(t, `<html lang=de><head><base href="/base/"><title> A
		page </title><link rel="canonical" href="p"><meta property="og:title" content=" T "><meta name="description" content="">
		<meta name="Description" content="D"><meta charset="utf-8"></head><body><h1>One</h1><svg><title>no</title></svg><h1>T<i>w</i>o<p>x</h1>`)
	got := []any{d.Lang, d.Title, d.Canonical, d.Headings, d.Meta,
		d.MetaValue("twitter:title", "OG:title"), d.MetaValue("description"), d.MetaValue("x")}
	want := []any{"de", "A page", "https://shop.example/base/p", []string{"One", "Two x"},
		[]Pair{{"og:title", "T"}, {"description", ""}, {"Description", "D"}}, "T", "D", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFramework(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       []string
	}{
		{"Next.js",
			`<script id="__NEXT_DATA__" type="application/json">{"props":{"price":1.50}}</script>`,
			[]string{`__NEXT_DATA__ {"props":{"price":1.50}}`}},
		{"a variable",
			`<script>window.__INITIAL_STATE__ = {"a":{"b":[1,2]},"c":"=;{"};(function(){var s;}())</script>`,
			[]string{`__INITIAL_STATE__ {"a":{"b":[1,2]},"c":"=;{"}`}},
		{"in brackets, loose",
			`<script>window["__STATE__"]={a:'one',b:undefined,c:[1,],};</script>`,
			[]string{`__STATE__ {"a":"one","b":null,"c":[1]}`}},
		{"declared",
			`<script>var x=1; const state = {"product":{"id":1}}; let y={"z":"0123456789"}</script>`,
			[]string{`state {"product":{"id":1}}`, `y {"z":"0123456789"}`}},
		{"JSON.parse", `<script>self.DATA=JSON.parse("{\"a\":\"\\u00e9\",\"b\":[1,2,3]}")</script>`,
			[]string{`DATA {"a":"\u00e9","b":[1,2,3]}`}},
		{"an attribute",
			`<div id=app data-page="{&quot;props&quot;:{&quot;id&quot;:17}}" data-x="{}"></div>`,
			[]string{`data-page {"props":{"id":17}}`}},
		{"attributes of any name",
			`<x :list='[{"id":1},{"id":2}]' wire:snapshot="{&quot;data&quot;:{&quot;id&quot;:17}}" title="[Sale] of 20 lamps" class="[&>b]:font-bold" :class="{on: isOn, off: 1}">`,
			[]string{`:list [{"id":1},{"id":2}]`, `wire:snapshot {"data":{"id":17}}`}},
		{"a call",
			`<script>window.__NUXT__=(function(a,b,$,d,e){return {x:a,y:[a,b,$],z:{d:d,e:e,"a":.5}}}("a \u002F b",-1.50,{},void 0));window.more={"a":"0123456789"}</script>`,
			[]string{`__NUXT__ {"x":"a / b","y":["a / b",-1.50,{}],"z":{"d":null,"e":null,"a":".5"}}`,
				`more {"a":"0123456789"}`}},
		{"a call without names",
			`<script>window.__NUXT__=(function(){return {data:[{"a":1}]}}());</script>`,
			[]string{`__NUXT__ {"data":[{"a":1}]}`}},
		{"a call that does more",
			`<script>window.__NUXT__=(function(a){a.b=1;return {x:a}}({}));window.f=(function(a){return {x:b}}(1));window.g=(function(a){return {x:a}+1}(1))</script>`,
			nil},
		{"streamed",
			`<script>self.__next_f.push([1,"0:[\"$\",\"div\",null,{\"price\""])</script><script>self.__next_f.push([1,":3}]\n1:I[1]\n"])</script>`,
			[]string{`__next_f [["$","div",null,{"price":3}]]`}},
		{"Nuxt 3",
			`<script type="application/json" id="__NUXT_DATA__">[["Reactive",1],{"data":2,"none":-1},["ShallowRef",3],{"name":4,"tags":5},"Kettle",[4,6],7.50]</script>`,
			[]string{`__NUXT_DATA__ {"data":{"name":"Kettle","tags":["Kettle",7.50]},"none":null}`}},
		{"code is no data",
			`<script>window.f = {a: function(){ return {b:1} }, c: d}; x.y = {"a":"0123456789012345"}; if (window.a === {"a":"0123456789012345"}) {}</script>`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, b := range read(t, c.page).Framework {
				if !json.Valid([]byte(b.JSON)) {
					t.Errorf("%s is not JSON: %s", b.Name, b.JSON)
				}
				got = append(got, b.Name+" "+b.JSON)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Values that a page names once and uses often stay within the bound.
func TestRepeatedValuesAreBounded(t *testing.T) {
	const times = 20_000
	long := `"` + strings.Repeat("x", 8_000) + `"`
	control := `"` + strings.Repeat("\\u0001", 2_000) + `"`
	refs := strings.Repeat(",1", times)
	for name, got := range map[string]string{
		"texts":    revive(`[[1`+refs+`],`+long+`]`, maxParsed),
		"controls": revive(`[[1`+refs+`],`+control+`]`, maxParsed),
		"names":    revive(`[[1`+refs+`],{`+long+`:2},1]`, maxParsed),
	} {
		if len(got) > maxParsed+maxParsed/100 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	d := read(t, `<script>window.a=(function(a){return {list:[a`+strings.Repeat(",a", times)+
		`]}}(`+long+`))</script>`)
	if len(d.Framework) > 0 || !d.Cut {
		t.Errorf("a call: %d blobs, cut: %t", len(d.Framework), d.Cut)
	}
	// Each call stays below the bound, but not all together.
	d = read(t, strings.Repeat(`<script>window.a=(function(a){return {list:[a`+
		strings.Repeat(",a", times/5)+`]}}(`+long+`))</script>`, 4))
	size := 0
	for _, b := range d.Framework {
		size += len(b.JSON)
	}
	if size > maxParsed || len(d.Framework) == 0 || !d.Cut {
		t.Errorf("calls: %d blobs of %d bytes, cut: %t", len(d.Framework), size, d.Cut)
	}
}

// Attributes take neither a variable's name nor its place.
func TestAttributesYield(t *testing.T) {
	d := read(t, `<island config='{"from":"an attribute"}'></island>`+
		`<script>var config={"from":"a variable"}</script>`)
	var names []string
	for _, b := range NamedBlobs(d.Framework) {
		names = append(names, b.Name+" "+b.JSON)
	}
	want := []string{`config {"from":"a variable"}`, `config_2 [{"from":"an attribute"}]`}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d = read(t, strings.Repeat(`<p x-data='{"open":false,"id":1}'></p>`, maxBlocks+1)+
		`<script id=__NEXT_DATA__ type=application/json>{"props":{"name":"Lamp"}}</script>`)
	if last := d.Framework[len(d.Framework)-1]; last.Name != "__NEXT_DATA__" || !d.Cut {
		t.Errorf("of %d blobs the last is %s, cut: %t", len(d.Framework), last.Name, d.Cut)
	}
}

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       []Pair
	}{
		{"table",
			`<table><tr><th colspan=2>Facts</th></tr><tr><th>Brand:</th><td>Acme <b>Ltd</b></td></tr><tr><td>Weight</td><td>1,5 kg</td></tr></table>`,
			[]Pair{{"Brand", "Acme Ltd"}, {"Weight", "1,5 kg"}}},
		{"head and one row",
			`<table><thead><tr><th>SKU</th><th>Price</th><th>Stock</th></tr></thead><tbody><tr><td>1</td><td>2</td><td>3</td></tr></table>`,
			[]Pair{{"SKU", "1"}, {"Price", "2"}, {"Stock", "3"}}},
		{"a list is no fact sheet",
			`<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td><td>3</td></tr><tr><td>1</td><td>2</td><td>3</td></tr></table>`, nil},
		{"layout",
			`<table><tr><td>Menu</td><td><table><tr><td>EAN</td><td>4006381333931</td></tr></table></td></tr></table>`,
			[]Pair{{"EAN", "4006381333931"}}},
		{"definitions",
			`<dl><dt>Brand</dt><dd>Acme</dd><div><dt>Colours:</dt><dd>red</dd><dd>blue</dd></div><dt>None</dt></dl>`,
			[]Pair{{"Brand", "Acme"}, {"Colours", "red, blue"}}},
		{"lines",
			`<ul><li><b>Brand:</b> Acme</li><li><span>MPN</span>: X-1</li><li><b>Note</b> that</li><li>Just: text</li></ul>`,
			[]Pair{{"Brand", "Acme"}, {"MPN", "X-1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read(t, c.page).Pairs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCostlyMarks: repeated attributes and white space are read up to a bound, and Cut says so.
func TestCostlyMarks(t *testing.T) {
	repeat := strings.Repeat
	var declared strings.Builder
	for i := range 140 {
		declared.WriteString("<div")
		for k := range 999 {
			fmt.Fprintf(&declared, " xmlns:p%d_%d=v", i, k)
		}
		declared.WriteString(">")
	}
	for name, page := range map[string]string{
		"prefixes": `<div typeof=Product>` + declared.String() + `<b property=name>x</b>`,
		"names of RDFa": `<div typeof=Product><b property="name ` + repeat("zz:y ", 800_000) +
			`">x</b>`,
		"names that are none": `<b id=a itemprop="` + repeat("schema.org// ", 300_000) + `">x</b>` +
			`<p itemscope itemtype=Product itemref="` + repeat("a ", 499) + `">` +
			`<b itemprop=name>x</b>`,
		"types": `<b id=a itemprop=b itemscope itemtype="` + repeat("y ", 1_500_000) + `"></b>` +
			`<p itemscope itemtype=Product itemref="` + repeat("a ", 499) + `">`,
		"white space": repeat("<h1><div>", 240) + repeat(" ", 9_000_000) + "x",
		"elements":    repeat("<h1><div>", 240) + repeat("<b></b>", 100_000),
		"declared and named": `<div typeof=Product>` + declared.String() + `<b property="` +
			repeat("zz:y ", 800_000) + `">x</b>`,
	} {
		t.Run(name, func(t *testing.T) {
			if d := read(t, page); !d.Cut {
				t.Error("nothing is cut")
			}
		})
	}
	d := read(t, `<div typeof="s:Product" prefix="s: http://schema.org/" xmlns:t="http://schema.org/">`+
		`<b property="t:name">`+repeat("  a \u00a0 b ", 3)+`</b>`)
	if got := outlines(d); d.Cut || len(got) != 1 || got[0] != `RDFa Product{name="a b a b a b"}` {
		t.Errorf("%q, cut %v", got, d.Cut)
	}
}

// TestBaseOffTheWeb: a base element whose address is not on the web does not count.
func TestBaseOffTheWeb(t *testing.T) {
	for _, base := range []string{"javascript:x", "about:blank", "data:,"} {
		d := read(t, `<base href="`+base+`"><link rel=canonical href="/c">`)
		if want := "https://shop.example/c"; d.Canonical != want || d.Resolve("/c") != want {
			t.Errorf("%s: %s, %s", base, d.Canonical, d.Resolve("/c"))
		}
	}
}
