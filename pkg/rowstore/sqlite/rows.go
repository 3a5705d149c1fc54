package sqlite

import (
	"cmp"
	"container/heap"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// limit ends a statement. With a bare ?, SQLite would prepare the statement again for each new
// value.
const limit = ` LIMIT CAST(? AS INTEGER)`

// scopeJobs writes a query for the numbers and row counts of the jobs in a scope. Ids travel as one
// JSON array.
func scopeJobs(scope rowstore.Scope) (text string, args []any) {
	text, args = `SELECT id, rows FROM jobs WHERE grp = ?`, []any{scope.Group[:]}
	if !scope.Scraper.IsZero() {
		text += ` AND scraper = ?`
		args = append(args, scope.Scraper[:])
	}
	if scope.Jobs != nil {
		text += ` AND job IN (SELECT unhex(value) FROM json_each(?))`
		args = append(args, idList(scope.Jobs))
	}
	if len(scope.Without) > 0 {
		text += ` AND job NOT IN (SELECT unhex(value) FROM json_each(?))`
		args = append(args, idList(scope.Without))
	}
	if len(scope.Gone) > 0 {
		text += ` AND scraper NOT IN (SELECT unhex(value) FROM json_each(?))`
		args = append(args, idList(scope.Gone))
	}
	if scope.Since != 0 {
		text += ` AND started >= ?`
		args = append(args, scope.Since)
	}
	return text, args
}

// idList returns ids in hex as a JSON array.
func idList(list []ids.ID) string {
	text := make([]byte, 0, 2+27*len(list))
	text = append(text, '[')
	for i, id := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '"')
		text = append(text, id.String()...)
		text = append(text, '"')
	}
	return string(append(text, ']'))
}

