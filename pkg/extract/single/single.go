// Package single owns SINGLE_PRODUCT: one row a page. Each field is its selector's first match.
package single

import (
	"slices"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/jsondoc"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Compile checks and compiles the fields. A page on which every field is null or false gives no
// row.
func Compile(r model.Recipe) (rows.Maker, fault.List) {
	columns, isJSON, faults := rows.CompileColumns(r.Fields)
	made := rows.Maker{Patterns: rows.Patterns(columns)}
	switch {
	case len(faults) > 0:
		return rows.Maker{}, faults
	case isJSON:
		made.JSON = func(doc *jsondoc.Document, out *rows.Writer) error {
			row := out.BeginRow()
			for i := range columns {
				row.AddJSON(doc, &columns[i], columns[i].Path.First(doc))
			}
			return row.End()
		}
		return made, nil
	}
	only := make([]*dom.Selector, len(columns))
	for i := range columns {
		if only[i] = columns[i].Selector.CSS; only[i] == nil {
			only = nil
			break
		}
	}
	if only != nil && slices.ContainsFunc(columns,
		func(c rows.Column) bool { return c.HasAddresses() }) {
		only = append(only, rows.Base())
	}
	made.Only, made.Rows = only, func(doc *dom.Document, out *rows.Writer) error {
		row := out.BeginRow()
		for i := range columns {
			row.Add(doc, &columns[i], columns[i].Selector.First(doc), dom.Whole)
		}
		return row.End()
	}
	return made, nil
}
