package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// posBits of a place are the row's pos in its block, which it has less than 2^posBits of; the rest
// is the block's number.
const (
	posBits = 21
	posMask = 1<<posBits - 1
	// maxBlock is the last block that a place can tell. Places come back from callers, who may have
	// made them up.
	maxBlock = math.MaxInt64 >> posBits
)

// printScope is the condition that a scope stands for, of rows and of records.
func printScope(scope rowstore.Scope) string {
	where := `grp = ` + id(scope.Group)
	if !scope.Scraper.IsZero() {
		where += ` AND scraper = ` + id(scope.Scraper)
	}
	if scope.Jobs != nil {
		where += ` AND job IN ` + idSet(scope.Jobs)
	}
	if len(scope.Without) > 0 {
		where += ` AND job NOT IN ` + idSet(scope.Without)
	}
	if len(scope.Gone) > 0 {
		where += ` AND scraper NOT IN ` + idSet(scope.Gone)
	}
	if scope.Since != 0 {
		where += fmt.Sprintf(` AND started >= %d`, scope.Since)
	}
	return where
}

// withoutTopK turns off one of the server's ways to leave rows unread by what it has found so far.
// That way costs a filtered read as much as the filter does.
const withoutTopK = `use_top_k_dynamic_filtering = 0`

// fewRows are read whole before they are cut: they are no more than that many million bytes.
const fewRows = 32

// Rows is rowstore.Reads. Documents are read only of the rows of the page. The server counts their
// bytes where they may be many, so that no more of them come here than are asked for.
func (s *Store) Rows(ctx context.Context, q rowstore.RowsQuery) ([]json.RawMessage, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	terms, settings := `at DESC, _block_number, pos`,
		`query_plan_max_limit_for_lazy_materialization = 0`
	if q.Filter != nil {
		settings += `, ` + withoutTopK
	}
	if len(q.Sort) > 0 {
		terms = printSort(q.Sort)
	}
	from, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	where := printScope(q.Scope)
	if q.Upto > 0 {
		where += ` AND ` + from.places(0, q.Upto)
	}
	page := fmt.Sprintf(`SELECT doc FROM %s WHERE %s AND kind = 1 AND %s ORDER BY %s LIMIT %d OFFSET %d`,
		from.from, where, printFilter(q.Filter), terms, q.Limit, q.Offset)
	if q.Bytes > 0 && q.Limit > fewRows {
		page = fmt.Sprintf(`SELECT doc FROM (SELECT doc, n, sum(length(doc)) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS size
			FROM (SELECT doc, rowNumberInAllBlocks() AS n FROM (%s))) WHERE size - length(doc) < %d ORDER BY n`, page, q.Bytes)
	}
	docs, err := read(ctx, s, page+` SETTINGS `+settings, scanDoc)
	if err != nil {
		return nil, fmt.Errorf("row store: rows: %w", err)
	}
	return q.Cut(docs), nil
}

func scanDoc(rows driver.Rows) (doc json.RawMessage, err error) {
	err = rows.Scan(&doc)
	return doc, err
}

// countSettings have the conditions of a filter evaluated on every row. None can fail. To leave
// some of them out row by row, or to read step by step, costs more than they do. The exception is
// fields that follow each other of which one leaves few rows.
func countSettings(f filter.Node) string {
	settings := `short_circuit_function_evaluation = 'disable'`
	if !severalFields(f) {
		settings += `, enable_multiple_prewhere_read_steps = 0`
	}
	return settings
}

// severalFields says whether a filter is a conjunction, and of more than comparisons of one field.
func severalFields(f filter.Node) bool {
	nodes, _ := f.(filter.And)
	return slices.ContainsFunc(nodes, func(n filter.Node) bool {
		first, _ := nodes[0].(filter.Compare)
		c, is := n.(filter.Compare)
		return !is || c.Field != first.Field
	})
}

// Count is rowstore.Reads.
func (s *Store) Count(ctx context.Context, scope rowstore.Scope, f filter.Node) (int64, error) {
	l, err := s.layout(ctx)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, table := range s.tables(l) {
		counts, err := read(ctx, s,
			fmt.Sprintf(`SELECT count() FROM %s WHERE %s AND kind = 1 AND %s SETTINGS %s`,
				table.from, printScope(scope), printFilter(f), countSettings(f)), scanBlock)
		if err != nil {
			return 0, fmt.Errorf("row store: count: %w", err)
		}
		total += int64(counts[0])
	}
	return total, nil
}

// CountUpto is rowstore.Reads.
func (s *Store) CountUpto(ctx context.Context, scopes []rowstore.Scope, upto int64) (int64, error) {
	from, err := s.source(ctx)
	if err != nil {
		return 0, err
	}
	counts, err := read(ctx, s, fmt.Sprintf(`SELECT count() FROM %s WHERE %s AND %s AND kind = 1`,
		from.from, printScopes(scopes), from.places(0, upto)), scanBlock)
	if err != nil {
		return 0, fmt.Errorf("row store: count up to a place: %w", err)
	}
	return int64(counts[0]), nil
}

