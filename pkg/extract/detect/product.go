package detect

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// known lists selectors at which pages about one thing commonly have a value, and which other pages
// of the site share. The first one with a value counts.
var known = []struct {
	name   string
	places []model.Field
}{
	{"description", []model.Field{attr("description", "[itemprop=description][content]", "content"),
		text("description", "[itemprop=description]"),
		attr("description", `meta[name="description"]`, "content"),
		attr("description", `meta[property="og:description"]`, "content")}},
	{"image", []model.Field{attr("image", `meta[property="og:image"]`, "content"),
		attr("image", "img[itemprop=image]", "src")}},
	{"brand", []model.Field{text("brand", "[itemprop=brand] [itemprop=name]"),
		attr("brand", "[itemprop=brand][content]", "content"),
		text("brand", "[itemprop=brand]"),
		attr("brand", `meta[property="product:brand"]`, "content")}},
	{"sku", []model.Field{attr("sku", "[itemprop=sku][content]", "content"),
		text("sku", "[itemprop=sku]")}},
	{"availability", []model.Field{attr("availability", "[itemprop=availability][href]", "href"),
		attr("availability", "[itemprop=availability][content]", "content"),
		text("availability", "[itemprop=availability]")}},
	{"rating", []model.Field{attr("rating", "[itemprop=ratingValue][content]", "content"),
		text("rating", "[itemprop=ratingValue]")}},
	{"reviewCount", []model.Field{attr("reviewCount", "[itemprop=reviewCount][content]", "content"),
		text("reviewCount", "[itemprop=reviewCount]")}},
	{"date", []model.Field{attr("date", `meta[property="article:published_time"]`, "content"),
		attr("date", "article time[datetime]", "datetime"),
		attr("date", "time[datetime]", "datetime")}},
	{"author", []model.Field{text("author", "[itemprop=author] [itemprop=name]"),
		text("author", "[rel=author]"),
		attr("author", `meta[name="author"]`, "content")}},
	{"content", []model.Field{text("content", "[itemprop=articleBody]"),
		text("content", "article .entry-content"), text("content", "article .post-content")}},
}

func text(name, css string) model.Field {
	return model.Field{Name: name, Selector: css, Kind: model.Text}
}

func attr(name, css, attribute string) model.Field {
	return model.Field{Name: name, Selector: css, Kind: model.Attr, Attr: attribute}
}

// product returns the fields of a page about one thing, or none.
func (p *probe) product(lists []list) []model.Field {
	heading, _ := p.heading()
	if heading == nil {
		return nil
	}
	lists = cards(lists)
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
	if !priced && !has(fields, "content") {
		if n := p.prose(lists); n != nil {
			if css := p.sel.first(n); css != "" {
				fields = append(fields, text("content", css))
			}
		}
	}
	if !isTelling(fields) {
		return nil
	}
	return fields
}

// leastProse is the minimum length of a page's main text, in bytes.
const leastProse = 300

// prose returns the element with the page's main text, or nil. It has the most long blocks; with
// each level of nesting, a block counts half.
func (p *probe) prose(lists []list) *html.Node {
	var best *html.Node
	most := leastProse
	found := map[int]int{}
	for i := 0; i < len(p.all); {
		e := &p.all[i]
		if e.beside || inLists(lists, e.node) {
			i = e.end
			continue
		}
		length := e.textLength()
		if !e.own || length < longBlock || e.linkedLength()*10 >= length*3 {
			i++
			continue
		}
		around := e.parent
		if !inline[e.step] && e.step != "p" && e.step != "blockquote" {
			around = i
		}
		for share := length; around >= 0 && share*4 > length; share /= 2 {
			if found[around] += share; found[around] > most && p.all[around].step != "body" {
				best, most = p.all[around].node, found[around]
			}
			around = p.all[around].parent
		}
		i = e.end
	}
	return best
}

// cards returns the lists of things with pages of their own, rather than details of this page.
func cards(lists []list) []list {
	return slices.DeleteFunc(slices.Clone(lists), func(l list) bool {
		return !l.has("url") || !l.has("image") && !l.has("price")
	})
}

// maxBuys bounds the buy buttons of a page about one thing, outside lists. Some pages repeat the
// button in a bar.
const maxBuys = 3

var buy = regexp.MustCompile(`(?i)add[-_ ]?to[-_ ]?(cart|basket|bag)|buy[-_ ]?now|in den warenkorb|ajouter au panier|` +
	`añadir al carrito|añadir a la cesta|aggiungi al carrello|in winkelwagen|adicionar ao carrinho|do koszyka`)

