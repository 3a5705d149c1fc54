package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// keyNames are the columns that tell rows apart where nobody says which, the first one first.
func keyNames() []string {
	return []string{"EAN", "GTIN", "EAN13", "barcode", "SKU", "MPN", "product_id", "id", "url"}
}

// knownRows are the stored rows among which columns are looked for by name.
const knownRows = 10_000

// ReadsRows is the reads by which stored columns are found: the API's row store, or that of ingest.
type ReadsRows interface {
	Horizon(ctx context.Context) (int64, error)
	Scan(ctx context.Context, q rowstore.ScanQuery) ([]json.RawMessage, int64, error)
}

// KeyColumnOf is the column by which the next file's rows are added to a protected scraper's. It is
// the one that was fixed, else the one that the matching setup uses. Else it is the first of
// keyNames that the stored rows have, in any case of letters, or what was asked for. Faults:
// KEY_COLUMN_REQUIRED, KEY_COLUMN_INVALID of a column that no stored row has.
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
	q := rowstore.ScanQuery{Scope: Shown(v, s.Group, s.ID), Upto: upto, Limit: 1_000,
		Bytes: 4 << 20}
	named, err := storedNames(ctx, rows, q)
	if err != nil {
		return "", fmt.Errorf("stored columns: %w", err)
	}
	for _, name := range keyNames() {
		if column, has := named[strings.ToLower(name)]; has {
			return column, nil
		}
	}
	if len(named) == 0 && asked != "" && !strings.HasPrefix(asked, "_") {
		return asked, nil // its rows are gone: the file's own columns count
	}
	if asked == "" {
		return "", fault.Invalid(fault.KeyColumnRequired, "keyColumn",
			"names the column that tells rows apart: files of the scraper add to each other")
	}
	q.Limit, q.Filter = 1, filter.Compare{Field: asked, Op: filter.Exists,
		Values: []filter.Value{{Kind: filter.Bool, Bool: true}}}
	found, _, err := rows.Scan(ctx, q)
	if err != nil {
		return "", fmt.Errorf("stored columns: %w", err)
	}
	if len(found) == 0 || strings.HasPrefix(asked, "_") {
		return "", fault.Invalid(fault.KeyColumnInvalid, "keyColumn",
			"no stored row has this column")
	}
	return asked, nil
}

// storedNames are the columns of the first knownRows rows, by their names in lower case. Of those
// that differ in case alone it has the first by name.
func storedNames(ctx context.Context, rows ReadsRows, q rowstore.ScanQuery) (map[string]string,
	error) {
	named := map[string]string{}
	for seen := 0; seen < knownRows && q.After < q.Upto; {
		docs, last, err := rows.Scan(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			var row map[string]json.RawMessage
			if err := json.Unmarshal(doc, &row); err != nil {
				return nil, err
			}
			for name := range row {
				lower := strings.ToLower(name)
				if known, has := named[lower]; !has || name < known {
					named[lower] = name
				}
			}
		}
		seen, q.After = seen+len(docs), last
	}
	return named, nil
}