// Horizon is rowstore.Reads.
func (s *Store) Horizon(ctx context.Context) (int64, error) {
	l, err := s.layout(ctx)
	if err != nil {
		return 0, err
	}
	blocks, err := read(ctx, s, s.newest(l), scanBlock)
	if err != nil {
		return 0, fmt.Errorf("row store: horizon: %w", err)
	}
	return int64(blocks[0]+1)<<posBits - 1, nil
}

// Scan looks at some next places of its block first. That is nearEach for each row that is wanted,
// and nearFiltered where a filter leaves some of them. Later looks with that filter take twice as
// many as its rows were apart, or nearSeldom where those were too few. Where one finds nearAgain,
// it goes on so in the next block. Otherwise it looks at nearBlocks blocks, and each time at so
// many more. Where a group's rows lie close together, a page is found in the first look. Where they
// do not, seven looks go through a million blocks.
const (
	nearEach     = 4 // rows share the places with their pages' records
	nearFiltered = 16
	nearSeldom   = 256
	nearAgain    = 32
	nearBlocks   = 2
	fartherEach  = 16
)

// Where bytes are bounded, a look takes as many rows as fill what is left of them. It takes them to
// be as long as the last ones of its kind. The server holds all documents of a look. It refuses one
// near by that comes upon lookBytes of them: a part of its rows is asked for then. Looks that are
// farther, or at more than nearFiltered places for a row, read documents once they have sorted.
// Only their rows can be bounded.
const (
	lookRows  = 128 // of looks that are not bounded in bytes, and of the first that is
	newRows   = 16  // of those, when nothing is known of the scope's rows
	lookBytes = 64 << 20
	lookPart  = 16
)

// scanKind is whose rows scans want, and the hash of their filter. One scan of a kind says what to
// expect of the next.
type scanKind struct {
	home
	filter uint64
}

// seen is what scans of one kind saw last.
type seen struct {
	each   int   // how long the rows were, 0 before there were any
	places int64 // how many the next look near by is to have for each row
}

// expect is what a scan begins with.
func (s *Store) expect(kind scanKind, f filter.Node) seen {
	last, known := s.seen.Get(kind)
	switch {
	case known:
	case f == nil:
		last.places = nearEach
	default:
		last.places = nearFiltered
	}
	return last
}

// note takes up what a look found. It says whether a wider one is to follow where it ended.
func (s *seen) note(l look, f filter.Node, rows []placed) (wider bool) {
	if len(rows) > 0 {
		s.each = meanLength(rows)
	}
	switch {
	case f == nil || !l.near:
	case len(rows) == l.most:
		apart := (rows[l.most-1].place - l.from) / int64(l.most)
		s.places = min(max(2*apart, nearEach), nearSeldom)
	case l.upto&posMask != posMask && s.places < nearSeldom: // the block goes on
		s.places, wider = nearSeldom, true
	}
	return wider
}

// look is one read of a scan.
type look struct {
	from, upto int64
	most       int  // rows
	near       bool // within a block
	whole      bool // documents are read as they are found
	bounded    bool // in bytes
}

// enough is how many rows fill what is left of a page. each is how long the last rows were, 0
// before there were any.
func (l look) enough(left, each int) int {
	switch {
	case each > 0 && l.bounded:
		return left/each*9/8 + 2 // some are shorter, and one more says that rows follow
	case each > 0:
		return min(left/each*9/8+2, lookRows)
	case l.bounded:
		return lookRows
	}
	return newRows
}

// Scan is rowstore.Reads.
func (s *Store) Scan(ctx context.Context, q rowstore.ScanQuery) (docs []json.RawMessage, last int64,
	err error) {
	l, err := s.layout(ctx)
	if err != nil {
		return nil, 0, err
	}
	tables, table := s.tables(l), 0
	blocks := int64(nearBlocks)
	q.After = max(q.After, 0)
	first := q.After == 0
	if first {
		if q.After, err = s.beginning(ctx, q, tables); err != nil {
			return nil, 0, fmt.Errorf("row store: beginning of a scan: %w", err)
		}
	}
	size, allowed := 0, math.MaxInt
	kind := scanKind{home{q.Scope.Group, q.Scope.Scraper},
		xxh3.HashString(printFilter(q.Filter))}
	next := s.expect(kind, q.Filter)
	for near := true; q.After < q.Upto; {
		for q.After >= l.last(table, tables) {
			table++
		}
		look := look{from: q.After, near: near, most: q.Limit - len(docs) + 1, // rows follow
			whole: near && next.places <= nearFiltered}
		look.bounded = look.whole && q.Bytes > 0
		if q.Bytes > 0 {
			look.most = min(look.most, look.enough(max(q.Bytes-size, 0), next.each), allowed)
		}
		look.upto = min(q.After>>posBits+blocks-1, maxBlock)<<posBits | posMask
		if near {
			if look.from&posMask == posMask { // the block ends
				look.from++
			}
			look.upto = min(look.from|posMask,
				look.from+min(next.places*int64(look.most), math.MaxInt64-look.from))
		}
		look.upto = min(look.upto, q.Upto, l.last(table, tables))
		rows, err := s.scan(ctx, tables[table], q, look)
		if look.bounded && look.most > 1 && refusedWith(err, tooManyBytes) {
			allowed = max(look.most/lookPart, 1)
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("row store: scan: %w", err)
		}
		wider := next.note(look, q.Filter, rows)
		s.seen.Add(kind, next)
		// it was removed: the next scan is not to go through what is not there
		if first && q.Filter == nil && len(rows) == 0 {
			s.begins.Remove(printScope(q.Scope))
		}
		first = false
		for _, r := range rows {
			if q.Full(len(docs), size) {
				return docs, last, nil
			}
			docs, size, last = append(docs, r.doc), size+len(r.doc), r.place
		}
		q.After = look.upto
		switch ended := near && look.upto&posMask == posMask; {
		case len(rows) == look.most:
			q.After, near = last, true
		case !near:
			blocks = min(blocks*fartherEach, maxBlock)
		default:
			near = wider || ended && len(rows) >= nearAgain
		}
	}
	return docs, q.Upto, nil
}

