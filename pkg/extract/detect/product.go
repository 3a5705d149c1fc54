package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/price"
	"shoal.dev/shoal/pkg/model"
)

// known are places where pages of one thing commonly say something: selectors that other pages of the site have, too.
// The first that has a value counts.
var known = []struct {
	name   string
	places []model.Field
}{
	{"description", []model.Field{attr("description", "[itemprop=description][content]", "content"), text("description", "[itemprop=description]"),
		attr("description", `meta[name="description"]`, "content"), attr("description", `meta[property="og:description"]`, "content")}},
	{"image", []model.Field{attr("image", `meta[property="og:image"]`, "content"), attr("image", "img[itemprop=image]", "src")}},
	{"brand", []model.Field{text("brand", "[itemprop=brand] [itemprop=name]"), attr("brand", "[itemprop=brand][content]", "content"),
		text("brand", "[itemprop=brand]"), attr("brand", `meta[property="product:brand"]`, "content")}},
	{"sku", []model.Field{attr("sku", "[itemprop=sku][content]", "content"), text("sku", "[itemprop=sku]")}},
	{"availability", []model.Field{attr("availability", "[itemprop=availability][href]", "href"),
		attr("availability", "[itemprop=availability][content]", "content"), text("availability", "[itemprop=availability]")}},
	{"rating", []model.Field{attr("rating", "[itemprop=ratingValue][content]", "content"), text("rating", "[itemprop=ratingValue]")}},
	{"reviewCount", []model.Field{attr("reviewCount", "[itemprop=reviewCount][content]", "content"), text("reviewCount", "[itemprop=reviewCount]")}},
	{"date", []model.Field{attr("date", `meta[property="article:published_time"]`, "content"), attr("date", "article time[datetime]", "datetime"),
		attr("date", "time[datetime]", "datetime")}},
	{"author", []model.Field{text("author", "[itemprop=author] [itemprop=name]"), text("author", "[rel=author]"),
		attr("author", `meta[name="author"]`, "content")}},
	{"content", []model.Field{text("content", "[itemprop=articleBody]"), text("content", "article .entry-content"), text("content", "article .post-content")}},
}

func text(name, css string) model.Field {
	return model.Field{Name: name, Selector: css, Kind: model.Text}
}

func attr(name, css, attribute string) model.Field {
	return model.Field{Name: name, Selector: css, Kind: model.Attr, Attr: attribute}
}

// product finds the fields of a page that is about one thing; none when there is no such thing.
func (p *probe) product(lists []list) []model.Field {
	heading := p.heading()
	if heading == nil {
		return nil
	}
	css := p.sel.first(heading)
	if css == "" {
		return nil
	}
	fields := append([]model.Field{text("title", css)}, p.amounts(heading, lists)...)
	priced := len(fields) > 1
	for _, k := range known {
		if priced && (k.name == "author" || k.name == "content" || k.name == "date") {
			continue
		}
		for _, place := range k.places {
			if p.says(place) {
				fields = append(fields, place)
				break
			}
		}
	}
	fields = append(fields, p.labelled(heading, lists, fields)...)
	if !priced && !has(fields, "content") && (!has(fields, "date") || !has(fields, "author") && !has(fields, "description")) {
		return nil
	}
	return fields
}

func has(fields []model.Field, name string) bool {
	return slices.ContainsFunc(fields, func(f model.Field) bool { return f.Name == name })
}

// says whether a field has a value on this page.
func (p *probe) says(f model.Field) bool {
	matches := p.sel.all(f.Selector)
	if len(matches) == 0 {
		return false
	}
	if f.Kind == model.Attr {
		return strings.TrimSpace(attribute(matches[0], f.Attr)) != ""
	}
	return textOf(matches[0]) != ""
}

// heading is the page's main heading.
func (p *probe) heading() *html.Node {
	for _, css := range [...]string{"[itemtype*=Product] > h1", "h1[itemprop=name]", "main h1", "article h1", "h1"} {
		for _, n := range p.sel.all(css) {
			if textOf(n) != "" {
				return n
			}
		}
	}
	return nil
}

