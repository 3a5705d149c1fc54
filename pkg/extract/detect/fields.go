package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// maxFields bounds a candidate's fields.
const maxFields = 14

// field is a value that items of a list have.
type field struct {
	name  string
	kind  model.FieldKind
	attr  string
	nodes []*html.Node // by item, nil if an item has none
	share float64      // share of the items that have it
	parts []part       // set if it has several places
	own   bool         // in some items, only the element's own first text
	exact bool         // in an item without one, the selector must find nothing
}

// part is a field's place in some of the items. Those items may be limited to the ones that have,
// or lack, another element.
type part struct {
	nodes  []*html.Node // by item
	with   []*html.Node // by item; nil if irrelevant
	absent bool         // only in items that lack what with holds
	own    bool         // only the elements' first own texts
}

// leaf is a place within items, given by the elements on the path to it.
type leaf struct {
	place    string
	attr     string // "" for the text
	nodes    []*html.Node
	values   []string // by item, "" if an item has none
	have     int
	distinct int
}

// fieldsOf finds and names the items' fields. The titles come first.
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

// leavesOf returns the places at which at least a fifth of the items have a value.
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
		rare := sharesWord(words(l.first()), formerly) || isStruck(l.first()) // few are reduced
		if !often && !rare {
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

// visit walks an item and names each place by the path of elements and their classes.
func (p *probe) visit(item, n *html.Node, place string,
	add func(n *html.Node, place, attr, value string)) {
	if n.Type != html.ElementNode || unseen[n.Data] {
		return
	}
	if n != item {
		called := slices.DeleteFunc(classesOf(n), isUtility)
		slices.Sort(called)
		place += "/" + stepOf(n) + "#" + tree.Attr(n, "itemprop") + "." + strings.Join(called, ".")
		if struckBy(n) == struckThrough {
			place += struckThrough
		}
	}
	text := hasOwnText(n)
	if text {
		add(n, place, "", textOf(n))
		add(n, place, ownText, ownPrice(n))
	}
	for _, name := range valued[n.Data] {
		value := tree.Attr(n, name)
		if strings.HasPrefix(value, "data:") { // holds the place of a picture
			continue
		}
		add(n, place, name, value)
	}
	for _, name := range [...]string{"content", "data-price", "data-price-amount", "data-rating",
		"data-sku", "data-product_sku",
		"data-asin", "aria-label", "datetime"} {
		if value := tree.Attr(n, name); value != "" && !(name == "aria-label" && n.Data == "a") {
			add(n, place, name, value)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		// Inline elements are part of the text around them, unless they have names of their own.
		if text && c.Type == html.ElementNode && inline[c.Data] && len(words(c)) == 0 &&
			c.Data != "a" && c.Data != "del" {
			continue
		}
		p.visit(item, c, place, add)
	}
}

// valued lists, by element, the attributes that carry values.
var valued = map[string][]string{"a": {"href"},
	"img":    {"data-src", "data-original", "data-lazy-src", "src", "data-srcset", "srcset"},
	"source": {"data-srcset", "srcset"}, "time": {"datetime"}, "link": {"href"}, "data": {"value"},
	"meter": {"value"}}
