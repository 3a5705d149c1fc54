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

// posBits is how many bits of a place hold the row's pos in its block, which has fewer than
// 2^posBits rows. The other bits are the block number.
const (
	posBits = 21
	posMask = 1<<posBits - 1
	// maxBlock is the last block that a place can express. Places come from callers, who may invent
	// them.
	maxBlock = math.MaxInt64 >> posBits
)

// printScope returns the condition for the rows and records of a scope.
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

// withoutTopK turns off an optimization that skips rows by what the server has found so far. It
// costs a filtered read as much as the filter does.
const withoutTopK = `use_top_k_dynamic_filtering = 0`

// fewRows rows are read whole before they are cut: at most that many million bytes.
const fewRows = 32

// Rows implements rowstore.Reads. It reads documents only for the rows of the page. If they may be
// long, the server counts their bytes, so that it sends no more than q asks for.
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

// countSettings make the server evaluate a filter's conditions on every row. None of them can fail.
// Skipping some row by row, or reading step by step, costs more than it saves. The exception is a
// conjunction over several fields, one of which leaves few rows.
func countSettings(f filter.Node) string {
	settings := `short_circuit_function_evaluation = 'disable'`
	if !severalFields(f) {
		settings += `, enable_multiple_prewhere_read_steps = 0`
	}
	return settings
}

// severalFields reports whether a filter is a conjunction of more than one field's comparisons.
func severalFields(f filter.Node) bool {
	nodes, _ := f.(filter.And)
	return slices.ContainsFunc(nodes, func(n filter.Node) bool {
		first, _ := nodes[0].(filter.Compare)
		c, is := n.(filter.Compare)
		return !is || c.Field != first.Field
	})
}

// Count implements rowstore.Reads.
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

// CountUpto implements rowstore.Reads.
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

// Horizon implements rowstore.Reads.
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

// Scan first looks at the next places of its block: nearEach per wanted row, or nearFiltered with a
// filter. Later looks with that filter take twice the distance between its rows, or nearSeldom if
// there were too few. A look that finds nearAgain rows continues like this in the next block.
// Otherwise the next look takes nearBlocks blocks, and each later one fartherEach times as many. If
// a group's rows lie close together, the first look finds a page. If not, seven looks cover a
// million blocks.
const (
	nearEach     = 4 // rows share the places with their pages' records
	nearFiltered = 16
	nearSeldom   = 256
	nearAgain    = 32
	nearBlocks   = 2
	fartherEach  = 16
)

// With a limit on bytes, a look takes as many rows as fill what is left. It expects them to be as
// long as the last ones of their kind. The server holds all documents of a look. It refuses a near
// look that meets lookBytes of them; the scan then asks for fewer rows. Far looks, and looks at
// more than nearFiltered places per row, read documents after sorting. Only the number of their
// rows can be limited.
const (
	lookRows  = 128 // of looks without a limit on bytes, and of the first one with it
	newRows   = 16  // the same, if nothing is known of the scope's rows
	lookBytes = 64 << 20
	lookPart  = 16
)

// scanKind is the key prefix of the rows that a scan wants, with the hash of its filter. Each scan
// of a kind tells what to expect of the next.
type scanKind struct {
	home
	filter uint64
}

// seen is what the last scan of a kind saw.
type seen struct {
	each   int   // length of a row; 0: no rows yet
	places int64 // for each row of the next near look
}

// expect returns what a scan begins with.
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

// note learns from a look. wider says that a wider look should follow where this one ended.
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
	whole      bool // read documents as they are found
	bounded    bool // in bytes
}

// enough returns how many rows fill the rest of a page. each is the length of the last rows, 0 if
// there were none yet.
func (l look) enough(left, each int) int {
	switch {
	case each > 0 && l.bounded:
		return left/each*9/8 + 2 // some are shorter, and one more shows that rows follow
	case each > 0:
		return min(left/each*9/8+2, lookRows)
	case l.bounded:
		return lookRows
	}
	return newRows
}

// Scan implements rowstore.Reads.
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
		look := look{from: q.After, near: near, most: q.Limit - len(docs) + 1, // one more
			whole: near && next.places <= nearFiltered}
		look.bounded = look.whole && q.Bytes > 0
		if q.Bytes > 0 {
			look.most = min(look.most, look.enough(max(q.Bytes-size, 0), next.each), allowed)
		}
		look.upto = min(q.After>>posBits+blocks-1, maxBlock)<<posBits | posMask
		if near {
			if look.from&posMask == posMask { // the block ends here
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
		// removed since: the next scan should not search where the rows were
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

// meanLength returns the mean length of rows' documents, at least 1.
func meanLength(rows []placed) int {
	sum := 0
	for _, row := range rows {
		sum += len(row.doc)
	}
	return max(sum/len(rows), 1)
}

// beginning returns a place before a scope's first row: in the first block that holds any of its
// rows. It may be cached: blocks are numbered as they are committed, and rows are only removed, so
// no row ever comes before it.
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

// Every scan needs these settings. The blocks and places of granules guide it, and should be tested
// once, before anything is read. Rows do not lie in its order. A near look is too small to share
// among threads, or to read its documents later.
const (
	scanSettings = withoutTopK +
		`, use_skip_indexes_for_top_k = 0, use_skip_indexes_on_data_read = 0, optimize_read_in_order = 0`
	nearSettings = `, max_threads = 1, query_plan_optimize_lazy_materialization = 0`
)

// scan hides the kind from the primary key by identity(). Places lead straight to the granules,
// even across records. Searching the key for the kind would take as long as all the rest.
func (s *Store) scan(ctx context.Context, from source, q rowstore.ScanQuery,
	look look) ([]placed, error) {
	settings := scanSettings
	if look.whole {
		settings += nearSettings
	}
	if look.bounded && look.most > 1 { // a single row may have any length
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

// places returns a condition on the places after one and up to another. It omits needless
// conditions: most queries are for whole blocks.
func places(after, upto int64) string {
	from, to := after>>posBits, upto>>posBits
	if from == to {
		return fmt.Sprintf(`_block_number = %d AND pos > %d AND pos <= %d`, from, after&posMask,
			upto&posMask)
	}
	where := fmt.Sprintf(`_block_number >= %d AND _block_number <= %d`, from, to)
	if pos := after & posMask; pos == posMask {
		where += fmt.Sprintf(` AND _block_number > %d`, from)
	} else if pos > 0 { // no row has pos 0
		where += fmt.Sprintf(` AND (_block_number > %d OR pos > %d)`, from, pos)
	}
	if pos := upto & posMask; pos < posMask {
		where += fmt.Sprintf(` AND (_block_number < %d OR pos <= %d)`, to, pos)
	}
	return where
}
