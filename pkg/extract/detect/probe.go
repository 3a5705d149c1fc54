package detect

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/model"
)

// config returns a list's fields as a scraper has them, or none if no selector finds its titles.
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

// retitle rebuilds a list from the matches of its selector, which are nearly its titles.
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

// isNear says whether found has nine of ten of the nodes, and differs in size by at most a tenth.
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

// titleSelector returns a selector for the titles of a list and nothing else, because each match is
// a row. Failing that, it returns one that nearly matches them.
func (p *probe) titleSelector(l *list) string {
	if css := p.sel.group(l.titles); css != "" {
		return css
	}
	// Try paths of element names, starting from a common container.
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

// below searches the containers of around for a selector that, with css, matches exactly the nodes.
// It stores in near the first selector that nearly does.
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
		if id := tree.Attr(around[0], "id"); isIdentifier(id) && isStable(id) &&
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
	items    string   // selector of the items, or ""
	prefixes []string // selectors of the surroundings, the most telling first
}

// span is the range of an element's content in the outline.
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

// field returns a selector whose first match in each item is the field, or "".
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

// selector returns a selector whose first match in each item is its node, if it has one.
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

// joined returns a selector list for a field with several places, one selector each.
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

// part finds a place in some items, using what else those items have or lack.
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

// Bounds of the selectors tried within items.
const (
	maxInner  = 5 // levels above an element
	maxCalled = 3 // names for each
)

// inner returns the selectors that could find all nodes, the shortest first. They combine the
// nodes' own names with those of the elements around them in their items.
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
	if slices.Contains(own, around[0].Data) {
		own = append(own, unstruck(around)...)
	}
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

// chained combines the first names of elements, their parents and their grandparents with child
// combinators.
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

// fits says whether a selector's first match in each item is its node. In items without a node, it
// may match others in one item of ten, unless exact is set.
func (s *search) fits(css string, nodes []*html.Node, exact bool) bool {
	return s.fitsAmong(css, nodes, exact, nil)
}

// fitsAmong is fits, restricted to the matches for which so holds, unless so is nil.
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

// place returns the position in the outline of n, or of the nearest element around it.
func (p *probe) place(n *html.Node) int {
	for ; n != nil; n = n.Parent {
		if i, known := p.index[n]; known {
			return i
		}
	}
	return -1
}
