package clickhouse

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Records and rows lie in one table by months, `rows`, or in one by weeks, `weeks`, whose parts are
// dropped when they are old. An old database changes over once, in the third migration. Inserts
// into `rows` stop, and those under way end. From then on, everything is stored in `weeks`. Its
// block numbers continue those of `rows`, so that places keep rising: a block of `weeks` counts as
// its number plus the base. Both tables are read until `rows` is empty.
//
// Nothing can be stored between the stop of inserts into `rows` and the mark on `weeks`. A writer
// then misses its pages, and looks again.

const (
	weeklyFrom = 3               // schema version that begins to use weeks
	lookEvery  = 1 * time.Minute // at whether rows is empty
)

// layout says which tables hold records and rows.
type layout struct {
	weekly bool
	base   uint64 // added to the block numbers of weeks
	old    bool   // rows may still hold something
	read   time.Time
}

// mark returns the comment on weeks that states the layout.
func (l layout) mark() string {
	if l.old {
		return fmt.Sprintf("from %d", l.base)
	}
	return fmt.Sprintf("from %d alone", l.base)
}

// layout returns the current layout. Until weeks is in use, it asks the server each time.
func (s *Store) layout(ctx context.Context) (layout, error) {
	if known := s.known.Load(); known != nil &&
		(!known.old || s.clock.Now().Sub(known.read) < lookEvery) {
		return *known, nil
	}
	marks, err := read(ctx, s, s.markOfWeeks(),
		func(rows driver.Rows) (mark string, err error) { return mark, rows.Scan(&mark) })
	if err != nil {
		return layout{}, fmt.Errorf("row store: where rows are: %w", err)
	}
	l := layout{old: true, read: s.clock.Now()}
	if len(marks) == 0 || marks[0] == "" {
		return l, nil
	}
	base, alone := strings.CutSuffix(marks[0], " alone")
	if _, err := fmt.Sscanf(base, "from %d", &l.base); err != nil {
		return l, fmt.Errorf("row store: the table weeks is marked %q: %w", marks[0], err)
	}
	l.weekly, l.old = true, !alone
	s.known.Store(&l)
	return l, nil
}

func (s *Store) markOfWeeks() string {
	return `SELECT comment FROM system.tables WHERE database = ` + text(s.db) + ` AND name = 'weeks'`
}

// switchToWeeks stops inserts into rows and starts those into weeks. It may be repeated.
func (s *Store) switchToWeeks(ctx context.Context) error {
	if l, err := s.layout(ctx); err != nil || l.weekly {
		return err
	}
	if err := s.exec(ctx, callTimeout, `DROP VIEW IF EXISTS `+s.table("admit")+` SYNC`); err != nil {
		return err
	}
	s.point("rowstore.switch_before_drain")
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.point("rowstore.switch_after_drain")
	blocks, err := read(ctx, s, newestBlock(s.db, "rows"), scanBlock)
	if err != nil {
		return err
	}
	l := layout{weekly: true}
	if blocks[0] > 0 {
		l.base, l.old = blocks[0]+1, true
	}
	return s.exec(ctx, callTimeout, `ALTER TABLE `+s.table("weeks")+` MODIFY COMMENT `+
		text(l.mark()))
}

func scanBlock(rows driver.Rows) (block uint64, err error) {
	err = rows.Scan(&block)
	return block, err
}

// newestBlock returns a query for the newest committed block of a table. Blocks are numbered as
// they are committed.
func newestBlock(db, table string) string {
	return `SELECT toUInt64(greatest(0, max(max_block_number))) FROM system.parts WHERE active
		AND database = ` + text(db) + ` AND table = ` + text(table)
}

// newest returns a query for the newest block of all.
func (s *Store) newest(l layout) string {
	if !l.weekly {
		return newestBlock(s.db, "rows")
	}
	return fmt.Sprintf(`SELECT %d + (%s)`, l.base, newestBlock(s.db, "weeks"))
}

// intake returns the table that pages are inserted into.
func (l layout) intake() string {
	if l.weekly {
		return "intakeweekly"
	}
	return "intake"
}

// source is something to read from. base is added to the block numbers found there.
type source struct {
	from string
	base uint64
	name string // if it is a single table
}

// tables returns the tables that hold records and rows, in the order of places.
func (s *Store) tables(l layout) []source {
	rows, weeks := source{s.table("rows"), 0, "rows"}, source{s.table("weeks"), l.base, "weeks"}
	switch {
	case !l.weekly:
		return []source{rows}
	case l.old:
		return []source{rows, weeks}
	}
	return []source{weeks}
}

// source returns all tables as one source.
func (s *Store) source(ctx context.Context) (source, error) {
	l, err := s.layout(ctx)
	if err != nil {
		return source{}, err
	}
	tables := s.tables(l)
	if len(tables) == 1 {
		return tables[0], nil
	}
	columns := make([]string, 0, len(s.columns))
	for _, column := range s.columns {
		if column.Name != "looked" {
			columns = append(columns, "`"+column.Name+"`")
		}
	}
	names := strings.Join(columns, ", ")
	return source{from: fmt.Sprintf(`(SELECT %s, _block_number FROM %s
		UNION ALL SELECT %[1]s, _block_number + %[3]d AS _block_number FROM %[4]s)`, names,
		tables[0].from, l.base, tables[1].from)}, nil
}

// last returns the last place that a table may hold, given the tables after it.
func (l layout) last(table int, tables []source) int64 {
	if table+1 < len(tables) {
		return int64(l.base)<<posBits | posMask
	}
	return math.MaxInt64
}

// places returns a condition on the places after one and up to another.
func (from source) places(after, upto int64) string {
	off := int64(from.base) << posBits
	if upto < off {
		return `0`
	}
	return places(max(after-off, 0), upto-off)
}
