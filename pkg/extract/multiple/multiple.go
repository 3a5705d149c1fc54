// Package multiple owns MULTIPLE_PRODUCTS: many rows a page, one for each match of the first field (decision 36).
package multiple

import (
	"shoal.dev/shoal/pkg/extract/internal/dom"
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
// field is null or false.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	columns, faults := rows.CompileColumns(r.Fields)
	if len(faults) > 0 {
		return rows.Maker{}, faults
	}
	return rows.Maker{Rows: func(doc *dom.Document, out *rows.Writer) error { return extract(doc, columns, out) }}, nil
}

func extract(doc *dom.Document, columns []rows.Column, out *rows.Writer) error {
	matches := make([][]dom.Elem, len(columns))
	matches[0] = columns[0].Selector.All(doc)
	if len(matches[0]) == 0 {
		return nil
	}
	if len(matches[0]) > rows.MaxRows {
		return rows.TooMany()
	}
	for i := range columns[1:] {
		matches[i+1] = columns[i+1].Selector.All(doc)
	}
	if found, ok := byItem(doc, matches); ok {
		matches = found
	}
	for n := range matches[0] {
		row := out.Begin()
		for i := range columns {
			match := dom.None
			if n < len(matches[i]) {
				match = matches[i][n]
			}
			row.Add(doc, &columns[i], match)
		}
		if err := row.End(); err != nil {
			return err
		}
	}
	return nil
}

// byItem lines the matches up with the items: entry n of each list is the first match in item n, None where it has
// none. ok is false where the items overlap or hold none of the other fields.
func byItem(doc *dom.Document, matches [][]dom.Elem) (found [][]dom.Elem, ok bool) {
	items, ok := itemsOf(doc, matches[0])
	if !ok {
		return nil, false
	}
	found = make([][]dom.Elem, len(matches))
	found[0] = matches[0]
	held := len(matches) == 1
	for i, all := range matches[1:] {
		found[i+1] = make([]dom.Elem, len(items))
		for n, item := range items {
			for len(all) > 0 && all[0] < item {
				all = all[1:]
			}
			found[i+1][n] = dom.None
			if len(all) > 0 && all[0] < doc.End(item) {
				found[i+1][n] = all[0]
				held = true
			}
		}
	}
	return found, held
}

// itemsOf gives each match, in document order, the largest element that holds no other match. Items of different
// matches never overlap then; ok is false where a match lies in another one, which leaves the outer one without item.
func itemsOf(doc *dom.Document, matches []dom.Elem) (items []dom.Elem, ok bool) {
	items = make([]dom.Elem, len(matches))
	for n, match := range matches {
		before, after := dom.None, doc.End(dom.Root)
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
		for p := doc.Parent(item); p != dom.None && p > before && doc.End(p) <= after; p = doc.Parent(p) {
			item = p
		}
		items[n] = item
	}
	return items, true
}
