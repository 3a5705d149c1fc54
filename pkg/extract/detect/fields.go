package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// maxFields bounds the fields of a candidate.
const maxFields = 14

// field is something that items of a list have.
type field struct {
	name  string
	kind  model.FieldKind
	attr  string
	nodes []*html.Node // by item, nil where an item has none
	share float64      // of the items that have it
	parts []part       // where it stands at several places
	own   bool         // in some items, what an element says beside its elements
	exact bool         // where an item has none, nothing else is to be found
}

// part is where a field stands in some items: in those where others stand, too, or in those where
// they do not.
type part struct {
	nodes  []*html.Node // by item
	with   []*html.Node // by item; nil where it does not matter
	absent bool         // not in items that have what with has
	own    bool         // their first texts alone
}

// leaf is where something stands within items: the elements on the way there.
type leaf struct {
	place    string
	attr     string // "" for the text
	nodes    []*html.Node
	values   []string // by item, "" where an item has none
	have     int
	distinct int
}

// fieldsOf finds and names what items have beside their titles, which come first.
func (p *probe) fieldsOf(items, titles []*html.Node) []field {
	leaves := p.leavesOf(items)
	n := naming{items: setOf(items), count: len(items), leaves: leaves, taken: map[*leaf]bool{}}
	n.title(titles)
	n.prices()
	n.link()
	n.picture()
	n.marked()
	n.rest()
	return n.fields[:min(len(n.fields), maxFields)]
}

// leavesOf are the places within items where at least a fifth of them have a value.
func (p *probe) leavesOf(items []*html.Node) []*leaf {
	byPlace := map[string]*leaf{}
	var order []string
	for i, item := range items {
		add := func(n *html.Node, place, attr, value string) {
			value = strings.TrimSpace(value)
			if value == "" || len(value) > maxText {
				return
			}
			key := place + "@" + attr
			l := byPlace[key]
			if l == nil {
				l = &leaf{place: place, attr: attr, nodes: make([]*html.Node, len(items)),
					values: make([]string, len(items))}
				byPlace[key] = l
				order = append(order, key)
			}
			if l.nodes[i] == nil {
				l.nodes[i], l.values[i] = n, value
				l.have++
			}
		}
		p.visit(item, item, "", add)
	}
	var kept []*leaf
	for _, key := range order {
		l := byPlace[key]
		often := l.have > 1 && l.have*5 >= len(items)
		if !often && !sharesWord(words(l.first()), formerly) { // hardly any may be reduced
			continue
		}
		values := map[string]bool{}
		for _, v := range l.values {
			if v != "" {
				values[v] = true
			}
		}
		l.distinct = len(values)
		kept = append(kept, l)
	}
	return kept
}

// visit names the places of an item by the elements on the way with what they are called.
func (p *probe) visit(item, n *html.Node, place string,
	add func(n *html.Node, place, attr, value string)) {
	if n.Type != html.ElementNode || unseen[n.Data] {
		return
	}
	if n != item {
		called := slices.DeleteFunc(classesOf(n), isUtility)
		slices.Sort(called)
		place += "/" + stepOf(n) + "#" + attribute(n, "itemprop") + "." + strings.Join(called, ".")
	}
	text := hasOwnText(n)
	if text {
		add(n, place, "", textOf(n))
		add(n, place, ownText, ownPrice(n))
	}
	for _, name := range valued[n.Data] {
		value := attribute(n, name)
		if name == "src" && strings.HasPrefix(value, "data:") {
			continue
		}
		add(n, place, name, value)
	}
	for _, name := range [...]string{"content", "data-price", "data-price-amount", "data-rating",
		"data-sku", "data-product_sku",
		"data-asin", "aria-label", "datetime"} {
		if value := attribute(n, name); value != "" && !(name == "aria-label" && n.Data == "a") {
			add(n, place, name, value)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		// What stands in a line of text is a part of it, unless it says something by itself.
		if text && c.Type == html.ElementNode && inline[c.Data] && len(words(c)) == 0 &&
			c.Data != "a" && c.Data != "del" {
			continue
		}
		p.visit(item, c, place, add)
	}
}

// valued are the attributes that say something, by element.
var valued = map[string][]string{"a": {"href"},
	"img":    {"data-src", "data-original", "data-lazy-src", "src", "data-srcset", "srcset"},
	"source": {"data-srcset", "srcset"}, "time": {"datetime"}, "link": {"href"}, "data": {"value"},
	"meter": {"value"}}