// first finds a selector whose first match in the page is an element, "" if there is none.
func (s *selectors) first(n *html.Node) string {
	fits := func(css string) bool {
		matches := s.all(css)
		return len(matches) > 0 && matches[0] == n
	}
	own := simple(n)
	for _, css := range own {
		if len(s.all(css)) == 1 && fits(css) {
			return css
		}
	}
	at := n.Parent
	for range 5 {
		if at == nil || at.Type != html.ElementNode || at.Data == "html" {
			break
		}
		holders := simple(at)
		if id := attribute(at, "id"); identifier.MatchString(id) && isStable(id) {
			holders = append([]string{"#" + id}, holders...)
		}
		for _, holder := range holders {
			if holder == at.Data && at.Data != "main" && at.Data != "article" {
				continue
			}
			for _, css := range own {
				if joined := holder + " " + css; fits(joined) {
					return joined
				}
			}
		}
		at = at.Parent
	}
	for _, css := range own {
		if fits(css) {
			return css
		}
	}
	return ""
}

// amounts are the price of what the heading names, and what it was before.
func (p *probe) amounts(heading *html.Node, lists []list) []model.Field {
	var fields []model.Field
	for _, place := range []model.Field{attr("price", "[itemprop=price][content]", "content"), text("price", "[itemprop=price]"),
		attr("price", `meta[property="product:price:amount"]`, "content"), attr("price", `meta[property="og:price:amount"]`, "content")} {
		if matches := p.sel.all(place.Selector); p.says(place) && !inLists(lists, matches[0]) {
			fields = append(fields, place)
			break
		}
	}
	for _, currency := range []model.Field{attr("currency", "[itemprop=priceCurrency][content]", "content"),
		attr("currency", `meta[property="product:price:currency"]`, "content"), attr("currency", `meta[property="og:price:currency"]`, "content")} {
		if len(fields) > 0 && p.says(currency) {
			fields = append(fields, currency)
			break
		}
	}
	now, before := p.shown(heading, lists)
	if css := p.selectorOf(now); css != "" && !has(fields, "price") {
		fields = append(fields, text("price", css))
	}
	if css := p.selectorOf(before); css != "" {
		fields = append(fields, text("listPrice", css))
	}
	return fields
}

func (p *probe) selectorOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	return p.sel.first(n)
}

// shown are the elements with the prices that stand nearest to the heading, in order behind it.
func (p *probe) shown(heading *html.Node, lists []list) (now, before *html.Node) {
	behind := false
	n := naming{items: []*html.Node{p.root}}
	elements(p.root, func(at *html.Node) bool {
		if at == heading {
			behind = true
		}
		if now != nil && before != nil || ancestor(at, aside) != nil || inLists(lists, at) {
			return false
		}
		content := textOf(at)
		if !behind || !price.Is(content) || innerPrice(at, content) {
			return true
		}
		l := &leaf{nodes: []*html.Node{at}, values: []string{content}, have: 1}
		switch struck := n.struck(l); {
		case struck && before == nil:
			before = at
		case !struck && now == nil:
			now = at
		}
		return false
	})
	return now, before
}

// innerPrice says whether an element in this one is the price as well.
func innerPrice(n *html.Node, content string) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && len(words(c)) > 0 && price.Is(textOf(c)) && textOf(c) == content {
			return true
		}
	}
	// Two amounts in one: the one that counts and the one before.
	return strings.Count(content, "€") > 1 || strings.Count(content, "$") > 1 || strings.Count(content, "£") > 1
}

func inLists(lists []list, n *html.Node) bool {
	return slices.ContainsFunc(lists, func(l list) bool { return within(l.items, n) })
}

// labelled are further fields whose elements say what they are, near the heading.
func (p *probe) labelled(heading *html.Node, lists []list, have []model.Field) []model.Field {
	around := heading
	for range 4 {
		if around.Parent != nil && around.Parent.Type == html.ElementNode && around.Parent.Data != "body" {
			around = around.Parent
		}
	}
	var fields []model.Field
	for _, mark := range marks {
		if has(have, mark.name) || mark.name == "date" || mark.name == "category" || mark.name == "location" || mark.name == "company" {
			continue
		}
		var found *html.Node
		elements(around, func(n *html.Node) bool {
			if found != nil || inLists(lists, n) || ancestor(n, aside) != nil {
				return false
			}
			called := slices.ContainsFunc(words(n), func(w string) bool { return slices.Contains(mark.words, w) })
			if content := textOf(n); called && hasOwnText(n) && content != "" && len(content) < 2_000 && mark.fits(content) {
				found = n
			}
			return found == nil
		})
		if css := p.selectorOf(found); css != "" {
			fields = append(fields, text(mark.name, css))
		}
	}
	return fields
}
