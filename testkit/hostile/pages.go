package hostile

import "fmt"

// Page is a complete page that is hard to read.
type Page struct {
	Name        string
	ContentType string
	Body        func() string // at most 10 MiB
}

func html(name string, body func() string) Page { return Page{name, "text/html", body} }

func inJSON(name string, body func() string) Page { return Page{name, "application/json", body} }

// script is a page with data in a script.
func script(name, attrs string, data func() string) Page {
	return html(name, func() string {
		return "<h1>x</h1><script " + attrs + ">" + data() +
			"</script>"
	})
}

const linked = `type="application/ld+json"`

// numbered repeats a format for each number, which replaces %d.
func numbered(n int, format string) string {
	var all []byte
	for i := range n {
		all = fmt.Appendf(all, format, i)
	}
	return string(all)
}

// lettered is a word of letters for each number, each followed by end.
func lettered(from, to int, end string) string {
	var all []byte
	for i := range to - from {
		for k, rest := 0, from+i; k < 4; k++ {
			all = append(all, byte('a'+rest%26))
			rest /= 26
		}
		all = append(all, end...)
	}
	return string(all)
}

// Pages returns all pages: markup, structured data, text that resembles what is searched for,
// repeated structures, JSON.
func Pages() []Page {
	return append(append(markup(), data()...), content()...)
}

// markup returns pages that are hard for tree builders.
func markup() []Page {
	return []Page{
		html("deep", func() string { return many(200_000, "<div>") + "x" }),
		html("20,000 siblings",
			func() string { return "<body>" + many(20_000, "<p class=a><b>x</b>") + "</body>" }),
		html("two million siblings", func() string { return many(2_000_000, "<p>x") }),
		html("a million siblings in a table",
			func() string { return "<table>" + many(1_000_000, "<tr><td>") }),
		html("siblings of many attributes",
			func() string { return many(60_000, "<p "+many(40, "a=b ")+">") }),
		html("siblings of many attributes, misnested",
			func() string { return "<table>x" + many(60_000, "<p "+many(40, "a=b ")+">") }),
		html("a million attributes, misnested",
			func() string { return "<table>x<p " + many(1_000_000, "a=b ") + ">" }),
		html("nested frames", func() string {
			return many(20_000, "<iframe src=/>") + many(5000,
				"<frameset>")
		}),
		html("a tag of many attributes",
			func() string { return "<div " + many(100_000, "a=b ") + ">x</div>" }),
		html("a giant attribute",
			func() string { return `<a href="` + many(6<<20, "x") + `">x</a>` }),
		html("a comment without an end", func() string { return "<p>x<!--" + many(6<<20, "-") }),
		html("a script without an end",
			func() string { return "<p>x<script>" + many(1<<20, "</scrip") }),
		html("brackets", func() string { return many(4<<20, "<") }),
		html("entities", func() string { return many(1<<20, "&amp;&#x41") }),
		html("formatting that never closes",
			func() string { return many(20_000, "<b><i><a href=x>") }),
		html("formatting in the wrong order",
			func() string { return many(5_000, "<b><i><u></b></i></u><p>") }),
		html("tables in tables", func() string { return many(20_000, "<table><tr><td><a>") }),
		html("text where tables have none",
			func() string { return "<table>" + many(200_000, "x<b>") }),
		html("lists and headings", func() string { return many(50_000, "<li><h1><dd>") }),
		html("options", func() string { return "<select>" + many(100_000, "<option><optgroup>") }),
		html("templates", func() string { return many(50_000, "<template>") }),
		html("foreign elements",
			func() string { return many(20_000, "<svg><math><mi><foreignObject>") }),
		html("NUL everywhere", func() string { return many(4<<20, "\x00") }),
		html("as many elements as may be",
			func() string { return "<p>" + many(149_000, `<b a=b>x</b>`) + many(8<<20, "y") }),
		html("as many as detection takes",
			func() string {
				return "<p>" + many(74_000,
					`<b a="`+many(50, "c")+`">`+many(50, "x")+`</b>`)
			}),
		html("attributes of one tag",
			func() string { return "<p " + numbered(1_000_000, "a%d ") + ">x" }),
		html("a wide tag before many",
			func() string {
				return "<p " + numbered(100_000, "a%d ") + ">" + many(600_000,
					"<b>x</b>")
			}),
		html("formatting of many attributes",
			func() string {
				return many(20, "<b "+numbered(900, "a%d ")+">") + many(2000,
					"<p>x")
			}),
		html("cards in deep elements",
			func() string {
				return many(450, "<section>") + many(45_000,
					"<div class=card>x</div>")
			}),
		html("end tags alone",
			func() string { return many(500, "<z>") + "<x>" + many(2_500_000, "</y>") }),
		html("end tags of nothing in deep elements",
			func() string { return many(450, "<z>") + many(2_500_000, "</y>") }),
		html("end tags of sections in deep elements",
			func() string { return many(450, "<section>") + many(1_200_000, "</div>") }),
		html("text between end tags", func() string { return "<p>" + many(1_700_000, "x</z>") }),
		html("text between end tags of tables",
			func() string { return "<table>" + many(1_700_000, "x</z>") }),
		html("list items in deep elements",
			func() string { return many(500, "<z>") + many(140_000, "<li></li>") }),
		html("links in deep elements",
			func() string { return many(400, "<z>") + many(70_000, "<a><z></a></z>") }),
		html("many names", func() string { return numbered(140_000, "<z%d a%[1]d=b>x</z%[1]d>") }),
		html("a long class around many", func() string {
			return `<div class="` + many(3<<20, "x ") + `">` + many(90_000, "<b class=price></b>")
		}),
		html("white space in deep elements", func() string {
			return many(240, "<div class=price><h1 itemprop=a>") + many(9<<20, " ")
		}),
		html("an element that is cut off", func() string { return "<p>" + many(10<<20-4, "<") }),
	}
}

