package detect

import (
	"slices"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// Bounds of the search for items.
const (
	maxSampled = 200 // items of a list that are examined for fields
	maxRated   = 24  // lists examined closely
	keptLists  = 3   // proposed
)

// list is a set of similar elements that may be the items of a result list.
type list struct {
	items  []*html.Node // in document order
	titles []*html.Node // one per item
	way    way          // the way to the titles
	set    set          // of items
	fields []field      // the first one makes the rows
	config []model.Field
	score  float64
}

// lists finds the repeated items of a page, the best list first. The last ones may have no
// selectors; they are not proposed.
func (p *probe) lists() []list {
	captions := p.captions
	groups := p.groups(captions)
	for i := range groups {
		p.rate(&groups[i], captions)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return compare(b.score, a.score) })
	var found []list
	for i := range groups[:min(len(groups), maxRated)] {
		if groups[i].score <= 0 {
			break
		}
		found = append(found, p.listOf(&groups[i], captions))
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

func (p *probe) listOf(g *group, captions []caption) list {
	l := list{way: g.way}
	for k, m := range g.members {
		l.titles = append(l.titles, p.all[captions[m].at].node)
		l.items = append(l.items, p.all[p.bareItem(g, k, captions[m].at)].node)
	}
	l.set = setOf(l.items)
	l.fields = p.fieldsOf(l.items[:min(len(l.items), maxSampled)],
		l.titles[:min(len(l.titles), maxSampled)])
	l.score = g.score * l.worth()
	return l
}

// bareItem returns the item without wrappers that hold nothing else. The only item of a short list
// thus has the same element as items of longer lists.
func (p *probe) bareItem(g *group, k, title int) int {
	item := g.items[k]
	if p.all[item].path == g.make {
		return item
	}
	length := p.all[item].textLength()
	for at := title; at > item; at = p.all[at].parent {
		if p.all[at].path == g.make && p.all[at].textLength() == length {
			return at
		}
	}
	return item
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

// sameItems says whether two lists are the same at different depths, or one is part of the other's
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

// inside returns the element of the set that is n or contains it, or nil.
func (s set) inside(n *html.Node) *html.Node {
	for ; n != nil; n = n.Parent {
		if s[n] {
			return n
		}
	}
	return nil
}

// worth is the factor by which a list's score grows for the fields beside the titles.
func (l *list) worth() float64 {
	worth := 1.0
	for _, f := range l.fields {
		worth += weights[f.name] * f.share
	}
	return worth
}

func (l *list) has(name string) bool {
	return slices.ContainsFunc(l.fields, func(f field) bool { return f.name == name })
}

// weights are the fields' contributions to a list's worth.
var weights = map[string]float64{"price": 0.5, "date": 0.25, "description": 0.25, "rating": 0.1,
	"author": 0.1, "company": 0.2, "location": 0.1, "availability": 0.1, "sku": 0.1, "brand": 0.1}
