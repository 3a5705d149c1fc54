package export

import (
	"bufio"
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/rowstore"
)

// writeCSV writes a header of all columns that any row has, then the rows.
func writeCSV(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	form, drafted := csvForm{!o.Unguarded}, &draft{spool: newSpool(o.Disk)}
	defer drafted.close()
	t, err := tabulate(ctx, rows, o, form.cell, drafted)
	if err != nil {
		return err
	}
	if o.BOM {
		if _, err := w.WriteString("\ufeff"); err != nil {
			return err
		}
	}
	record := make([]string, len(t.columns))
	for i, c := range t.columns {
		record[i] = form.text(c.name)
	}
	line := appendRecord(nil, record)
	if _, err := w.Write(line); err != nil {
		return err
	}
	if t.kept {
		return drafted.writeTo(ctx, w, t)
	}
	return t.readAll(ctx, func(cells []cell) error {
		clear(record)
		for _, c := range cells {
			record[t.order[c.place]] = c.value
		}
		line = appendRecord(line[:0], record)
		_, err := w.Write(line)
		return err
	})
}

// emptyCell is what a record consists of when its only cell is empty. Readers skip empty lines and
// would miss the row.
const emptyCell = `""`

// appendRecord appends a record of cells that are already encoded for the file.
func appendRecord(line []byte, record []string) []byte {
	if len(record) == 1 && record[0] == "" {
		return append(line, emptyCell+"\n"...)
	}
	for i, text := range record {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, text...)
	}
	return append(line, '\n')
}

// csvForm encodes cells.
type csvForm struct{ guarded bool }

// cell encodes a member's value for the file: strings without JSON's quotes, null as nothing,
// anything else as JSON.
func (f csvForm) cell(m *rowstore.Members) string {
	text, plain, ok := m.Text()
	switch {
	case m.Value == "null":
		return ""
	case !ok:
		return f.quote(m.Value)
	case !plain:
		return f.text(text)
	}
	switch guarded := f.guard(text); {
	case guarded == "" || plainStart(guarded) && strings.IndexByte(guarded, ',') < 0:
		return guarded
	case len(guarded) == len(text):
		return m.Value // with JSON's quotes, and nothing in it differs in a csv
	default:
		return `"` + guarded + `"`
	}
}

// text encodes a text for the file.
func (f csvForm) text(text string) string { return f.quote(f.guard(text)) }

// quote puts quotes around a text where encoding/csv would.
func (f csvForm) quote(text string) string {
	quoted := strings.IndexByte(text, '"') >= 0
	if text == "" || !quoted && plainStart(text) && strings.IndexByte(text, ',') < 0 &&
		strings.IndexByte(text, '\n') < 0 && strings.IndexByte(text, '\r') < 0 {
		return text
	}
	if quoted {
		text = strings.ReplaceAll(text, `"`, `""`)
	}
	return `"` + text + `"`
}

// plainStart says whether a text's beginning lets it stand without quotes.
func plainStart(text string) bool {
	if c := text[0]; c > ' ' && c < utf8.RuneSelf && c != '\\' {
		return true
	}
	first, _ := utf8.DecodeRuneInString(text)
	return text != `\.` && !unicode.IsSpace(first)
}

// GuardText keeps a spreadsheet from taking scraped text for a formula: it puts an apostrophe
// before such text. Decimal numbers stay as they are.
func GuardText(text string) string {
	if text == "" || strings.IndexByte("=+-@\t\r\n", text[0]) < 0 {
		return text
	}
	_, err := strconv.ParseFloat(text, 64) // ParseFloat also accepts names and other bases
	if err == nil && strings.Trim(text, "0123456789+-.eE") == "" {
		return text
	}
	return "'" + text
}

func (f csvForm) guard(text string) string {
	if !f.guarded {
		return text
	}
	return GuardText(text)
}
