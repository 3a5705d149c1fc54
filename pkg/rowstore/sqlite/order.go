package sqlite

import (
	"container/heap"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/rowstore"
)

// Order implements rowstore.Reads. It selects the first rows itself: SQLite would compute the key
// of a row again for each term that uses it.
func (s *Store) Order(ctx context.Context, q rowstore.OrderQuery) ([]rowstore.Standing, error) {
	if q.Limit <= 0 || len(q.Scopes) == 0 {
		return nil, nil
	}
	query := s.patterns.beginQuery(ctx)
	defer query.end()
	jobs, args := scopesJobs(q.Scopes)
	condition, more := printFilter(q.Filter, query)
	args = append(append(append([]any{q.Sort.Field}, args...), q.Upto), more...)
	best := standings{sort: q.Sort}
	err := view(ctx, s.reads, func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, `SELECT rows.place, order_key(doc, ?) FROM `+
			rowsOf(jobs)+` WHERE rows.place <= ? AND `+condition, args...)
		return each(rows, err, func(rows *sql.Rows) error {
			var row rowstore.Standing
			var key any
			if err := rows.Scan(&row.Place, &key); err != nil {
				return err
			}
			stand(&row, key)
			if q.After == nil || q.Sort.Compare(row, *q.After) > 0 {
				best.offer(row, q.Limit)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("row store: order: %w", query.failure(err))
	}
	slices.SortFunc(best.rows, q.Sort.Compare)
	return best.rows, nil
}

// At implements rowstore.Reads. A place belongs to one row for good, whatever its scope.
func (s *Store) At(ctx context.Context, _ []rowstore.Scope, places []int64,
	bytes int) (docs []json.RawMessage, used int, err error) {
	err = view(ctx, s.reads, func(conn *sql.Conn) error {
		docs, used, err = docsAt(ctx, conn, places, bytes)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("row store: rows at places: %w", err)
	}
	return docs, used, nil
}

// scopesJobs is scopeJobs for several scopes.
func scopesJobs(scopes []rowstore.Scope) (text string, args []any) {
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		var more []any
		texts[i], more = scopeJobs(scope)
		args = append(args, more...)
	}
	return strings.Join(texts, ` UNION ALL `), args
}

// stand sets the value of a standing from a result of order_key.
func stand(row *rowstore.Standing, key any) {
	switch key := key.(type) {
	case float64:
		row.Class, row.Number = rowstore.Numbers, key+0 // make -0 a 0
	case string:
		row.Class, row.Text = rowstore.Texts, key
	case int64:
		row.Class, row.Number = rowstore.Booleans, float64(key)
	case nil:
		row.Class = rowstore.Nones
	default:
		row.Class = rowstore.Others
	}
}

// standings is a heap with the last in order on top.
type standings struct {
	sort rowstore.Sort
	rows []rowstore.Standing
}

// offer keeps a row if it is among the first most rows.
func (s *standings) offer(row rowstore.Standing, most int) {
	if len(s.rows) < most {
		heap.Push(s, row)
	} else if s.sort.Compare(row, s.rows[0]) < 0 {
		s.rows[0] = row
		heap.Fix(s, 0)
	}
}

func (s *standings) Len() int           { return len(s.rows) }
func (s *standings) Less(i, j int) bool { return s.sort.Compare(s.rows[i], s.rows[j]) > 0 }
func (s *standings) Swap(i, j int)      { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] }
func (s *standings) Push(x any)         { s.rows = append(s.rows, x.(rowstore.Standing)) }

// Pop is required by heap.Interface: nothing is ever popped.
func (s *standings) Pop() any {
	last := s.rows[len(s.rows)-1]
	s.rows = s.rows[:len(s.rows)-1]
	return last
}
