package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// Bounds of the search for items.
const (
	minItems    = 3
	maxItems    = 500    // looked at of one list
	maxElements = 50_000 // looked at of a page
	maxLists    = 40     // looked at closely
	keptLists   = 3      // proposed
)

// list is a set of elements of one make: perhaps the items of a result list.
type list struct {
	items  []*html.Node // in document order
	set    set          // of items
	fields []field      // the first one makes the rows
	config []model.Field
	score  float64
}

// lists finds what repeats on a page, the best first; those behind have no selectors, and are not
// proposed.
func (p *probe) lists() []list {
	var found []list
	for _, group := range p.repeated() {
		l := list{items: group, set: setOf(group)}
		if l.fields = p.fieldsOf(group); len(l.fields) == 0 {
			continue
		}
		if l.score = l.worth(p.isBeside(group[0])); l.score > 0 {
			found = append(found, l)
		}
	}
	slices.SortStableFunc(found, func(a, b list) int { return compare(b.score, a.score) })
	var kept, unnamed []list
	known := func(l list, among []list) bool {
		return slices.ContainsFunc(among, func(k list) bool { return sameItems(k.items, l.items) })
	}
	for _, l := range found {
		if len(kept) == keptLists || known(l, kept) {
			continue
		}
		// One that no selector finds may be found at another depth. If not, it is a list all the
		// same.
		if l.config = p.config(l); isTelling(l.config) {
			kept = append(kept, l)
		} else if len(unnamed) < keptLists {
			unnamed = append(unnamed, l)
		}
	}
	for _, l := range unnamed {
		if !known(l, kept) {
			kept = append(kept, l)
		}
	}
	return kept
}

// isTelling says whether rows of these fields say more than a name.
func isTelling(fields []model.Field) bool {
	named := 0
	for _, f := range fields {
		if f.Name != "currency" {
			named++
		}
	}
	return named > 1
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// sameItems says whether two lists are one, seen at different depths, or one a part of the other's
// items.
func sameItems(a, b []*html.Node) bool {
	is, around := setOf(a), map[*html.Node]bool{}
	for _, n := range a {
		for at := n; at != nil && !around[at]; at = at.Parent {
			around[at] = true
		}
	}
	shared := 0
	for _, n := range b {
		if around[n] || is.inside(n) != nil {
			shared++
		}
	}
	return shared*2 > len(b)
}

// set is a set of elements.
type set map[*html.Node]bool

func setOf(nodes []*html.Node) set {
	s := make(set, len(nodes))
	for _, n := range nodes {
		s[n] = true
	}
	return s
}

// inside is the element of the set that n is or stands in, nil if there is none.
func (s set) inside(n *html.Node) *html.Node {
	for ; n != nil; n = n.Parent {
		if s[n] {
			return n
		}
	}
	return nil
}

// shape is what elements of one make have in common: the names of the elements around them, and the
// classes of the innermost of those.
type shape struct {
	path         int // of paths
	parent, name string
}

// paths numbers the sequences of names of the elements around one: 0 is none.
type paths map[pathEnd]int

type pathEnd struct {
	around int
	name   string
}

func (p paths) of(around int, name string) int {
	at := pathEnd{around, name}
	if p[at] == 0 {
		p[at] = len(p) + 1
	}
	return p[at]
}

// repeated groups the page's elements by make.
func (p *probe) repeated() [][]*html.Node {
	groups := map[shape][]*html.Node{}
	var order []shape
	seen := 0
	numbers, places := paths{}, map[*html.Node]int{}
	elements(p.root, func(n *html.Node) bool {
		if seen++; seen > maxElements {
			return false
		}
		around := places[n.Parent]
		places[n] = numbers.of(around, n.Data)
		if !holder[n.Data] || n.Parent == nil {
			return true
		}
		key := shape{path: around, parent: strings.Join(classesOf(n.Parent), " "), name: n.Data}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], n)
		return true
	})
	var all [][]*html.Node
	for _, key := range order {
		all = append(all, alike(groups[key])...)
	}
	slices.SortStableFunc(all, func(a, b []*html.Node) int { return len(b) - len(a) })
	// Many items of little count no more than few of much: the long lists are looked at, and those
	// with most in an item.
	if len(all) > maxLists {
		all = all[:maxLists]
	}
	return all
}