// data returns pages that are hard for readers of structured data.
func data() []Page {
	return []Page{
		script("deep JSON-LD", linked, func() string { return many(1<<20, "[") }),
		script("deep objects of JSON-LD", linked,
			func() string { return many(300_000, `{"offers":`) }),
		script("a graph of many", linked, func() string {
			return `{"@graph":[` + many(100_000,
				`{"@type":"Product","name":"x","offers":{"price":1}},`) + `{}]}`
		}),
		script("a circle of references", linked, func() string {
			return `{"@graph":[` + numbered(50_000,
				`{"@id":"#%[1]d","@type":"Product","isRelatedTo":{"@id":"#%[1]d1"}},`) + `{}]}`
		}),
		script("all refer to all", linked, func() string {
			return `{"@graph":[` + many(2000,
				`{"@id":"#a","@type":"Product","offers":[`+many(200, `{"@id":"#a"},`)+`{}]},`) +
				`{}]}`
		}),
		script("one refers to itself", linked, func() string { // in fewer bytes than the bound
			return `{"@id":"#a","@type":"Product","name":"x","offers":[` +
				many(250, `{"@id":"#a"},`) + `{}]}`
		}),
		script("pages of one list of one product", linked, func() string {
			return `{"@graph":[` + many(500, `{"mainEntity":{"@id":"#l"}},`) +
				`{"@id":"#l","@type":"ItemList","itemListElement":[` + many(500, `{"@id":"#p"},`) +
				`{}]},{"@id":"#p","@type":"Product","name":"x","offers":[` +
				many(500, `{"@id":"#o"},`) + `{}]},{"@id":"#o","price":[` + many(500, "1,") + `1]}]}`
		}),
		script("JSON-LD without an end", linked,
			func() string { return `{"name":"` + many(5<<20, "x") }),
		script("JSON-LD of commas", linked, func() string { return "{" + many(5<<20, ",") + "}" }),
		script("JSON-LD, escaped", linked,
			func() string { return `{"name":"` + many(1<<20, "&quot;") + `"}` }),
		script("JSON-LD of escapes", linked,
			func() string { return `{"name":"` + many(1<<20, `\ud83d`) + `"}` }),
		html("many blocks of JSON-LD", func() string {
			return many(60_000,
				`<script type="application/ld+json">{"@type":"Product","name":"x"}</script>`)
		}),
		html("many broken blocks of JSON-LD", func() string {
			return many(60_000,
				`<script type="application/ld+json">{"@type":"Product",,"name:</script>`)
		}),
		html("deep microdata", func() string {
			return many(60_000,
				`<div itemscope itemtype="https://schema.org/Product" itemprop="offers">`)
		}),
		html("many properties", func() string {
			return `<div itemscope itemtype="https://schema.org/Product">` + many(150_000,
				`<p itemprop="name">x</p>`)
		}),
		html("items that refer to each other", func() string {
			return numbered(20_000,
				`<div id="a%[1]d" itemscope itemtype="https://schema.org/Product" itemref="a%[1]d a%[1]d1 a1 a2 a3"><b itemprop=name>x</b></div>`)
		}),
		html("one item refers to all", func() string {
			return `<div itemscope itemtype="https://schema.org/Product" itemref="` + many(200_000,
				"a ") + `"></div>` + many(10_000, "<p id=a itemprop=name>x")
		}),
		html("deep RDFa", func() string {
			return many(60_000,
				`<div vocab="https://schema.org/" typeof="Product" property="offers">`)
		}),
		html("many metas", func() string {
			return many(150_000,
				`<meta property="og:title" content="x">`)
		}),
		html("a long table", func() string {
			return "<table>" + many(150_000,
				"<tr><th>Price<td>$1")
		}),
		html("a long list of terms",
			func() string { return "<dl>" + many(150_000, "<dt>Price<dd>$1") }),
		script("deep framework data", `id="__NEXT_DATA__" type="application/json"`,
			func() string { return many(300_000, `{"a":[`) }),
		script("wide framework data", `id="__NEXT_DATA__" type="application/json"`, func() string {
			return `{"props":[` + many(150_000, `{"name":"x","price":1},`) + `{}]}`
		}),
		script("a state without an end", "",
			func() string { return many(100_000, `window.__INITIAL_STATE__ = {"a":{"b":"`) }),
		script("framework data of one string", `id="__NEXT_DATA__" type="application/json"`,
			func() string { return `{"a":"` + many(9<<20, "x") + `"}` }),
		script("framework data as wide as may be", `id="__NEXT_DATA__" type="application/json"`,
			func() string {
				return `{"props":[` + many(65_000,
					`{"name":"x","price":1, "description":"`+many(100, "y")+`"},`) + `{}]}`
			}),
		script("nested framework data of Nuxt", `id="__NUXT_DATA__" type="application/json"`,
			func() string {
				return `[` + numbered(60_000, `[%d,%[1]d,%[1]d,%[1]d],`) + `0]`
			}),
		html("streamed framework data", func() string {
			return many(90_000,
				`<script>self.__next_f.push([1,"1:{\"name\":\"`+many(60, "x")+`\"}\n"])</script>`)
		}),
		html("data in attributes",
			func() string { return many(140_000, `<p data-a='{"name":"x","price":1,"a":"b"}'>x`) }),
		html("large data in attributes",
			func() string {
				return many(99,
					`<p data-a='{"name":"x","a":"`+many(100_000, "x")+`"}'>x`)
			}),
		script("a graph as large as may be", linked, func() string {
			return `{"@graph":[` + numbered(48_000,
				`{"@id":"#%d","@type":"Product","name":"`+many(120, "x")+
					`","offers":{"price":1}},`) + `{}]}`
		}),
		script("things that share a large one", linked, func() string {
			return `{"@graph":[{"@id":"#s","@type":"Offer","name":"y","offers":[` +
				many(10_000, `{"price":1},`) + `{}],` + numbered(400, `"a%d":"b",`) + `"c":1},` +
				numbered(20_000, `{"@type":"Product","name":"x%d","offers":{"@id":"#s"}},`) + `{}]}`
		}),
		html("prefixes in deep elements", func() string {
			return `<div typeof=Product>` + many(140, "<div "+numbered(900, "xmlns:a%d=b ")+">") +
				`<b property="` + many(800_000, "z:y ") + `">x</b>`
		}),
		html("types that others refer to", func() string {
			return `<b id=a itemprop=b itemscope itemtype="` + many(1_500_000, "y ") +
				`"></b><p itemscope itemref="` + many(499, "a ") + `">`
		}),
		script("a long name of JSON-LD", linked,
			func() string { return `{"@type":"Product","name":"` + many(9<<20, "x") + `"}` }),
		script("a long escaped name of JSON-LD", linked,
			func() string {
				return `{"@type":"Product","name":"` + many(1<<20, "x\\n&amp;") +
					`"}`
			}),
		html("properties of much text", func() string {
			return `<div itemscope itemtype="https://schema.org/Product">` + many(400,
				`<p itemprop="name">`+many(25_000, "x")+`</p>`)
		}),
		html("properties in properties", func() string {
			return `<div itemscope itemtype="https://schema.org/Product">` + many(400,
				`<b itemprop="name">`) + many(9<<20, "x")
		}),
		html("headings of much text",
			func() string { return many(400, "<h1>"+many(25_000, "x")+"</h1>") }),
		html("many scripts with states",
			func() string {
				return many(60_000,
					`<script>window.__STATE__={"product":{"name":"x"}}</script>`)
			}),
	}
}