// meanLength is that of some rows' documents, 1 at least.
func meanLength(rows []placed) int {
	sum := 0
	for _, row := range rows {
		sum += len(row.doc)
	}
	return max(sum/len(rows), 1)
}

// beginning is a place before a scope's first row: in the first block that has something of it. It
// may be remembered: blocks are numbered as they are committed, and rows are only removed, so that
// none ever comes before it.
func (s *Store) beginning(ctx context.Context, q rowstore.ScanQuery, tables []source) (int64,
	error) {
	where := printScope(q.Scope)
	if place, known := s.begins.Get(where); known {
		return place, nil
	}
	for _, table := range tables {
		blocks, err := read(ctx, s,
			fmt.Sprintf(`SELECT _block_number FROM %s WHERE %s ORDER BY _block_number LIMIT 1`,
				table.from, where), scanBlock)
		if err != nil {
			return q.Upto, err
		}
		if len(blocks) == 0 {
			continue
		}
		place := int64(blocks[0]+table.base) << posBits
		if len(where) <= maxScope {
			s.begins.Add(where, place)
		}
		return place, nil
	}
	return q.Upto, nil
}

// placed is a document with its place.
type placed struct {
	doc   json.RawMessage
	place int64
}

// These settings of a scan follow from what it is. The blocks and places of the granules lead it,
// and they are to be asked once, before anything is read. Rows do not lie in its order. A look near
// by is too small to share out, or to put off its documents.
const (
	scanSettings = withoutTopK +
		`, use_skip_indexes_for_top_k = 0, use_skip_indexes_on_data_read = 0, optimize_read_in_order = 0`
	nearSettings = `, max_threads = 1, query_plan_optimize_lazy_materialization = 0`
)

// scan asks for the kind under a name that the primary key does not go by. Through records, too,
// the places lead straight to the granules. A search for kinds among the group's would take as long
// as all the rest.
func (s *Store) scan(ctx context.Context, from source, q rowstore.ScanQuery,
	look look) ([]placed, error) {
	settings := scanSettings
	if look.whole {
		settings += nearSettings
	}
	if look.bounded && look.most > 1 { // one row is read however long it is
		settings += fmt.Sprintf(`, max_bytes_to_sort = %d, sort_overflow_mode = 'throw'`, lookBytes)
	}
	return read(ctx, s, fmt.Sprintf(`SELECT doc, _block_number, pos FROM %s WHERE %s AND identity(kind) = 1 AND %s AND %s
		ORDER BY _block_number, pos LIMIT %d SETTINGS %s`, from.from, printScope(q.Scope),
		from.places(look.from, look.upto), printFilter(q.Filter), look.most,
		settings), func(rows driver.Rows) (row placed, err error) {
		var block uint64
		var pos uint32
		err = rows.Scan(&row.doc, &block, &pos)
		row.place = int64((block+from.base)<<posBits | uint64(pos))
		return row, err
	})
}

// places is a condition on the places after one and up to another. What it does not ask for costs
// nothing: whole blocks are most of what is asked for.
func places(after, upto int64) string {
	from, to := after>>posBits, upto>>posBits
	if from == to {
		return fmt.Sprintf(`_block_number = %d AND pos > %d AND pos <= %d`, from, after&posMask,
			upto&posMask)
	}
	where := fmt.Sprintf(`_block_number >= %d AND _block_number <= %d`, from, to)
	if pos := after & posMask; pos == posMask {
		where += fmt.Sprintf(` AND _block_number > %d`, from)
	} else if pos > 0 { // which no row has
		where += fmt.Sprintf(` AND (_block_number > %d OR pos > %d)`, from, pos)
	}
	if pos := upto & posMask; pos < posMask {
		where += fmt.Sprintf(` AND (_block_number < %d OR pos <= %d)`, to, pos)
	}
	return where
}
