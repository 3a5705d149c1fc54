package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/model"
)

// config are the fields of a list as a scraper has them, none where no selector finds its titles.
func (p *probe) config(l list) []model.Field {
	title := p.titleSelector(&l)
	if title == "" {
		return nil
	}
	if found := p.sel.all(title); !slices.Equal(found, l.titles) {
		if !p.retitle(&l, found) {
			return nil
		}
	}
	fields := []model.Field{{Name: "title", Selector: title, Kind: model.Text}}
	s := p.searchOf(&l, title)
	for _, f := range l.fields[1:] {
		if css := s.field(f); css != "" {
			fields = append(fields,
				model.Field{Name: f.name, Selector: css, Kind: f.kind, Attr: f.attr})
		}
	}
	return fields
}

// retitle makes a list of what its selector finds, which is nearly the same.
func (p *probe) retitle(l *list, found []*html.Node) bool {
	places := make([]int, 0, len(found))
	for _, n := range found {
		i, known := p.index[n]
		if !known {
			return false
		}
		places = append(places, i)
	}
	items := p.itemsOf(places)
	if items == nil {
		return false
	}
	l.titles, l.items = found, nil
	for _, i := range items {
		l.items = append(l.items, p.all[i].node)
	}
	l.set = setOf(l.items)
	l.fields = p.fieldsOf(l.items[:min(len(l.items), maxSampled)],
		l.titles[:min(len(l.titles), maxSampled)])
	return true
}

// isNear says whether a selector finds nine of ten of the nodes, and at most a tenth of others.
func isNear(found, nodes []*html.Node) bool {
	if len(found)*10 < len(nodes)*9 || len(found)*10 > len(nodes)*11 {
		return false
	}
	is, same := setOf(nodes), 0
	for _, n := range found {
		same += count(is[n])
	}
	return same*10 >= len(nodes)*9
}

// titleSelector finds what matches the titles of a list and nothing else, so that each is a row.
// Without such a selector, one that matches nearly those does.
func (p *probe) titleSelector(l *list) string {
	if css := p.sel.group(l.titles); css != "" {
		return css
	}
	// By the names of the elements on the way, from what they have around them in common.
	around, css, near := slices.Clone(l.titles), "", ""
	for level := range maxAbove {
		step := stepOf(around[0])
		if slices.ContainsFunc(around, func(n *html.Node) bool { return stepOf(n) != step }) {
			return near
		}
		if level < len(l.way.counted) && l.way.counted[level] {
			step += ordinal(around[0])
		}
		if css == "" {
			css = step
		} else {
			css = step + " > " + css
		}
		for i, n := range around {
			around[i] = n.Parent
		}
		if slices.ContainsFunc(around, func(n *html.Node) bool { return n == nil }) {
			return near
		}
		around = slices.Compact(around)
		if found := p.below(around, css, l.titles, &near); found != "" {
			return found
		}
	}
	return near
}

// below finds what is around elements so that a selector in it matches the nodes and nothing else.
// near becomes the first that matches nearly those.
func (p *probe) below(around []*html.Node, css string, nodes []*html.Node, near *string) string {
	around = slices.Clone(around)
	joint := " > "
	for range maxAbove {
		if slices.ContainsFunc(around, func(n *html.Node) bool {
			return n == nil || n.Type != html.ElementNode
		}) {
			break
		}
		holders := common(around)
		if id := attribute(around[0], "id"); isIdentifier(id) && isStable(id) &&
			sameNode(around) {
			holders = append([]string{"#" + id}, holders...)
		}
		for _, holder := range holders[:min(len(holders), 6)] {
			for _, without := range [...]string{"", ":not(:has(img))", ":not(:empty)"} {
				whole := holder + joint + css + without
				found := p.sel.all(whole)
				if slices.Equal(found, nodes) {
					return whole
				}
				if *near == "" && isNear(found, nodes) {
					*near = whole
				}
			}
		}
		for i, n := range around {
			around[i] = n.Parent
		}
		around = slices.Compact(around)
		joint = " "
	}
	return ""
}

// search looks for the fields of a list within its items.
type search struct {
	probe    *probe
	holders  []*html.Node
	spans    []span
	isHolder set
	items    string   // selector, "" without one
	prefixes []string // what stands around the items, the most telling first
}

// span is what an element holds, in places of the outline.
type span struct{ from, to int }

func (p *probe) searchOf(l *list, title string) *search {
	s := &search{probe: p, holders: l.items[:min(len(l.items), maxSampled)]}
	s.isHolder = setOf(s.holders)
	for _, n := range s.holders {
		i := p.index[n]
		s.spans = append(s.spans, span{i, p.all[i].end})
	}
	if items := p.sel.group(l.items); items != "" {
		s.items = items
		s.prefixes = append(s.prefixes, items+" ")
	}
	if at := strings.IndexByte(title, ' '); at > 0 {
		s.prefixes = append(s.prefixes, title[:at+1])
	}
	s.prefixes = append(s.prefixes, "")
	return s
}

