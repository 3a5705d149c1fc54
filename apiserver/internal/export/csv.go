package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// maxColumns is how many columns a table may have: those of a spreadsheet.
const maxColumns = 16_384

// writeCSV writes a header of all columns that any row has, then the rows. It looks through the
// rows once before, so that a column that appears late is not missed.
func writeCSV(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	columns := o.Fields
	if columns == nil {
		var err error
		if columns, err = findColumns(ctx, rows, o.First); err != nil {
			return err
		}
	}
	if o.BOM {
		if _, err := w.WriteString("\ufeff"); err != nil {
			return err
		}
	}
	t := newTable(columns, !o.Unguarded)
	out := csv.NewWriter(w)
	if err := writeRecord(w, out, t.header()); err != nil {
		return err
	}
	for part, err := range rows(ctx) {
		if err != nil {
			return err
		}
		for _, row := range part {
			record, err := t.record(row)
			if err != nil {
				return err
			}
			if err := writeRecord(w, out, record); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// writeRecord writes a record. One of a single empty cell gets quotes: readers pass over empty
// lines, and would miss the row.
func writeRecord(w *bufio.Writer, out *csv.Writer, record []string) error {
	if len(record) != 1 || record[0] != "" {
		return out.Write(record)
	}
	if out.Flush(); out.Error() != nil {
		return out.Error()
	}
	_, err := w.WriteString("\"\"\n")
	return err
}

// findColumns lists what stands first, then the other members in the order in which rows first have
// them, the server's own (_…) last.
func findColumns(ctx context.Context, rows Source, first []string) ([]string, error) {
	f := finder{known: map[string]bool{}}
	for _, name := range first {
		f.add(name)
	}
	for part, err := range rows(ctx) {
		if err != nil {
			return nil, err
		}
		for _, row := range part {
			if err := f.look(row); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(f.columns, func(a, b string) int { return serverKey(a) - serverKey(b) })
	return f.columns, nil
}

// serverKey is 1 for a member that only the server writes.
func serverKey(key string) int {
	if strings.HasPrefix(key, "_") {
		return 1
	}
	return 0
}

// finder gathers the members of rows. Most rows have those of the row before, in its order.
type finder struct {
	columns []string
	known   map[string]bool
	shape   []string // members of the row before
}

func (f *finder) add(name string) {
	if !f.known[name] {
		f.known[name] = true
		f.columns = append(f.columns, name)
	}
}

func (f *finder) look(row json.RawMessage) error {
	n, m := 0, rowstore.MembersOf(row)
	for ; m.Next(); n++ {
		if n < len(f.shape) && f.shape[n] == m.Key {
			continue
		}
		name := strings.Clone(m.Key) // not all of the row with it
		f.shape = append(f.shape[:n], name)
		if f.add(name); len(f.columns) > maxColumns {
			return fault.Invalid(fault.InvalidRequest, "format",
				"the rows have more than %d columns; name some as fields, or take jsonl",
				maxColumns)
		}
	}
	if !m.Whole() {
		return errNotARow
	}
	return nil
}

// table makes records of rows.
type table struct {
	columns []string
	at      map[string]int // of each column
	guarded bool
	cells   []string
	// The members of the row before and their columns, -1 for none.
	shape  []string
	places []int
}

func newTable(columns []string, guarded bool) *table {
	t := &table{columns: columns, at: make(map[string]int, len(columns)), guarded: guarded,
		cells: make([]string, len(columns))}
	for i, name := range columns {
		t.at[name] = i
	}
	return t
}

func (t *table) header() []string {
	cells := slices.Clone(t.columns)
	for i := range cells {
		cells[i] = t.guard(cells[i])
	}
	return cells
}

// record is a row's cells, until the next call.
func (t *table) record(row json.RawMessage) ([]string, error) {
	clear(t.cells)
	n, m := 0, rowstore.MembersOf(row)
	for ; m.Next(); n++ {
		if n == len(t.shape) || t.shape[n] != m.Key {
			place, known := t.at[m.Key]
			if !known {
				place = -1
			}
			t.shape = append(t.shape[:n], strings.Clone(m.Key))
			t.places = append(t.places[:n], place)
		}
		if place := t.places[n]; place >= 0 {
			t.cells[place] = t.cell(m.Value)
		}
	}
	if !m.Whole() {
		return nil, errNotARow
	}
	return t.cells, nil
}

// cell is a value as text: strings without quotes, null as nothing, the rest as JSON.
func (t *table) cell(value string) string {
	if value == "null" {
		return ""
	}
	if text, ok := rowstore.TextOf(value); ok {
		return t.guard(text)
	}
	return value
}

// guard keeps a spreadsheet from taking scraped text for a formula: such text gets an apostrophe
// before it. Numbers stay as they are.
func (t *table) guard(text string) string {
	if !t.guarded || text == "" || strings.IndexByte("=+-@\t\r\n", text[0]) < 0 {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
