package hostile

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// Random returns a page of n similar parts, made from a seed. It has elements with attributes, one
// attribute with many words, or one long text. Reading it should take n times as long as one part.
// In each part {n} is its number and {w} its own word.
func Random(seed uint64) func(n int) string {
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	switch m.IntN(4) {
	case 0:
		return m.attribute()
	case 1:
		return m.text()
	}
	return m.siblings()
}

// maker makes parts of pages.
type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.IntN(len(of))] }

// siblings makes elements in one place, perhaps nested.
func (m maker) siblings() func(n int) string {
	part, head := "", ""
	for range 1 + m.IntN(3) {
		part += m.element(3)
	}
	if m.IntN(2) == 0 {
		head = m.element(2) + m.one("<div>", "<ul>", "<table>", "<article>", "<main>", "<p>",
			"<h1>", "<a href=/x>", "<dl>", "<span class=price>")
	}
	return func(n int) string { return head + fill(part, n) }
}

// attribute makes an attribute of many words, in a few elements.
func (m maker) attribute() func(n int) string {
	key := m.one("class", "id", "rel", "itemprop", "itemref", "itemtype", "typeof", "property",
		"data-x", "href", "style", "title", "aria-label", "content", "alt", "srcset", "sizes")
	word := m.one(m.word(), m.phrase()) + m.one(" ", ", ", ";", "-", "_", "/", "&amp;", "=", "?")
	word = strings.NewReplacer(`"`, "", "<", "").Replace(word)
	open := m.one("<div ", "<p ", "<a ", "<h1 ", "<img ", "<meta ", "<span ", "<link ", "<body ",
		"<time ", "<li ", "<article itemscope ")
	before, after, times := m.element(1), m.element(2), 1+m.IntN(3)
	return func(n int) string {
		return before + many(times, open+key+`="`+fill(word, n/times)+`">text`+after)
	}
}

// text makes one long text in one element.
func (m maker) text() func(n int) string {
	word := m.phrase() + m.one(" ", "\n", ", ", "@", ".", "<br>", "(", "[", "- ", "\u00a0")
	name := m.one("div", "p", "h1", "title", "td", "time", "script", "style", "textarea", "pre")
	attr := m.one("", " class=price", " itemprop=price", " type='application/ld+json'", " href=/x")
	return func(n int) string {
		return "<h1>x</h1><" + name + attr + ">" + fill(word, n) + "</" + name + "><p>end"
	}
}

// element makes an element with its content. Some are not closed.
func (m maker) element(depth int) string {
	name := m.one("div", "p", "a", "span", "li", "tr", "td", "h1", "h2", "section", "article", "b",
		"ul", "table", "dl", "dt", "dd", "time", "img", "meta", "link", "small", "select", "option",
		"form", "input", "iframe", "del", "button", "nav", "figure", "script", "style", "label",
		"address", "svg", "noscript", "template", "main", "header", "bdo")
	switch name {
	case "script":
		return m.one(`<script type="application/ld+json">{"@type":"Product","name":"{w}","offers":`+
			`{"price":"{n}","priceCurrency":"EUR"},"@id":"#{w}","author":{"@id":"#{w}"}}</script>`,
			`<script>var x{n}={"price":{n},"name":"{w}"};</script>`,
			`<script>document.write("`+m.phrase()+`")</script>`,
			`<script type="application/json">[{"a":{n},"title":"{w}","url":"/p/{n}"}]</script>`)
	case "style":
		return "<style>." + m.word() + "{" + m.one("display:none", "content:'{w}'",
			"direction:rtl") + "}</style>"
	}
	whole := "<" + name
	for range m.IntN(3) {
		whole += " " + m.given()
	}
	whole += ">"
	for range m.IntN(3) {
		if depth > 0 && m.IntN(2) == 0 {
			whole += m.element(depth - 1)
		} else {
			whole += m.phrase()
		}
	}
	if m.IntN(5) > 0 {
		whole += "</" + name + ">"
	}
	return whole
}

// given makes an attribute of an element.
func (m maker) given() string {
	return m.one(`class="`+m.word()+" "+m.word()+`"`, `id="`+m.word()+`"`, `href="`+m.one("/p/{n}",
		"?page={n}", "//h{n}.example/", "mailto:a{n}@b.example", "tel:+49{n}", "/author/{w}",
		"#{w}", "javascript:x('{w}')")+`"`, `itemprop="`+m.one("name", "price", "offers", "author",
		"sku", "url", "{w}")+`"`, `itemscope itemtype="https://schema.org/`+m.one("Product", "Offer",
		"Article", "Person", "ItemList", "{w}")+`"`, `data-`+m.one("price", "id", "email", "sku",
		"{w}")+`="`+m.word()+`"`, `style="`+m.one("display:none", "color:red", "{w}:{n}",
		"direction:rtl;unicode-bidi:bidi-override")+`"`, `rel="`+m.one("next", "author", "bookmark",
		"{w}")+`"`, `itemref="`+m.word()+" "+m.word()+`"`, `property="`+m.one("og:title",
		"schema:price", "v:{w}")+`"`, `typeof="`+m.one("Product", "schema:Offer", "{w}")+`"`,
		`aria-label="`+m.phrase()+`"`, `title="`+m.phrase()+`"`, `content="`+m.phrase()+`"`)
}

// word makes a name.
func (m maker) word() string {
	return m.one("{w}", "a{w}", "c{n}", "{w}__abcde", "item-{w}", "is-{w}", "Abc{w}Def", "x_{w}_y",
		"sku{n}", "page-{n}", "price", "old-price", "product-card", "title", "author", "byline",
		"next", "pagination", "rating", "email", "name", "sidebar", "comment", "share",
		"2024-01-02")
}

// phrase makes a text.
func (m maker) phrase() string {
	return m.one("$1{n}.99", "info{n}@shop{n}.example", "info [at] shop{w} [dot] com", "+49 30 {n}",
		"Jan {n}, 2024", "word {w}", "By John {w}", "{w}", "{n}", "1,{n} kr", "Page {n} of 9",
		"Next", "»", "“quote {w}”", "https://x.example/{w}/{n}", "4.5 out of 5 ({n})", "5 x {n} cm",
		"Tel: 030 {n}", "a@", "&amp;{w}", "Add to cart", "SKU: {n}", "Read more", "by", "EUR {n},-",
		"Published on 3 May 20{n}", "{w} {w} {w} {w} {w}. {w} {w} {w}.", "\u00ad{w}", "in stock",
		"Contact: {w} (at) {w} (dot) com", "<br>")
}

// fill makes n parts.
func fill(part string, n int) string {
	var all strings.Builder
	for i := range n {
		word := strings.TrimSuffix(lettered(i, i+1, " "), " ")
		_, _ = strings.NewReplacer("{n}", strconv.Itoa(i), "{w}", word).WriteString(&all, part)
	}
	return all.String()
}