// Rows implements rowstore.Reads.
func (s *Store) Rows(ctx context.Context, q rowstore.RowsQuery) ([]json.RawMessage, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	query := s.patterns.beginQuery(ctx)
	defer query.end()
	var docs []json.RawMessage
	err := view(ctx, s.reads, func(conn *sql.Conn) error {
		find := sorted
		if len(q.Sort) == 0 {
			find = newest
		}
		places, err := find(ctx, conn, q, query)
		if err != nil {
			return err
		}
		docs, _, err = docsAt(ctx, conn, places, q.Bytes)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: rows: %w", query.failure(err))
	}
	return docs, nil
}

// Count implements rowstore.Reads.
func (s *Store) Count(ctx context.Context, scope rowstore.Scope, f filter.Node) (int64, error) {
	query := s.patterns.beginQuery(ctx)
	defer query.end()
	jobs, args := scopeJobs(scope)
	text := `SELECT coalesce(sum(rows), 0) FROM (` + jobs + `)`
	within := shortly(ctx)
	if f != nil {
		condition, more := printFilter(f, query)
		text, args = `SELECT count(*) FROM `+rowsOf(jobs)+` WHERE `+condition, append(args, more...)
		within = ctx
	}
	var count int64
	err := view(ctx, s.reads, func(conn *sql.Conn) error {
		return conn.QueryRowContext(within, text,
			args...).Scan(&count)
	})
	if err != nil {
		return 0, fmt.Errorf("row store: count: %w", query.failure(err))
	}
	return count, nil
}

// CountUpto implements rowstore.Reads. Spans change with their rows: each place has a row.
func (s *Store) CountUpto(ctx context.Context, scopes []rowstore.Scope, upto int64) (int64, error) {
	total := int64(0)
	for _, scope := range scopes {
		jobs, args := scopeJobs(scope)
		var count int64
		err := view(ctx, s.reads, func(conn *sql.Conn) error {
			return conn.QueryRowContext(ctx, `SELECT coalesce(sum(min(last, ?) - first + 1), 0)
				FROM (`+jobs+`) AS scope CROSS JOIN spans ON spans.job = scope.id WHERE first <= ?`,
				slices.Concat([]any{upto}, args, []any{upto})...).Scan(&count)
		})
		if err != nil {
			return 0, fmt.Errorf("row store: count up to a place: %w", err)
		}
		total += count
	}
	return total, nil
}

// shortly returns the context for statements that read little. Cancellation takes goroutines of
// database/sql and the driver, which cost more than such a statement.
func shortly(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// rowsOf returns the FROM term for the rows of some jobs. CROSS joins keep this order: the only
// index of rows is their place, which only the spans know.
func rowsOf(jobs string) string {
	return `(` + jobs + `) AS scope CROSS JOIN spans ON spans.job = scope.id
		CROSS JOIN rows ON rows.place BETWEEN spans.first AND spans.last`
}

// sorted finds the places of a page of rows, in the order of their fields.
func sorted(ctx context.Context, conn *sql.Conn, q rowstore.RowsQuery, query *matching) ([]int64,
	error) {
	jobs, args := scopeJobs(q.Scope)
	condition, more := printFilter(q.Filter, query)
	args = append(args, more...)
	if q.Upto > 0 {
		condition, args = condition+` AND rows.place <= ?`, append(args, q.Upto)
	}
	terms, more := printSort(q.Sort)
	args = append(append(args, more...), q.Limit, q.Offset)
	var places []int64
	rows, err := conn.QueryContext(ctx, `SELECT rows.place FROM `+rowsOf(jobs)+` WHERE `+condition+`
		ORDER BY `+terms+limit+` OFFSET CAST(? AS INTEGER)`, args...)
	err = each(rows, err, func(rows *sql.Rows) error {
		var place int64
		err := rows.Scan(&place)
		places = append(places, place)
		return err
	})
	return places, err
}

// docsAt returns documents in the order of their places, and how many places it read. The document
// that reaches most bytes is the last, unless most is 0.
func docsAt(ctx context.Context, conn *sql.Conn, places []int64, most int) ([]json.RawMessage, int,
	error) {
	found, size := make([]rowstore.Numbered, 0, len(places)), 0
	rows, err := conn.QueryContext(shortly(ctx), `SELECT list.key, doc FROM json_each(?) AS list CROSS JOIN rows ON rows.place = list.value
		ORDER BY list.key`, numberList(places))
	err = each(rows, err, func(rows *sql.Rows) error {
		if most > 0 && size >= most {
			return errFull
		}
		var one rowstore.Numbered
		err := rows.Scan(&one.Number, (*[]byte)(&one.Doc))
		found, size = append(found, one), size+len(one.Doc)
		return err
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, 0, err
	}
	docs, used := rowstore.Cut(found, len(places), most)
	return docs, used, nil
}

// found is a row with the values that newestFirst compares.
type found struct{ at, place int64 }

// newestFirst orders by time, newest first, then by place.
func newestFirst(a, b found) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.place, b.place))
}