// sells says whether a page has a heading and a button to buy what it names.
func (p *probe) sells(lists []list) bool {
	if heading, _ := p.heading(); heading == nil {
		return false
	}
	buttons := 0
	elements(p.root, func(n *html.Node) bool {
		if inLists(lists, n) || p.isBeside(n) {
			return false
		}
		if n.Data != "button" && n.Data != "input" && n.Data != "a" {
			return true
		}
		about := textOf(n)
		for _, name := range [...]string{"id", "class", "name", "value", "aria-label", "data-type",
			"data-action"} {
			about += " " + tree.Attr(n, name)
		}
		if buy.MatchString(about[:min(len(about), maxText)]) {
			buttons++
		}
		return false
	})
	return buttons > 0 && buttons <= maxBuys
}

func has(fields []model.Field, name string) bool {
	return slices.ContainsFunc(fields, func(f model.Field) bool { return f.Name == name })
}

// says reports whether a field has a value on this page. The address of an image has to be absolute
// where rows would have it as written.
func (p *probe) says(f model.Field) bool {
	matches := p.sel.all(f.Selector)
	if len(matches) == 0 {
		return false
	}
	if f.Kind == model.Attr {
		value := strings.TrimSpace(tree.Attr(matches[0], f.Attr))
		if f.Name == "image" && f.Attr == "content" {
			return strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://")
		}
		return value != ""
	}
	return textOf(matches[0]) != ""
}

