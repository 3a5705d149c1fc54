package data

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/pkg/rowstore"
)

// sorting describes the order by a field.
const sorting = "When sorted by a field, numbers and numeric text come first. Other text " +
	"follows by code point (its first 256 bytes), then booleans, then other values. Rows with " +
	"null or without the field come last in either direction. Equal rows stay in the order in " +
	"which they were stored."

// standing is a rowstore.Standing in a cursor. Text may end within a character.
type standing struct {
	Class  rowstore.Class `json:"c"`
	Number float64        `json:"n,omitempty"`
	Text   []byte         `json:"t,omitempty"`
	Place  int64          `json:"p"`
}

func (s *standing) row() *rowstore.Standing {
	if s == nil {
		return nil
	}
	return &rowstore.Standing{Class: s.Class, Number: s.Number, Text: string(s.Text),
		Place: s.Place}
}

// fits reports whether a cursor's place suits a sorted or an unsorted read.
func (p *place) fits(sorted bool) bool {
	if !sorted {
		return p.Sorted == nil
	}
	return p.Sorted != nil && p.Group.IsZero() && p.After == 0 && p.Sorted.row().Valid() &&
		p.Sorted.Place <= p.Upto
}

// sorted is the requested order; nil: the order in which rows were stored.
func (in *selection) sorted() (*rowstore.Sort, error) {
	if in.Sort == "" {
		return nil, nil
	}
	sorts, err := parseSort([]string{in.Sort})
	if err != nil {
		return nil, err
	}
	return &sorts[0], nil
}

// scanSorted is scan in the order of a field. read identifies the read.
func (in *readRequest) scanSorted(ctx context.Context, r Resource, scopes []rowstore.Scope,
	at *place, q rowstore.ScanQuery, sort rowstore.Sort,
	read []string) (rows []api.Row, more bool, err error) {
	order := rowstore.OrderQuery{Scopes: scopes, Filter: q.Filter, Sort: sort,
		After: at.Sorted.row(), Upto: q.Upto, Limit: in.Skip + in.Limit + 1}
	of := nameOf(append(slices.Clone(read), fmt.Sprint(order.Upto, scopes))...)
	for found, known := r.Ahead.next(of, &order); ; known = false {
		if !known {
			if found, err = r.Ahead.look(ctx, r.Store, of, &order); err != nil {
				return nil, false, fmt.Errorf("order of rows: %w", err)
			}
		}
		found = found[min(in.Skip, len(found)):]
		asked := found[:min(in.Limit, len(found))]
		docs, used, err := r.Store.At(ctx, scopes, places(asked), q.Bytes)
		if err != nil {
			return nil, false, fmt.Errorf("rows in order: %w", err)
		}
		if known && len(docs) < used {
			continue // some were removed after their order was read
		}
		if more = used < len(found); more {
			last := asked[used-1]
			at.Sorted = &standing{last.Class, last.Number, []byte(last.Text), last.Place}
		}
		return api.Rows(docs), more, nil
	}
}

// sortAll reads rows in the order of a field, at most most of them; 0: no limit. It orders q.Limit
// rows at once, and reads bytes of them at a time.
func sortAll(ctx context.Context, store rowstore.Reads, q rowstore.OrderQuery, bytes int,
	most int64) iter.Seq2[[]json.RawMessage, error] {
	return func(yield func([]json.RawMessage, error) bool) {
		q, atOnce := q, q.Limit // it may be called again
		for left := most; most == 0 || left > 0; {
			if q.Limit = atOnce; most > 0 {
				q.Limit = int(min(int64(atOnce), left))
			}
			found, err := store.Order(ctx, q)
			if err != nil {
				yield(nil, fmt.Errorf("order of rows to export: %w", err))
				return
			}
			left -= int64(len(found))
			for rest := found; len(rest) > 0; {
				part := rest[:min(exportRows, len(rest))]
				docs, used, err := store.At(ctx, q.Scopes, places(part), bytes)
				if err != nil {
					yield(nil, fmt.Errorf("rows to export: %w", err))
					return
				}
				if !yield(docs, nil) {
					return
				}
				rest = rest[used:]
			}
			if len(found) < q.Limit {
				return
			}
			q.After = &found[len(found)-1]
		}
	}
}

func places(rows []rowstore.Standing) []int64 {
	places := make([]int64, len(rows))
	for i, row := range rows {
		places[i] = row.Place
	}
	return places
}
