// Package multiple owns MULTIPLE_PRODUCTS: several rows a page, one for each match of the first
// field (decision 36).
package multiple

import (
	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Compile checks and compiles the fields.
//
// An item is the largest element that holds exactly one match of the first field; the match itself
// may be the item. Each other field takes its first match in the item, the item itself included.
// Items do not apply if one match of the first field lies in another, or if no item holds a match
// of any other field. Then the n-th matches of all fields form row n. Either way, each match of the
// first field gives a row, except rows in which every field is null or false.
//
// An attribute or text that an XPath expression chooses takes the place of its element. An
// expression that gives a value is evaluated at each item, or at the document if there are no
// items. In JSON bodies, values take the place of elements.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	columns, isJSON, faults := rows.CompileColumns(r.Fields)
	if len(columns) > 0 && columns[0].Selector.IsScalar() {
		faults = append(faults, fault.Invalid(fault.SchemaValidation, "itemsConfig[0].selector",
			"the first field makes the rows: its selector has to choose something instead of "+
				"giving a value"))
	}
	made := rows.Maker{Patterns: rows.Patterns(columns)}
	switch {
	case len(faults) > 0:
		return rows.Maker{}, faults
	case isJSON:
		made.JSON = func(doc *jsondoc.Document, out *rows.Writer) error {
			return extract(finder[jsondoc.Node, jsondoc.Node]{
				tree:  doc,
				all:   func(c *rows.Column) []jsondoc.Node { return c.Path.All(doc) },
				place: func(n jsondoc.Node) jsondoc.Node { return n },
				none:  jsondoc.None,
				add: func(row *rows.Row, c *rows.Column, n,
					_ jsondoc.Node) {
					row.AddJSON(doc, c, n)
				},
			}, columns, out)
		}
		return made, nil
	}
	made.Rows = func(doc *dom.Document, out *rows.Writer) error {
		return extract(finder[dom.Elem, dom.Match]{
			tree:  doc,
			all:   func(c *rows.Column) []dom.Match { return c.Selector.All(doc) },
			place: func(m dom.Match) dom.Elem { return m.Elem },
			none:  dom.NoMatch,
			add: func(row *rows.Row, c *rows.Column, m dom.Match,
				item dom.Elem) {
				row.Add(doc, c, m, item)
			},
		}, columns, out)
	}
	return made, nil
}

// finder finds matches M at the places E of a document.
type finder[E ~int32, M any] struct {
	tree  tree[E]
	all   func(*rows.Column) []M // in document order
	place func(M) E
	none  M
	add   func(row *rows.Row, c *rows.Column, m M, item E)
}

// tree is a document whose places are numbered in document order. A place holds the places up to
// its end.
type tree[E ~int32] interface {
	Parent(E) E
	End(E) E
	GoesOn() bool
}

// root is the place of the whole document, none is no place.
const (
	root = 0
	none = -1
)

func extract[E ~int32, M any](f finder[E, M], columns []rows.Column, out *rows.Writer) error {
	matches := make([][]M, len(columns))
	matches[0] = f.all(&columns[0])
	if len(matches[0]) == 0 {
		return nil
	}
	if len(matches[0]) > rows.MaxRows {
		return rows.TooMany()
	}
	for i := range columns[1:] {
		matches[i+1] = f.all(&columns[i+1])
	}
	found, items, ok := f.byItem(columns, matches)
	if ok {
		matches = found
	}
	for n := range matches[0] {
		if !f.tree.GoesOn() {
			return nil // the document holds the error
		}
		row, item := out.BeginRow(), E(root)
		if ok {
			item = items[n]
		}
		for i := range columns {
			match := f.none
			if n < len(matches[i]) {
				match = matches[i][n]
			}
			f.add(row, &columns[i], match, item)
		}
		if err := row.End(); err != nil {
			return err
		}
	}
	return nil
}

// byItem aligns the matches with the items: entry n of each list is the first match in item n, or
// none. ok is false if the items overlap or hold no match of the other fields.
func (f *finder[E, M]) byItem(columns []rows.Column, matches [][]M) (found [][]M, items []E,
	ok bool) {
	if items, ok = f.items(matches[0]); !ok {
		return nil, nil, false
	}
	found = make([][]M, len(matches))
	found[0] = matches[0]
	held := len(matches) == 1
	for i, all := range matches[1:] {
		held = held || columns[i+1].Selector.IsScalar()
		found[i+1] = make([]M, len(items))
		for n, item := range items {
			for len(all) > 0 && f.place(all[0]) < item {
				all = all[1:]
			}
			found[i+1][n] = f.none
			if len(all) > 0 && f.place(all[0]) < f.tree.End(item) {
				found[i+1][n] = all[0]
				held = true
			}
		}
	}
	return found, items, held
}

// items maps each match, in document order, to the largest place that holds no other match. Items
// of different matches never overlap. ok is false if one match lies in another, because the outer
// one then has no item.
func (f *finder[E, M]) items(matches []M) (items []E, ok bool) {
	items = make([]E, len(matches))
	for n := range matches {
		item, before, after := f.place(matches[n]), E(none), f.tree.End(root)
		if n > 0 {
			before = f.place(matches[n-1])
		}
		if n+1 < len(matches) {
			after = f.place(matches[n+1])
		}
		if after < f.tree.End(item) {
			return nil, false
		}
		for p := f.tree.Parent(item); p != none && p > before &&
			f.tree.End(p) <= after; p = f.tree.Parent(p) {
			item = p
		}
		items[n] = item
	}
	return items, true
}
