package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

// keyNames are the default key columns, in order of preference.
func keyNames() []string {
	return []string{"EAN", "GTIN", "EAN13", "barcode", "SKU", "MPN", "product_id", "id", "url"}
}

// ReadsRows reads stored columns from the row store of the API or of ingest.
type ReadsRows interface {
	Horizon(ctx context.Context) (int64, error)
	Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error)
	Holding(ctx context.Context, scope rowstore.Scope, most int) ([]ids.ID, error)
	EachRecord(ctx context.Context, job ids.ID, visit func(rowstore.Record) error) error
}

// KeyColumnOf returns the column by which the next file is merged into a protected scraper's rows.
// The fixed column wins, then the one that the matching setup uses. If the match has not run yet,
// it predicts the match's column. Otherwise it is the first of keyNames that the rows have, in any
// case, or else asked. Faults: KEY_COLUMN_REQUIRED; KEY_COLUMN_INVALID if no stored row has the
// column.
func KeyColumnOf(ctx context.Context, rows ReadsRows, v *View, s *Scraper, asked string) (string,
	error) {
	if p := s.Protection; p != nil && p.Key != "" {
		return p.Key, nil
	} else if p != nil && p.Matched != "" {
		return p.Matched, nil
	}
	upto, err := rows.Horizon(ctx)
	if err != nil {
		return "", fmt.Errorf("stored columns: %w", err)
	}
	var scans []rowstore.ScanQuery
	for _, group := range v.GroupsOf(s) { // a moved scraper's rows lie where its runs were
		scans = append(scans, rowstore.ScanQuery{Scope: Shown(v, group, s.ID), Upto: upto,
			Limit: 1_000, Bytes: 4 << 20})
	}
	for _, q := range scans {
		docs, _, err := rows.Scan(ctx, q)
		if err != nil {
			return "", fmt.Errorf("stored columns: %w", err)
		}
		first, err := MatchedColumns(docs)
		if err != nil {
			return "", fmt.Errorf("stored columns: %w", err)
		}
		if first.Number != "" && len(first.Number) <= MaxKeyColumn {
			return first.Number, nil
		}
	}
	named, err := storedNames(ctx, rows, scans)
	if err != nil {
		return "", fmt.Errorf("stored columns: %w", err)
	}
	for _, name := range keyNames() {
		if column, has := named[strings.ToLower(name)]; has {
			return column, nil
		}
	}
	if len(named) == 0 && asked != "" && !model.IsServerKey(asked) {
		return asked, nil // no rows are left: the file's own columns count
	}
	if asked == "" {
		return "", fault.Invalid(fault.KeyColumnRequired, "keyColumn",
			"is required: files of the scraper add to each other, by this column")
	}
	for _, q := range scans {
		q.Limit, q.Filter = 1, filter.Compare{Field: asked, Op: filter.Exists,
			Values: []filter.Value{{Kind: filter.Bool, Bool: true}}}
		found, _, err := rows.Scan(ctx, q)
		if err != nil {
			return "", fmt.Errorf("stored columns: %w", err)
		}
		if len(found) > 0 && !model.IsServerKey(asked) {
			return asked, nil
		}
	}
	return "", fault.Invalid(fault.KeyColumnInvalid, "keyColumn",
		"no stored row has this column")
}

// MatchedColumns returns the columns that a match uses, judged by the first rows of a run.
func MatchedColumns(docs []json.RawMessage) (match.Columns, error) {
	named := map[string]string{}
	if err := addNames(named, docs); err != nil {
		return match.Columns{}, err
	}
	return match.ColumnsOf(slices.Sorted(maps.Keys(named))), nil
}

// addNames adds the column names of rows to named.
func addNames(named map[string]string, docs []json.RawMessage) error {
	for _, doc := range docs {
		var row map[string]json.RawMessage
		if err := json.Unmarshal(doc, &row); err != nil {
			return err
		}
		for name := range row {
			if !model.IsServerKey(name) {
				named[name] = name
			}
		}
	}
	return nil
}

// storedNames returns the columns of all rows by lower-case name. If names differ only in case, the
// first by name wins.
func storedNames(ctx context.Context, rows ReadsRows, scans []rowstore.ScanQuery) (
	map[string]string, error) {
	named := map[string]string{}
	for _, q := range scans {
		if err := addStored(ctx, rows, q, named); err != nil {
			return nil, err
		}
	}
	lower := make(map[string]string, len(named))
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(named))) {
		lower[strings.ToLower(name)] = name
	}
	return lower, nil
}

// addStored adds the column names of a scope's rows to named. They come from the sums of page
// records, or from the rows where a page has no sums.
func addStored(ctx context.Context, rows ReadsRows, q rowstore.ScanQuery,
	named map[string]string) error {
	runs, err := rows.Holding(ctx, q.Scope, MaxHidden)
	if err != nil {
		return err
	}
	whole := len(runs) < MaxHidden
	for _, run := range runs {
		err := rows.EachRecord(ctx, run, func(record rowstore.Record) error {
			if record.Items == 0 || !whole {
				return nil
			}
			sums, err := profile.Decode(record.Sums)
			if whole = err == nil && !sums.More && sums.Rows == uint64(record.Items); !whole {
				return nil
			}
			for _, field := range sums.Fields {
				named[field.Name] = field.Name
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for !whole && q.After < q.Upto {
		docs, last, err := rows.Scan(ctx, q)
		if err == nil {
			err = addNames(named, docs)
		}
		if err != nil {
			return err
		}
		q.After = last
	}
	return nil
}