// field finds a field by what its first match in each item is, "" if nothing does.
func (s *search) field(f field) string {
	if f.own {
		return s.own(f)
	}
	css := s.selector(f.nodes, f.exact)
	if css == "" && len(f.parts) > 0 {
		if css = s.joined(f); css == "" {
			css = s.own(f)
		}
	}
	return css
}

// selector finds what matches in each item a node first, or nothing where that is nil.
func (s *search) selector(nodes []*html.Node, exact bool) string {
	inner := s.inner(nodes)
	for _, prefix := range s.prefixes {
		for _, css := range inner {
			if s.fits(prefix+css, nodes, exact) {
				return prefix + css
			}
		}
	}
	return ""
}

// joined finds a field that stands at several places, by a selector for each.
func (s *search) joined(f field) string {
	var whole []string
	for _, p := range f.parts {
		css := s.part(p)
		if css == "" {
			return ""
		}
		whole = append(whole, css)
	}
	if css := strings.Join(whole, ", "); s.fits(css, f.nodes, true) {
		return css
	}
	return ""
}

// part finds what stands in some items, by what else these have or have not.
func (s *search) part(p part) string {
	if p.with == nil {
		return s.selector(p.nodes, true)
	}
	if s.items == "" {
		return ""
	}
	for _, with := range s.inner(p.with) {
		if !s.fits(s.items+" "+with, p.with, true) {
			continue
		}
		items := s.items + ":has(" + with + ")"
		if p.absent {
			items = s.items + ":not(:has(" + with + "))"
		}
		for _, css := range s.inner(p.nodes) {
			if s.fits(items+" "+css, p.nodes, true) {
				return items + " " + css
			}
		}
	}
	return ""
}

// Bounds of the selectors that are tried within items.
const (
	maxInner  = 5 // elements around one
	maxCalled = 3 // names of each
)

// inner are the selectors that all nodes may be found by, the shortest first. They go by their own
// names, and by those of what is around them in their items.
func (s *search) inner(nodes []*html.Node) []string {
	var around []*html.Node
	for _, n := range nodes {
		if n != nil {
			around = append(around, n)
		}
	}
	if len(around) == 0 {
		return nil
	}
	own := common(around)
	list := slices.Clone(own)
	var further []string
	for level := range maxInner {
		for i, n := range around {
			around[i] = n.Parent
		}
		around = slices.Compact(around)
		if slices.ContainsFunc(around,
			func(n *html.Node) bool { return n == nil || s.isHolder[n] }) {
			break
		}
		names := common(around)
		for _, last := range own {
			for k, name := range names {
				if level == 0 {
					list = append(list, name+" > "+last)
				} else if k < maxCalled {
					further = append(further, name+" "+last)
				}
			}
		}
		if level == 1 {
			further = append(further, chained(own, common(parentsOf(nodes)), names)...)
		}
	}
	for _, last := range own {
		for n := range 4 {
			list = append(list, last+nth(n+1))
		}
	}
	return append(list, further...)
}

// chained are the first names of elements, their parents and the parents of those, each in the
// next.
func chained(own, parents, around []string) []string {
	first := func(names []string) []string { return names[:min(len(names), maxCalled)] }
	var list []string
	for _, outer := range first(around) {
		for _, parent := range first(parents) {
			for _, last := range first(own) {
				list = append(list, outer+" > "+parent+" > "+last)
			}
		}
	}
	return list
}

func parentsOf(nodes []*html.Node) []*html.Node {
	var parents []*html.Node
	for _, n := range nodes {
		if n != nil {
			parents = append(parents, n.Parent)
		}
	}
	return parents
}

// fits says whether a selector's first match in each item is its node. Where an item has none, the
// selector may find something else in one item of ten, unless it has to be exact.
func (s *search) fits(css string, nodes []*html.Node, exact bool) bool {
	return s.fitsAmong(css, nodes, exact, nil)
}

// fitsAmong is fits, with only those matches that are so, if so is told.
func (s *search) fitsAmong(css string, nodes []*html.Node, exact bool,
	so func(*html.Node) bool) bool {
	matches := s.probe.sel.all(css)
	if so != nil {
		matches = slices.DeleteFunc(slices.Clone(matches),
			func(n *html.Node) bool { return !so(n) })
	}
	good, at := 0, 0
	for k, within := range s.spans {
		for at < len(matches) && s.probe.place(matches[at]) < within.from {
			at++
		}
		var first *html.Node
		if at < len(matches) && s.probe.place(matches[at]) < within.to {
			first = matches[at]
		}
		switch {
		case first == nodes[k], nodes[k] == nil && textOf(first) == "":
			good++
		case exact || nodes[k] != nil:
			return false
		}
	}
	return good*10 >= len(nodes)*9
}

// place is where an element stands in the outline, or what is around it that does.
func (p *probe) place(n *html.Node) int {
	for ; n != nil; n = n.Parent {
		if i, known := p.index[n]; known {
			return i
		}
	}
	return -1
}
