package detect

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/utf8text"
)

// Bounds of the answer to a pick.
const (
	// pickVisits bounds the elements at which a pick tries selectors of its own: a tenth of a
	// preview's bound. The caller's selectors are paid from the steps of a page.
	pickVisits = maxVisits / 10
	// MaxPicked bounds the elements that are reported for a field.
	MaxPicked  = 1_000
	maxChoices = 8
	maxChosen  = 500 // bytes of a shown value
)

// Choice is a value of the picked element that a field could take.
type Choice struct {
	Kind  model.FieldKind
	Attr  string
	Value string
}

// Pick makes a field of the element with this number. For MULTIPLE_PRODUCTS, the first field
// matches all similar elements; later fields are searched in the rows that it makes. For
// SINGLE_PRODUCT, the field matches this element alone. choices lists the element's possible
// values, the field's own first. Faults are coded invalid_request and name the member element, or
// are those of Matches.
func (s *Showing) Pick(ctx context.Context, kind model.ScraperType, fields []model.Field,
	element int) (f model.Field, choices []Choice, err error) {
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
		titles, err := s.matches(ctx, kind, fields[0].Selector)
		if err != nil {
			return f, nil, err
		}
		if css, err = s.within(titles, n); err != nil {
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

// alike finds all elements similar to n: the titles of the future rows.
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

// within returns a selector for n in its row and for the similar elements of the other rows. The
// titles make the rows.
func (s *Showing) within(titles []*html.Node, n *html.Node) (string, error) {
	l := list{titles: titles}
	items, _ := s.itemsOf(titles)
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
	title := s.probe.sel.group(titles)
	if row >= maxSampled { // the search samples rows from the beginning
		items, l.titles, row = items[row:], l.titles[row:], 0
	}
	for _, item := range items {
		l.items = append(l.items, s.probe.all[item].node)
	}
	l.set = setOf(l.items)
	search := s.probe.searchOf(&l, title)
	nodes := s.counterparts(items[:min(len(items), maxSampled)], row, at)
	if css := search.selector(nodes, false); css != "" {
		return css, nil
	}
	found := slices.DeleteFunc(slices.Clone(nodes), func(n *html.Node) bool { return n == nil })
	return s.probe.titleSelector(&list{titles: found}), nil
}

// counterparts returns the element of each item that is similar to the one at index at. If there
// are several, it is the one with the same position among them.
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

// choicesOf returns an element's possible values, its text first if it has any.
func choicesOf(n *html.Node) []Choice {
	var list []Choice
	if text := textOf(n); text != "" {
		list = append(list, Choice{Kind: model.Text, Value: utf8text.CutText(text, maxChosen)})
	}
	names := slices.Concat(valued[n.Data], []string{"alt", "title", "datetime", "content", "value",
		"aria-label"})
	for _, name := range names {
		value := tree.Attr(n, name)
		known := slices.ContainsFunc(list, func(c Choice) bool { return c.Attr == name })
		if value != "" && !known && len(list) < maxChoices {
			list = append(list,
				Choice{Kind: model.Attr, Attr: name, Value: utf8text.CutText(value, maxChosen)})
		}
	}
	return list
}

// called returns a name for an element's field.
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

// newName makes a name unique among the fields.
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

// Matches returns, for each field, the numbers of the elements that it takes, at most MaxPicked. A
// selector that is not CSS has none. Its error is coded too_costly, or is the context's.
func (s *Showing) Matches(ctx context.Context, kind model.ScraperType,
	fields []model.Field) ([][]int, error) {
	all := make([][]int, len(fields))
	var items []int
	for i, f := range fields {
		found, err := s.matches(ctx, kind, f.Selector)
		switch {
		case err != nil:
			return nil, err
		case kind == model.SingleProduct:
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
	return all, nil
}

// itemsOf returns the rows that titles make; nil if they make none or are not shown.
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

// firstIn returns the first of the nodes, given in document order, in each item.
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

// matches returns the elements that a caller's selector takes, in document order: none if it is not
// CSS, at most one for SINGLE_PRODUCT.
func (s *Showing) matches(ctx context.Context, kind model.ScraperType,
	selector string) (found []*html.Node, err error) {
	compiled, _ := rows.CompileSelector("selector", selector, new(pattern.Total))
	if compiled.CSS == nil {
		return nil, nil
	}
	s.doc.Within(ctx)
	var elems []dom.Elem
	if kind != model.SingleProduct {
		elems = compiled.CSS.All(&s.doc)
	} else if first := compiled.CSS.First(&s.doc, dom.Whole); first != dom.None {
		elems = append(elems, first)
	}
	for _, e := range elems {
		found = append(found, s.nodes[e])
	}
	if err = s.doc.Err(); err != nil && ctx.Err() == nil {
		err = fault.Wrap(fault.PageTooCostly, err, "the selectors take too long on this page")
	}
	return found, err
}