// holder are the elements that items of lists are.
var holder = map[string]bool{"li": true, "div": true, "article": true, "section": true, "tr": true,
	"a": true, "dd": true, "figure": true,
	"tbody": true, "dl": true, "p": true, "span": true, "product-card": true, "product-item": true}

// alike divides elements of one place into those with a class in common and those without.
func alike(nodes []*html.Node) [][]*html.Node {
	if len(nodes) < minItems {
		return nil
	}
	nodes = nodes[:min(len(nodes), maxItems)]
	counts := map[string]int{}
	for _, n := range nodes {
		for _, class := range classesOf(n) {
			counts[class]++
		}
	}
	var shared []string
	for class, count := range counts {
		if count >= minItems && count < len(nodes) && !isUtility(class) {
			shared = append(shared, class)
		}
	}
	slices.SortFunc(shared, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	groups := [][]*html.Node{rich(nodes)}
	for _, class := range shared[:min(len(shared), 4)] {
		var having []*html.Node
		for _, n := range nodes {
			if slices.Contains(classesOf(n), class) {
				having = append(having, n)
			}
		}
		groups = append(groups, rich(having))
	}
	return slices.DeleteFunc(groups, func(g []*html.Node) bool { return len(g) < minItems })
}

// rich leaves out elements that hold next to nothing: spacers, and banners between items.
func rich(nodes []*html.Node) []*html.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *html.Node) bool {
		text := textOf(n)
		return len(text) < 2
	})
}

// worth rates a list by what its items say and where it stands; 0 is no list of anything.
func (l *list) worth(beside bool) float64 {
	weight, title, link := 0.0, false, false
	for _, f := range l.fields {
		weight += weights[f.name] * f.share
		if weights[f.name] == 0 {
			weight += 0.5 * f.share
		}
		title = title || f.name == "title"
		link = link || f.name == "url"
	}
	long := 0.0
	for _, item := range l.items {
		long += float64(min(len(textOf(item)), 400))
	}
	long /= float64(len(l.items))
	plain := !l.has("price") && !l.has("description") && !l.has("date") && !l.has("image")
	switch {
	case !title, len(l.fields) < 2, plain && len(l.fields) < 3:
		return 0
	case plain && long < 25:
		return 0
	}
	score := weight * logish(len(l.items)) * (0.5 + long/400)
	if beside {
		score /= 6
	}
	if link {
		score *= 1.3
	}
	return score
}

func (l *list) has(name string) bool {
	return slices.ContainsFunc(l.fields, func(f field) bool { return f.name == name })
}

// weights of fields within a list's score.
var weights = map[string]float64{"price": 5, "title": 2, "url": 1, "image": 2, "listPrice": 1,
	"rating": 1, "reviewCount": 0.5,
	"description": 1.5, "date": 1.5, "brand": 0.5, "author": 0.5, "availability": 0.5}

// logish grows ever more slowly with the number of items.
func logish(n int) float64 {
	grown := 1.0
	for ; n > 2; n /= 2 {
		grown++
	}
	return grown
}

// aside says whether an element stands beside what a page is about.
func aside(n *html.Node) bool {
	switch n.Data {
	case "nav", "header", "footer", "aside":
		return true
	}
	for _, word := range words(n) {
		switch word {
		case "nav", "navbar", "menu", "footer", "sidebar", "breadcrumb", "breadcrumbs", "related",
			"upsell", "upsells", "crosssell", "megamenu",
			"recommended", "recommendations", "similar", "facet", "facets", "pagination", "filters":
			return true
		}
	}
	return false
}