// content returns pages that are hard for searches of addresses, prices, or repetition.
func content() []Page {
	return []Page{
		html("many mail addresses", func() string { return numbered(300_000, "a%d@a.example ") }),
		html("an endless mail address", func() string { return many(3<<20, "a.") + "@a.example" }),
		html("mail addresses without an end", func() string { return many(3<<20, "a@") }),
		html("mail addresses, half hidden",
			func() string { return many(400_000, "a [at] b [dot] ") }),
		html("many links for mail",
			func() string {
				return numbered(150_000,
					`<a href="mailto:a%d@a.example?subject=x">write</a>`)
			}),
		html("many links to contacts",
			func() string { return numbered(150_000, `<a href="/contact/%d">Contact</a>`) }),
		html("many profiles", func() string {
			return numbered(120_000,
				`<a href="https://www.facebook.com/a%d">us</a>`)
		}),
		html("many prices", func() string { return many(500_000, "$ 1,234.50 EUR ") }),
		html("an endless number", func() string { return "<b class=price>" + many(5<<20, "1,") }),
		html("white space", func() string { return "<p>" + many(5<<20, " \n") + "</p>" }),
		html("one long text", func() string { return "<p>" + many(950_000, "word &nbsp;") }),
		html("many short texts", func() string { return "<p>" + many(1<<20, "x<br>") }),
		html("many cards", func() string {
			return numbered(20_000,
				`<div class="card c%[1]d"><a href="/p/%[1]d"><img src=i.png><h2 class=n>Name %[1]d</h2></a><span class=price>$%[1]d</span></div>`)
		}),
		html("cards in cards",
			func() string {
				return many(20_000,
					`<div class=card><a href=/x>x</a><span>$1</span>`)
			}),
		html("a table of tables", func() string {
			return many(150, "<table>"+many(150, "<tr>"+many(10, "<td><a href=/x>x</a>"))+
				"</table>")
		}),
		html("many classes", func() string {
			return `<p class="` + numbered(400_000, "c%d ") + `">x</p>` + many(5000,
				"<p class=c1>x")
		}),
		html("many classes of letters alone", func() string {
			return `<p class="` + lettered(0, 400_000, " ") + `">x</p>` + many(5000, "<p class=c1>x")
		}),
		html("many classes of modules", func() string {
			return many(2, `<p class="`+lettered(0, 200_000, "__abcde ")+`">x</p>`)
		}),
		html("many classes of many elements", func() string {
			return many(2500, `<p class="`+lettered(0, 80, " ")+`">x</p><p class="`+
				numbered(80, "c%d ")+`">x</p>`)
		}),
		html("styles in a table, and what belongs before it", func() string {
			return "<table>" + many(20_000, "<bdo></bdo><b></b><style>.a{}</style>")
		}),
		html("a long title", func() string {
			return "<title>" + numbered(200_000, "+49 30 %d ") + "</title><p>x"
		}),
		html("blank elements in a heading", func() string {
			return "<h1>x" + many(50_000, "<a><wbr></a> <hr>")
		}),
		html("raised cents alone", func() string {
			cents := many(50_000, "1<sup>95</sup>")
			return "<h1>" + cents + "</h1><p>" + cents
		}),
		html("long addresses of scripts", func() string {
			return many(200, `<script src="`+many(40_000, "a")+`"></script>`) + "<p>x"
		}),
		html("titles alone", func() string {
			return numbered(10_000, "<meta property=og:title content='x %d'><h1>x y</h1>")
		}),
		html("named things and captions", func() string {
			return numbered(20_000, "<p itemscope itemtype=//schema.org/Article>"+
				"<b itemprop=name>Text %d about me</b>")
		}),
		html("bylines alone", func() string {
			return "<h1>x</h1>" + numbered(60_000, "<b class=byline>by no one %d of us. Or so.</b>")
		}),
		html("headings alone", func() string { return many(200_000, "<h1>x</h1>") }),
		html("links alone", func() string {
			return numbered(150_000,
				`<a href="//h%d.example/">x</a>`)
		}),
		inJSON("deep arrays", func() string { return many(5<<20, "[") }),
		inJSON("deep objects",
			func() string { return many(1<<20, `{"a":`) + "1" + many(1<<20, "}") }),
		inJSON("a wide object",
			func() string { return "{" + numbered(400_000, `"k%d":{"a":1},`) + `"a":1}` }),
		inJSON("one key again and again",
			func() string { return "{" + many(800_000, `"a":1,`) + `"a":1}` }),
		inJSON("many rows", func() string {
			return `{"items":[` + many(400_000, `{"a":1,"b":2},`) +
				`{}]}`
		}),
		inJSON("numbers that no one counts",
			func() string { return "[" + many(200_000, "1e999999999,") + many(1<<20, "9") + "]" }),
		inJSON("escapes", func() string { return `["` + many(1<<20, `\u0000`) + `"]` }),
		inJSON("as many values as may be",
			func() string {
				return `{"items":[` + many(160_000, `{"name":"x","price":2},`) +
					`{}]}`
			}),
		inJSON("many escaped names", func() string {
			return `{"items":[` + many(160_000, `{"\u0061bcdefghijklmnop":"x","\u0062":2},`) +
				`{}]}`
		}),
		inJSON("one long string", func() string { return `{"a":"` + many(10<<20-9, "x") + `"}` }),
		inJSON("one long escaped string",
			func() string { return `{"a":"` + many(5<<20-9, `\n`) + `"}` }),
		inJSON("nearly JSON", func() string { return `{"a":` + many(3<<20, " ") + "x" }),
		inJSON("trees of arrays", func() string {
			return many(10, "["+many(12,
				"["+many(12, "["+many(12, "["+many(12, "[1,2],")+"0],")+"0],")+"0],")+"0],")
		}),
	}
}
