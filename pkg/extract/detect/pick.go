package detect

import (
	"slices"
	"strconv"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

// Bounds of what is answered of a pick.
const (
	// pickVisits bounds the elements that selectors are tried at for a pick: a tenth of what a
	// preview may.
	pickVisits = maxVisits / 10
	// MaxPicked bounds the elements that are told of a field.
	MaxPicked  = 1_000
	maxChoices = 8
	maxChosen  = 500 // bytes of a value that is shown
)

// Choice is what of an element could be a field, and its value in the element that was picked.
type Choice struct {
	Kind  model.FieldKind
	Attr  string
	Value string
}

// Pick makes a field of an element, by its number. Of MULTIPLE_PRODUCTS the first field of all is
// found in all elements that stand alike. Later ones are looked for in the rows that it makes. Of
// SINGLE_PRODUCT it is found in this element. choices are what of the element the field could
// be, the field's own first. Faults are coded invalid_request and name the member element.
func (s *Showing) Pick(kind model.ScraperType, fields []model.Field, element int) (f model.Field,
	choices []Choice, err error) {
	if element < 0 || element >= len(s.at) || s.at[element].Type != html.ElementNode {
		return f, nil, unpicked("is no element of the page")
	}
	n := s.at[element]
	var css string
	switch {
	case kind == model.SingleProduct:
		css = s.probe.sel.first(n)
	case len(fields) == 0:
		css = s.alike(n)
	default:
		if css, err = s.within(fields[0].Selector, n); err != nil {
			return f, nil, err
		}
	}
	if css == "" {
		return f, nil, unpicked("cannot be told from what is around it: pick one in or around it")
	}
	choices = choicesOf(n)
	if len(choices) == 0 {
		return f, nil, unpicked("says nothing: pick one in or around it")
	}
	f = model.Field{Selector: css, Kind: choices[0].Kind, Attr: choices[0].Attr}
	f.Name = newName(s.called(n, len(fields) == 0), fields)
	return f, choices, nil
}

func unpicked(format string, args ...any) error {
	return fault.Invalid(fault.InvalidRequest, "element", format, args...)
}

// alike finds what stands like an element: the titles of the rows to be.
func (s *Showing) alike(n *html.Node) string {
	l := list{}
	i := s.probe.index[n]
	e := &s.probe.all[i]
	for k := range s.probe.all {
		o := &s.probe.all[k]
		if o.path == e.path && o.beside == e.beside && slices.Equal(o.classes, e.classes) {
			l.titles = append(l.titles, o.node)
		}
	}
	if len(l.titles) > maxItems {
		return ""
	}
	if css := s.probe.titleSelector(&l); css != "" {
		return css
	}
	return s.probe.sel.first(n)
}

// within finds an element in the row that it stands in, and what stands alike in the others.
func (s *Showing) within(first string, n *html.Node) (string, error) {
	l := list{titles: s.matches(first)}
	items, _ := s.itemsOf(l.titles)
	if len(items) == 0 {
		return "", unpicked("the first field makes no rows to pick in")
	}
	at := s.probe.index[n]
	row := slices.IndexFunc(items, func(item int) bool {
		return item <= at && at < s.probe.all[item].end
	})
	if row < 0 {
		return "", unpicked("stands in none of the rows: the first field makes them")
	}
	if row >= maxSampled { // rows are compared with those at the beginning
		items, l.titles, row = items[row:], l.titles[row:], 0
	}
	for _, item := range items {
		l.items = append(l.items, s.probe.all[item].node)
	}
	l.set = setOf(l.items)
	search := s.probe.searchOf(&l, first)
	nodes := s.counterparts(items[:min(len(items), maxSampled)], row, at)
	if css := search.selector(nodes, false); css != "" {
		return css, nil
	}
	found := slices.DeleteFunc(slices.Clone(nodes), func(n *html.Node) bool { return n == nil })
	return s.probe.titleSelector(&list{titles: found}), nil
}

// counterparts are, by item, what stands like an element of the row. Where several do, it has the
// same place among them.
func (s *Showing) counterparts(items []int, row, at int) []*html.Node {
	like := func(k int) bool {
		return s.probe.all[k].path == s.probe.all[at].path &&
			slices.Equal(s.probe.all[k].classes, s.probe.all[at].classes)
	}
	ordinal := 0
	for k := items[row]; k < at; k++ {
		if like(k) {
			ordinal++
		}
	}
	nodes := make([]*html.Node, len(items))
	for i, item := range items {
		before := ordinal
		for k := item; k < s.probe.all[item].end; k++ {
			if !like(k) {
				continue
			}
			if before == 0 {
				nodes[i] = s.probe.all[k].node
				break
			}
			before--
		}
	}
	nodes[row] = s.probe.all[at].node
	return nodes
}

// choicesOf are what an element says, its text first where it has one.
func choicesOf(n *html.Node) []Choice {
	var list []Choice
	if text := textOf(n); text != "" {
		list = append(list, Choice{Kind: model.Text, Value: utf8text.CutText(text, maxChosen)})
	}
	names := slices.Concat(valued[n.Data], []string{"alt", "title", "datetime", "content", "value",
		"aria-label"})
	for _, name := range names {
		value := attribute(n, name)
		known := slices.ContainsFunc(list, func(c Choice) bool { return c.Attr == name })
		if value != "" && !known && len(list) < maxChoices {
			list = append(list,
				Choice{Kind: model.Attr, Attr: name, Value: utf8text.CutText(value, maxChosen)})
		}
	}
	return list
}

// called is a name for what an element holds.
func (s *Showing) called(n *html.Node, first bool) string {
	name, text := nameOf(n), textOf(n)
	switch {
	case !first && hasDigit(text) && amount.Is(text):
		return "price"
	case name != "":
		return name
	case n.Data == "img":
		return "image"
	case first:
		return "title"
	case n.Data == "a":
		return "link"
	}
	return "field"
}

// newName is a name that no field has yet.
func newName(name string, fields []model.Field) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(fields, func(f model.Field) bool { return f.Name == name })
	}
	free := name
	for n := 2; taken(free); n++ {
		free = name + strconv.Itoa(n)
	}
	return free
}

