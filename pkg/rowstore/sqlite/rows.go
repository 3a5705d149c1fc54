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

// limit ends a statement. SQLite would prepare a statement with a bare ? there anew whenever that
// has another value.
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

// idList is a JSON array of ids in hex.
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

// Rows is rowstore.Reads.
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

// Count is rowstore.Reads.
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

// CountUpto is rowstore.Reads. Every place of a span has a row, and both go in one transaction.
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

// shortly is the context of statements that read little. What would end one early, goroutines of
// database/sql and of the driver, costs more than the statement.
func shortly(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// rowsOf is the FROM term for the rows of some jobs. The joins are CROSS to keep this order: rows
// have no index but their place, which only the spans know.
func rowsOf(jobs string) string {
	return `(` + jobs + `) AS scope CROSS JOIN spans ON spans.job = scope.id
		CROSS JOIN rows ON rows.place BETWEEN spans.first AND spans.last`
}

// sorted finds a page of rows in the order of their fields.
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

// docsAt returns documents in the order of their places, and how many places that read. One that
// makes them so many bytes long is the last, if that is not 0.
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

// found is a row with what the newest rows are ordered by.
type found struct{ at, place int64 }

// newestFirst orders by time, newest first, then by place.
func newestFirst(a, b found) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.place, b.place))
}

// candidates is a heap with the last in order on top.
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

// spansAtOnce bounds how many spans newest looks through in one statement: at first one, then twice
// as many each time.
const spansAtOnce = 256

// newest finds a page of the newest rows. It takes the spans in the order of their newest row and
// ends at one that has none new enough.
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
	defer func() { _ = statement.Close() }() // reading only
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

// stretch is a run of places.
type stretch struct{ first, last, at int64 }

// spansUpto is what of spans lies up to a place.
func spansUpto(spans []stretch, upto int64) []stretch {
	spans = slices.DeleteFunc(spans, func(span stretch) bool { return span.first > upto })
	for i := range spans {
		spans[i].last = min(spans[i].last, upto)
	}
	return spans
}

// spanList is a JSON array of pairs.
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

// Horizon is rowstore.Reads. Nobody else writes: the writer knows.
func (s *Store) Horizon(context.Context) (int64, error) {
	select {
	case <-s.writer.quit:
		return 0, errClosed
	default:
		return s.writer.horizon.Load(), nil
	}
}

// Scan is rowstore.Reads.
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
		defer func() { _ = statement.Close() }() // reading only
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

// errFull ends a read at a row that is not asked for.
var errFull = errors.New("enough rows")

// joined joins spans that follow each other without a gap, which is all of them while one job runs.
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
