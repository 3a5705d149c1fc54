package export

import (
	"context"
	"encoding/json"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a table.
const (
	// maxColumns is the most columns of a table, as in a spreadsheet.
	maxColumns = 16_384
	// maxTyped is the most columns of a parquet file, which describes each in every row group.
	maxTyped = 2_000
)

// column is a column of a table.
type column struct {
	name   string
	values shapes // of all rows; parquet only
}

// cell is a row's value in a column. If a row has a column twice, the last value counts.
type cell struct {
	place int // of the column
	value string
}

// table presents rows as cells of columns.
type table struct {
	columns []column
	order   []int // place of each column in the file, by order of discovery
	rows    Source
	skip    int64 // of the first rows, which are not visited
	reader  reader
	size    *sheetSize // nil: rows are not counted, or have been
	kept    bool       // the keeper holds all rows
}

// keeper keeps rows between the first pass over them and their writing, if there is room.
type keeper interface {
	// add adds the cells of a row. columns are those known by then, in order of discovery.
	add(columns []column, cells []cell)
	whole() bool // it holds all that was added
}

// tabulate finds the columns of rows. With fields, these are the columns. Otherwise they are First,
// then the other members in the order in which rows first have them, the server's own (_…) last.
// Members that are left out have none. So all rows are read before the first is written, and no
// late column is missed. The rows are kept if there is room, and read again otherwise. encode makes
// the text of a member's cell.
func tabulate(ctx context.Context, rows Source, o Options,
	encode func(*rowstore.Members) string, keep keeper) (*table, error) {
	t := &table{rows: rows, skip: o.Skip, reader: newReader(o, encode)}
	if o.Format == XLSX {
		t.size = &sheetSize{}
	}
	if o.Members.Fields == nil || o.Format == Parquet || o.Format == XLSX {
		if err := t.look(ctx, keep); err != nil {
			return nil, err
		}
	}
	t.order = orderOf(nil, t.reader.columns, o.Members.Fields == nil)
	t.columns = make([]column, len(t.order))
	for discovered, place := range t.order {
		t.columns[place] = t.reader.columns[discovered]
	}
	t.reader.grows = false
	return t, nil
}

// orderOf appends the place of each column in a file. With serverLast, columns that only the server
// writes come last.
func orderOf(order []int, columns []column, serverLast bool) []int {
	last := len(columns)
	if serverLast {
		for _, c := range columns {
			if model.IsServerKey(c.name) {
				last--
			}
		}
	}
	for first, i := 0, 0; i < len(columns); i++ {
		if serverLast && model.IsServerKey(columns[i].name) {
			order = append(order, last)
			last++
			continue
		}
		order = append(order, first)
		first++
	}
	return order
}

// look reads all rows for the first time.
func (t *table) look(ctx context.Context, keep keeper) error {
	err := t.readAll(ctx, func(cells []cell) error {
		keep.add(t.reader.columns, cells)
		return nil
	})
	t.size, t.kept = nil, keep.whole()
	return err
}

// readAll visits the cells of all rows but the skipped ones, which may have columns of their own.
// Their places are in order of discovery.
func (t *table) readAll(ctx context.Context, visit func([]cell) error) error {
	return eachRow(ctx, t.rows, t.skip, func(row json.RawMessage, written bool) error {
		if t.size != nil {
			if err := t.size.add(row); err != nil {
				return err
			}
		}
		cells, err := t.reader.read(row)
		if err != nil || !written {
			return err
		}
		return visit(cells)
	})
}

// each visits the cells of all rows, from the hold if that has them.
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

// reader makes cells of rows. Most rows have the same members, in order, as the row before.
type reader struct {
	encode  func(*rowstore.Members) string
	most    int  // the most columns
	grows   bool // members of rows become columns
	typed   bool // the shapes of values are recorded
	columns []column
	at      map[string]int // place of a column, -1 for a member that is left out
	// members of the row before, by their written keys, and their columns, -1 for none
	shape   []string
	places  []int
	members rowstore.Members // of the current row
	cells   []cell
}

func newReader(o Options, encode func(*rowstore.Members) string) reader {
	r := reader{encode: encode, most: maxColumns, grows: o.Members.Fields == nil,
		at: map[string]int{}}
	if o.Format == Parquet {
		r.most, r.typed = maxTyped, true
	}
	names := o.Members.Fields
	if names == nil {
		names = o.First
		for name := range o.Members.Without {
			r.at[name] = -1
		}
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

// read returns the cells of a row, valid until the next call.
func (r *reader) read(row json.RawMessage) ([]cell, error) {
	r.cells = r.cells[:0]
	r.members = rowstore.MembersOf(row)
	m := &r.members
	for n := 0; ; n++ {
		known := n < len(r.shape)
		if !known || !m.NextAs(r.shape[n]) {
			if !m.Next() {
				break
			}
			if !known || r.shape[n] != m.Written() {
				if err := r.reshape(n); err != nil {
					return nil, err
				}
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

// reshape makes the current member the row's member n, and the last known so far.
func (r *reader) reshape(n int) error {
	// copies, which do not keep the whole row alive
	name, written := strings.Clone(r.members.Key), strings.Clone(r.members.Written())
	r.shape, r.places = append(r.shape[:n], written), append(r.places[:n], r.place(name))
	if len(r.columns) > r.most {
		return fault.Invalid(fault.InvalidRequest, "format",
			"the rows have more than %d columns; name some as fields, or take jsonl", r.most)
	}
	return nil
}

// place is the place of a member's column, -1 if it has none.
func (r *reader) place(name string) int {
	if place, known := r.at[name]; known {
		return place
	}
	if !r.grows {
		return -1
	}
	return r.add(name)
}

// verbatim leaves a value unchanged.
func verbatim(m *rowstore.Members) string { return m.Value }
