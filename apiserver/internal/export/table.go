package export

import (
	"context"
	"encoding/json"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a table.
const (
	// maxColumns is how many columns a table may have: those of a spreadsheet.
	maxColumns = 16_384
	// maxTyped is how many a parquet file may have: it describes each of them in each row group.
	maxTyped = 2_000
)

// column is one of a table.
type column struct {
	name   string
	values shapes // of all rows, in parquet
}

// cell is what a row has in a column. Of a column that is there twice the last one counts.
type cell struct {
	place int // of the column
	value string
}

// table is rows as cells of columns.
type table struct {
	columns []column
	order   []int // place of each column among the columns, by the place of its discovery
	rows    Source
	reader  reader
	size    *sheetSize // nil: rows are not counted, or are counted already
	kept    bool       // the keeper has all rows
}

// keeper keeps rows from the look at them to their writing, unless there is no room.
type keeper interface {
	// add adds the cells of a row. columns are those known by then, in the order of discovery.
	add(columns []column, cells []cell)
	whole() bool // it has all that was added
}

// tabulate finds out the columns of rows. They are those that are named as fields. Without them
// they are what stands first, then the other members in the order in which rows first have them,
// the server's own (_…) last. So all rows are looked at before the first is written: a column that
// appears late is not missed. They are kept as far as there is room, and are read again otherwise.
// encode makes the text of a member's cell.
func tabulate(ctx context.Context, rows Source, o Options,
	encode func(*rowstore.Members) string, keep keeper) (*table, error) {
	t := &table{rows: rows, reader: newReader(o, encode)}
	if o.Format == XLSX {
		t.size = &sheetSize{}
	}
	if o.Fields == nil || o.Format == Parquet || o.Format == XLSX {
		if err := t.look(ctx, keep); err != nil {
			return nil, err
		}
	}
	t.order = orderOf(nil, t.reader.columns, o.Fields == nil)
	t.columns = make([]column, len(t.order))
	for discovered, place := range t.order {
		t.columns[place] = t.reader.columns[discovered]
	}
	t.reader.grows = false
	return t, nil
}

// orderOf appends the place of each column in a file. Those that only the server writes may be
// last.
func orderOf(order []int, columns []column, serverLast bool) []int {
	last := len(columns)
	if serverLast {
		for _, c := range columns {
			last -= serverKey(c.name)
		}
	}
	for first, i := 0, 0; i < len(columns); i++ {
		if serverLast && serverKey(columns[i].name) == 1 {
			order = append(order, last)
			last++
			continue
		}
		order = append(order, first)
		first++
	}
	return order
}

// look reads all rows.
func (t *table) look(ctx context.Context, keep keeper) error {
	err := t.readAll(ctx, func(cells []cell) error {
		keep.add(t.reader.columns, cells)
		return nil
	})
	t.size, t.kept = nil, keep.whole()
	return err
}

// readAll visits the cells of all rows, with their places of discovery.
func (t *table) readAll(ctx context.Context, visit func([]cell) error) error {
	return eachRow(ctx, t.rows, func(row json.RawMessage) error {
		if t.size != nil {
			if err := t.size.add(row); err != nil {
				return err
			}
		}
		cells, err := t.reader.read(row)
		if err != nil {
			return err
		}
		return visit(cells)
	})
}

// each visits the cells of all rows, of a hold if it has them.
func (t *table) each(ctx context.Context, held *hold, visit func([]cell) error) error {
	ordered := func(cells []cell) error {
		for i := range cells {
			cells[i].place = t.order[cells[i].place]
		}
		return visit(cells)
	}
	if t.kept {
		return held.each(ctx, ordered)
	}
	return t.readAll(ctx, ordered)
}

// serverKey is 1 for a member that only the server writes.
func serverKey(key string) int {
	if strings.HasPrefix(key, "_") {
		return 1
	}
	return 0
}

// reader makes cells of rows. Most rows have the members of the row before, in its order.
type reader struct {
	encode  func(*rowstore.Members) string
	most    int  // columns
	grows   bool // by columns that rows have
	typed   bool // what the columns hold is noted
	columns []column
	at      map[string]int // place of a column
	// members of the row before, as their keys are written, and their columns, -1 for none
	shape   []string
	places  []int
	members rowstore.Members // of the row
	cells   []cell
}

func newReader(o Options, encode func(*rowstore.Members) string) reader {
	r := reader{encode: encode, most: maxColumns, grows: o.Fields == nil, at: map[string]int{}}
	if o.Format == Parquet {
		r.most, r.typed = maxTyped, true
	}
	names := o.Fields
	if names == nil {
		names = o.First
	}
	for _, name := range names {
		if _, known := r.at[name]; !known {
			r.add(name)
		}
	}
	return r
}

func (r *reader) add(name string) int {
	r.at[name] = len(r.columns)
	r.columns = append(r.columns, column{name: name})
	return len(r.columns) - 1
}

// read returns the cells of a row, until the next call.
func (r *reader) read(row json.RawMessage) ([]cell, error) {
	r.cells = r.cells[:0]
	r.members = rowstore.MembersOf(row)
	m := &r.members
	for n := 0; n < len(r.shape) && m.NextAs(r.shape[n]) || m.Next(); n++ {
		if n == len(r.shape) || r.shape[n] != m.Written() {
			// not all of the row with them
			name, written := strings.Clone(m.Key), strings.Clone(m.Written())
			r.shape, r.places = append(r.shape[:n], written), append(r.places[:n], r.place(name))
			if len(r.columns) > r.most {
				return nil, fault.Invalid(fault.InvalidRequest, "format",
					"the rows have more than %d columns; name some as fields, or take jsonl",
					r.most)
			}
		}
		if place := r.places[n]; place >= 0 {
			if r.typed {
				r.columns[place].values |= shapeOf(m)
			}
			r.cells = append(r.cells, cell{place, r.encode(m)})
		}
	}
	if !m.Whole() {
		return nil, errNotARow
	}
	return r.cells, nil
}

// place is that of a member's column, -1 when it has none.
func (r *reader) place(name string) int {
	if place, known := r.at[name]; known {
		return place
	}
	if !r.grows {
		return -1
	}
	return r.add(name)
}

// verbatim leaves a value as it is.
func verbatim(m *rowstore.Members) string { return m.Value }