func notInWords(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// first returns a selector whose first match in the page is n, or "".
func (s *selectors) first(n *html.Node) string {
	fits := func(css string) bool {
		matches := s.all(css)
		return len(matches) > 0 && matches[0] == n
	}
	own := append(simple(n), unstruck([]*html.Node{n})...)
	for _, css := range own {
		if (css != n.Data || telling[css]) && len(s.all(css)) == 1 && fits(css) {
			return css
		}
	}
	at := n.Parent
	for range 5 {
		if at == nil || at.Type != html.ElementNode || at.Data == "html" {
			break
		}
		holders := simple(at)
		if id := tree.Attr(at, "id"); isIdentifier(id) && isStable(id) {
			holders = append([]string{"#" + id}, holders...)
		}
		for _, holder := range holders {
			if holder == at.Data && !telling[at.Data] {
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

// telling lists the elements whose bare names are specific enough for a selector.
var telling = map[string]bool{"main": true, "article": true, "ins": true, "del": true, "s": true,
	"strike": true, "h1": true, "h2": true, "form": true,
	"figure": true, "dd": true}

// amounts returns the fields price, currency and listPrice of what the heading names.
func (p *probe) amounts(heading *html.Node, lists []list) []model.Field {
	var fields []model.Field
	for _, place := range []model.Field{attr("price", "[itemprop=price][content]", "content"),
		text("price", "[itemprop=price]"),
		attr("price", `meta[property="product:price:amount"]`, "content"),
		attr("price", `meta[property="og:price:amount"]`, "content")} {
		if matches := p.sel.all(place.Selector); p.says(place) && !inLists(lists, matches[0]) {
			fields = append(fields, place)
			break
		}
	}
	for _, currency := range []model.Field{attr("currency", "[itemprop=priceCurrency][content]",
		"content"),
		attr("currency", `meta[property="product:price:currency"]`, "content"),
		attr("currency", `meta[property="og:price:currency"]`, "content")} {
		if len(fields) > 0 && p.says(currency) {
			fields = append(fields, currency)
			break
		}
	}
	now, before := p.shown(heading, lists)
	if place := p.placeOf(now); place != "" && !has(fields, "price") {
		fields = append(fields, text("price", place))
	}
	if before != nil {
		if css := p.crossed(before.first()); css != "" {
			fields = append(fields, text("listPrice", css))
		}
	}
	return fields
}

// placeOf returns a selector of the current price, or "".
func (p *probe) placeOf(price *leaf) string {
	if price == nil {
		return ""
	}
	css := p.selectorOf(price.first())
	if price.attr == ownText {
		return ownTextOf(css)
	}
	return p.unreduced(css, price.first())
}

func (p *probe) selectorOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	return p.sel.first(n)
}

// unreduced extends the selector of a reduced price so that it also finds the price on pages
// without a reduction.
func (p *probe) unreduced(css string, n *html.Node) string {
	ins := ancestor(n, named("ins"))
	if ins == nil || ins.Parent == nil {
		return css
	}
	for _, holder := range simple(ins.Parent) {
		if holder == ins.Parent.Data {
			break
		}
		for _, own := range simple(n) {
			reduced, full := holder+" ins "+own, holder+" > "+own
			if matches := p.sel.all(reduced + ", " + full); len(matches) > 0 && matches[0] == n {
				return reduced + ", " + full
			}
		}
	}
	return css
}

// crossed returns a selector for a price before a reduction. It relies on what marks the price as
// former, so it finds nothing where nothing is reduced.
func (p *probe) crossed(n *html.Node) string {
	by := ancestor(n, isStruck)
	if by == nil {
		by = ancestor(n, func(at *html.Node) bool {
			return slices.ContainsFunc(words(at),
				func(w string) bool { return slices.Contains(formerly, w) })
		})
	}
	if by == nil {
		return ""
	}
	var list []string
	for _, holder := range simple(by) {
		former := telling[by.Data] || holder == struckBy(by) ||
			slices.ContainsFunc(split(holder),
				func(w string) bool { return slices.Contains(formerly, w) })
		switch {
		case !former || holder == by.Data && !telling[holder]:
		case by == n:
			list = append(list, holder)
		default:
			for _, own := range simple(n) {
				list = append(list, holder+" "+own)
			}
		}
	}
	for _, css := range list {
		if matches := p.sel.all(css); len(matches) > 0 && matches[0] == n {
			return css
		}
	}
	return ""
}

// isAmount says whether an element is a price, by its currency or its name.
func isAmount(n *html.Node, content string) bool {
	if amount.Is(content) || len(content) > 20 || !digits.MatchString(content) {
		return amount.Is(content)
	}
	called := words(n)
	return slices.Contains(called, "price") || cents.MatchString(content) &&
		(isStruck(n) || sharesWord(called, formerly))
}

func sharesWord(called, any []string) bool {
	return slices.ContainsFunc(called, func(word string) bool { return slices.Contains(any, word) })
}

// innerPrice says whether an inner element is a better price: it has less other text, or a name.
func innerPrice(n *html.Node, content string) bool {
	found := false
	elements(n, func(c *html.Node) bool {
		if c != n && !found {
			inner := textOf(c)
			found = isAmount(c, inner) &&
				(inner != content || len(words(c)) > 0 || len(words(n)) == 0)
		}
		return !found
	})
	return found
}

// inLists says whether an element is in an item of a list.
func inLists(lists []list, n *html.Node) bool {
	return slices.ContainsFunc(lists, func(l list) bool { return l.set.inside(n) != nil })
}

// labelled returns further fields near the heading, from elements named by their meaning.
func (p *probe) labelled(heading *html.Node, lists []list, have []model.Field) []model.Field {
	around := heading
	for range 4 {
		if around.Parent != nil && around.Parent.Type == html.ElementNode &&
			around.Parent.Data != "body" {
			around = around.Parent
		}
	}
	var fields []model.Field
	used := map[string]bool{}
	for _, mark := range marks {
		if has(have, mark.name) || mark.name == "date" || mark.name == "category" ||
			mark.name == "location" || mark.name == "company" {
			continue
		}
		var found *html.Node
		elements(around, func(n *html.Node) bool {
			if found != nil && !holds(found, n) || inLists(lists, n) || p.isBeside(n) {
				return false
			}
			called := slices.ContainsFunc(words(n),
				func(w string) bool { return slices.Contains(mark.words, w) })
			content := textOf(n)
			if called && (hasOwnText(n) || mark.name == "description" && !holds(n, heading)) &&
				content != "" && mark.fits(content) && !amount.Is(content) {
				found = n // an inner match replaces it
			}
			return true
		})
		if css := p.selectorOf(found); css != "" && !used[css] {
			used[css] = true
			fields = append(fields, text(mark.name, css))
		}
	}
	if picture := p.picture(around, lists); !has(have, "image") && picture.Selector != "" {
		fields = append(fields, picture)
	}
	return fields
}

// picture returns the first image near the heading that is in a container named for images.
func (p *probe) picture(around *html.Node, lists []list) model.Field {
	var found model.Field
	elements(around, func(n *html.Node) bool {
		if found.Selector != "" || inLists(lists, n) || p.isBeside(n) {
			return false
		}
		if n.Data != "img" {
			return true
		}
		place := ancestor(n, func(at *html.Node) bool {
			return slices.ContainsFunc(words(at), func(w string) bool {
				return slices.Contains([]string{"gallery", "image", "images", "photo", "photos",
					"media", "picture", "cover"}, w)
			})
		})
		if place == nil || !holds(around, place) {
			return true
		}
		for _, name := range pictured {
			if value := tree.Attr(n, name); value != "" && !strings.HasPrefix(value, "data:") {
				found = attr("image", p.selectorOf(n), name)
				break
			}
		}
		return true
	})
	return found
}