// candidates is a heap whose top is the last row in order.
type candidates []found

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return newestFirst(c[i], c[j]) > 0 }
func (c candidates) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)        { *c = append(*c, x.(found)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// spansAtOnce is the most spans that newest reads in one statement: it begins with one and doubles.
const spansAtOnce = 256

// newest finds the places of a page of the newest rows. It reads spans by their newest row, newest
// first, and stops at the first span that cannot contribute.
func newest(ctx context.Context, conn *sql.Conn, q rowstore.RowsQuery, query *matching) ([]int64,
	error) {
	if q.Filter == nil {
		ctx = shortly(ctx)
	}
	jobs, args := scopeJobs(q.Scope)
	spans, err := spansOf(ctx, conn,
		`(`+jobs+`) AS scope CROSS JOIN spans ON spans.job = scope.id ORDER BY at DESC`, args)
	if err != nil {
		return nil, err
	}
	if q.Upto > 0 {
		spans = spansUpto(spans, q.Upto)
	}
	condition, more := printFilter(q.Filter, query)
	statement, err := conn.PrepareContext(ctx, `SELECT at, place FROM json_each(?) AS span
		CROSS JOIN rows ON place BETWEEN span.value ->> 0 AND span.value ->> 1
		WHERE `+condition+` ORDER BY at DESC, place`+limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = statement.Close() }() // only reads
	most := q.Offset + q.Limit
	var best candidates
	for n := 1; len(spans) > 0 &&
		(len(best) < most || spans[0].at >= best[0].at); n = min(2*n, spansAtOnce) {
		n = min(n, len(spans))
		rows, err := statement.QueryContext(ctx,
			slices.Concat([]any{spanList(spans[:n])}, more, []any{most})...)
		spans = spans[n:]
		err = each(rows, err, func(rows *sql.Rows) error {
			var row found
			if err := rows.Scan(&row.at, &row.place); err != nil {
				return err
			}
			if len(best) < most {
				heap.Push(&best, row)
			} else if newestFirst(row, best[0]) < 0 {
				best[0] = row
				heap.Fix(&best, 0)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(best, newestFirst)
	var places []int64
	for _, row := range best[min(q.Offset, len(best)):] {
		places = append(places, row.place)
	}
	return places, nil
}

// stretch is a range of places.
type stretch struct{ first, last, at int64 }

// spansUpto cuts spans off after a place.
func spansUpto(spans []stretch, upto int64) []stretch {
	spans = slices.DeleteFunc(spans, func(span stretch) bool { return span.first > upto })
	for i := range spans {
		spans[i].last = min(spans[i].last, upto)
	}
	return spans
}

// spanList returns spans as a JSON array of pairs.
func spanList(spans []stretch) string {
	text := []byte{'['}
	for i, span := range spans {
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "[%d,%d]", span.first, span.last)
	}
	return string(append(text, ']'))
}

func spansOf(ctx context.Context, conn *sql.Conn, from string, args []any) ([]stretch, error) {
	var spans []stretch
	rows, err := conn.QueryContext(ctx, `SELECT first, last, at FROM `+from, args...)
	err = each(rows, err, func(rows *sql.Rows) error {
		var span stretch
		err := rows.Scan(&span.first, &span.last, &span.at)
		spans = append(spans, span)
		return err
	})
	return spans, err
}

// Horizon implements rowstore.Reads. The writer knows it, since nobody else writes.
func (s *Store) Horizon(context.Context) (int64, error) {
	select {
	case <-s.writer.quit:
		return 0, errClosed
	default:
		return s.writer.horizon.Load(), nil
	}
}

// Scan implements rowstore.Reads.
func (s *Store) Scan(ctx context.Context, q rowstore.ScanQuery) (docs []json.RawMessage, last int64,
	err error) {
	last = q.After
	more, size := false, 0
	query := s.patterns.beginQuery(ctx)
	defer query.end()
	err = view(ctx, s.reads, func(conn *sql.Conn) error {
		if q.Filter == nil {
			ctx = shortly(ctx)
		}
		jobs, args := scopeJobs(q.Scope)
		spans, err := spansOf(ctx, conn, `(`+jobs+`) AS scope CROSS JOIN spans ON spans.job = scope.id
			WHERE last > ? AND first <= ? ORDER BY first`, append(args, q.After, q.Upto))
		if err != nil {
			return err
		}
		condition, operands := printFilter(q.Filter, query)
		statement, err := conn.PrepareContext(ctx, `SELECT place, doc FROM rows WHERE place BETWEEN ? AND ? AND `+condition+`
			ORDER BY place`+limit)
		if err != nil {
			return err
		}
		defer func() { _ = statement.Close() }() // only reads
		for _, span := range joined(spans) {
			args := append([]any{max(span.first, q.After+1), min(span.last, q.Upto)}, operands...)
			rows, err := statement.QueryContext(ctx, append(args, q.Limit-len(docs)+1)...)
			err = each(rows, err, func(rows *sql.Rows) error {
				if more = q.Full(len(docs), size); more {
					return errFull
				}
				var doc []byte
				err := rows.Scan(&last, &doc)
				docs, size = append(docs, doc), size+len(doc)
				return err
			})
			if errors.Is(err, errFull) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("row store: scan: %w", query.failure(err))
	}
	if !more {
		last = q.Upto
	}
	return docs, last, nil
}

// errFull ends a read at the first row beyond those asked for.
var errFull = errors.New("enough rows")

// joined joins adjacent spans. While a single job runs, all of its spans are adjacent.
func joined(spans []stretch) []stretch {
	var runs []stretch
	for _, span := range spans {
		if n := len(runs); n > 0 && runs[n-1].last+1 == span.first {
			runs[n-1].last = span.last
			continue
		}
		runs = append(runs, span)
	}
	return runs
}
