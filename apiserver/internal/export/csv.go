package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"strings"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/rowstore"
)

// writeCSV writes a header of all columns that any row has, then the rows.
func writeCSV(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	form := newCSVForm(!o.Unguarded)
	t, err := tabulate(ctx, rows, o, form.cell)
	if err != nil {
		return err
	}
	defer t.close()
	if o.BOM {
		if _, err := w.WriteString("\ufeff"); err != nil {
			return err
		}
	}
	record := make([]string, len(t.columns))
	for i, c := range t.columns {
		record[i] = form.text(c.name)
	}
	if err := writeRecord(w, record); err != nil {
		return err
	}
	return t.each(ctx, func(cells []cell) error {
		clear(record)
		for _, c := range cells {
			record[c.place] = c.value
		}
		return writeRecord(w, record)
	})
}

// writeRecord writes a record, whose cells are as they stand in a file. One of a single empty cell
// gets quotes: readers pass over empty lines, and would miss the row.
func writeRecord(w *bufio.Writer, record []string) error {
	if len(record) == 1 && record[0] == "" {
		_, err := w.WriteString("\"\"\n")
		return err
	}
	for i, text := range record {
		if i > 0 {
			if err := w.WriteByte(','); err != nil {
				return err
			}
		}
		if _, err := w.WriteString(text); err != nil {
			return err
		}
	}
	return w.WriteByte('\n')
}

// csvForm makes cells.
type csvForm struct {
	guarded bool
	out     *csv.Writer // to written: encoding/csv says what needs quotes
	written bytes.Buffer
	one     [1]string
}

func newCSVForm(guarded bool) *csvForm {
	f := &csvForm{guarded: guarded}
	f.out = csv.NewWriter(&f.written)
	return f
}

// cell is a value as it stands in a file: strings without JSON's quotes, null as nothing, the rest
// as JSON.
func (f *csvForm) cell(value string) string {
	if value == "null" {
		return ""
	}
	if text, ok := rowstore.TextOf(value); ok {
		return f.text(text)
	}
	return f.quote(value)
}

// text is a text as it stands in a file.
func (f *csvForm) text(text string) string { return f.quote(f.guard(text)) }

// quote has encoding/csv say how a text stands in a file. What is plain at a glance is not asked.
func (f *csvForm) quote(text string) string {
	if text == "" || text[0] > ' ' && text[0] < utf8.RuneSelf && text[0] != '\\' &&
		strings.IndexByte(text, ',') < 0 && strings.IndexByte(text, '"') < 0 &&
		strings.IndexByte(text, '\n') < 0 && strings.IndexByte(text, '\r') < 0 {
		return text
	}
	f.written.Reset()
	f.one[0] = text
	_ = f.out.Write(f.one[:]) // a buffer takes everything
	f.out.Flush()
	if f.written.Len() == len(text)+1 { // a line break alone was added
		return text
	}
	return string(bytes.TrimSuffix(f.written.Bytes(), []byte{'\n'}))
}

// guard keeps a spreadsheet from taking scraped text for a formula: such text gets an apostrophe
// before it. Numbers stay as they are.
func (f *csvForm) guard(text string) string {
	if !f.guarded || text == "" || strings.IndexByte("=+-@\t\r\n", text[0]) < 0 {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