// Matches are, by field, the numbers of the elements that it is taken from, of each at most
// MaxPicked. Of a selector that is no CSS, or too dear, they are none.
func (s *Showing) Matches(kind model.ScraperType, fields []model.Field) [][]int {
	all := make([][]int, len(fields))
	var items []int
	for i, f := range fields {
		found := s.matches(f.Selector)
		switch {
		case kind == model.SingleProduct:
			found = found[:min(len(found), 1)]
		case i == 0:
			items, _ = s.itemsOf(found)
		case items != nil:
			found = s.firstIn(items, found)
		}
		all[i] = []int{}
		for _, n := range found[:min(len(found), MaxPicked)] {
			if number, shown := s.numbers[n]; shown {
				all[i] = append(all[i], number)
			}
		}
	}
	return all
}

// itemsOf are the rows that titles make; nil where they make none, or are not shown.
func (s *Showing) itemsOf(titles []*html.Node) (items, places []int) {
	for _, title := range titles {
		place, known := s.probe.index[title]
		if !known {
			return nil, nil
		}
		places = append(places, place)
	}
	return s.probe.itemsOf(places), places
}

// firstIn are the first ones of the nodes, which are in document order, in each item.
func (s *Showing) firstIn(items []int, nodes []*html.Node) []*html.Node {
	var first []*html.Node
	for _, item := range items {
		for len(nodes) > 0 && s.probe.place(nodes[0]) < item {
			nodes = nodes[1:]
		}
		if len(nodes) > 0 && s.probe.place(nodes[0]) < s.probe.all[item].end {
			first = append(first, nodes[0])
		}
	}
	return first
}

func (s *Showing) matches(selector string) []*html.Node {
	if _, err := cascadia.ParseGroup(selector); err != nil {
		return nil
	}
	return s.probe.sel.all(selector)
}
