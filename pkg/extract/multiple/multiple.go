// Package multiple owns MULTIPLE_PRODUCTS: many rows a page, one for each match of the first field (decision 36).
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
// An item is the largest element that holds exactly one match of the first field, the match itself included; the
// others are looked up in it, the item itself included, and the first match counts. Where a match of the first field
// lies in another one, or no item holds a match of any other field, items say nothing, and the n-th matches of all
// fields form row n. Either way there are as many rows as matches of the first field, without those in which every
// field is null or false. In JSON bodies values stand for elements; matches are taken in the body's order.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	columns, isJSON, faults := rows.CompileColumns(r.Fields)
	switch {
	case len(faults) > 0:
		return rows.Maker{}, faults
	case isJSON:
		return rows.Maker{JSON: func(doc *jsondoc.Document, out *rows.Writer) error {
			find := func(c *rows.Column) []jsondoc.Node { return c.Path.All(doc) }
			return extract(doc, columns, find, out, func(row *rows.Row, c *rows.Column, n jsondoc.Node) {
				row.AddJSON(doc, c, n)
			})
		}}, nil
	}
	return rows.Maker{Rows: func(doc *dom.Document, out *rows.Writer) error {
		find := func(c *rows.Column) []dom.Elem { return c.Selector.All(doc) }
		return extract(doc, columns, find, out, func(row *rows.Row, c *rows.Column, e dom.Elem) { row.Add(doc, c, e) })
	}}, nil
}

// tree is a document as numbered places in its order: what a place holds are the places up to its end. The root is 0.
type tree[E ~int32] interface {
	Parent(E) E
	End(E) E
}

// none is no place.
const none = -1

func extract[E ~int32](doc tree[E], columns []rows.Column, find func(*rows.Column) []E, out *rows.Writer,
	add func(*rows.Row, *rows.Column, E)) error {
	matches := make([][]E, len(columns))
	matches[0] = find(&columns[0])
	if len(matches[0]) == 0 {
		return nil
	}
	if len(matches[0]) > rows.MaxRows {
		return rows.TooMany()
	}
	for i := range columns[1:] {
		matches[i+1] = find(&columns[i+1])
	}
	if found, ok := byItem(doc, matches); ok {
		matches = found
	}
	for n := range matches[0] {
		row := out.Begin()
		for i := range columns {
			match := E(none)
			if n < len(matches[i]) {
				match = matches[i][n]
			}
			add(row, &columns[i], match)
		}
		if err := row.End(); err != nil {
			return err
		}
	}
	return nil
}

// byItem lines the matches up with the items: entry n of each list is the first match in item n, none where it has
// none. ok is false where the items overlap or hold none of the other fields.
func byItem[E ~int32](doc tree[E], matches [][]E) (found [][]E, ok bool) {
	items, ok := itemsOf(doc, matches[0])
	if !ok {
		return nil, false
	}
	found = make([][]E, len(matches))
	found[0] = matches[0]
	held := len(matches) == 1
	for i, all := range matches[1:] {
		found[i+1] = make([]E, len(items))
		for n, item := range items {
			for len(all) > 0 && all[0] < item {
				all = all[1:]
			}
			found[i+1][n] = none
			if len(all) > 0 && all[0] < doc.End(item) {
				found[i+1][n] = all[0]
				held = true
			}
		}
	}
	return found, held
}

// itemsOf gives each match, in document order, the largest place that holds no other match. Items of different
// matches never overlap then; ok is false where a match lies in another one, which leaves the outer one without item.
func itemsOf[E ~int32](doc tree[E], matches []E) (items []E, ok bool) {
	items = make([]E, len(matches))
	for n, match := range matches {
		before, after := E(none), doc.End(0)
		if n > 0 {
			before = matches[n-1]
		}
		if n+1 < len(matches) {
			after = matches[n+1]
		}
		if after < doc.End(match) {
			return nil, false
		}
		item := match
		for p := doc.Parent(item); p != none && p > before && doc.End(p) <= after; p = doc.Parent(p) {
			item = p
		}
		items[n] = item
	}
	return items, true
}
