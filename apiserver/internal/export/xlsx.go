package export

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a spreadsheet.
const (
	maxSheetRows  = 100_000   // besides the header (specification 7)
	maxSheetBytes = 256 << 20 // of its rows, as stored
	maxCellUnits  = 32_767    // of a cell, in UTF-16 code units: the most of any spreadsheet
)

// sheetSize counts the rows that will become a spreadsheet.
type sheetSize struct {
	rows  int
	bytes int64
}

func (s *sheetSize) add(row json.RawMessage) error {
	s.rows++
	s.bytes += int64(len(row))
	switch {
	case s.rows > maxSheetRows:
		return fault.New(fault.ExportTooLarge,
			"a spreadsheet has at most %d rows, and there are more; take jsonl, csv or parquet",
			maxSheetRows)
	case s.bytes > maxSheetBytes:
		return fault.New(fault.ExportTooLarge,
			"a spreadsheet is made of at most %d MiB of rows, and these are more; take jsonl, "+
				"csv or parquet", maxSheetBytes>>20)
	}
	return nil
}

// Parts of a workbook of one sheet without styles (ECMA-376, part 1, 12.3).
const (
	xmlHead      = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	openXML      = `http://schemas.openxmlformats.org/`
	spreadsheet  = ` xmlns="` + openXML + `spreadsheetml/2006/main"`
	officeType   = openXML + `officeDocument/2006/relationships`
	relationHead = xmlHead + `<Relationships xmlns="` + openXML +
		`package/2006/relationships"><Relationship Id="rId1" Type="` + officeType + `/`
	sheetType  = `application/vnd.openxmlformats-officedocument.spreadsheetml.`
	sheetBegin = xmlHead + `<worksheet` + spreadsheet + `><sheetData>`
	sheetEnd   = `</sheetData></worksheet>`
)

// workbook returns the names and contents of the parts, in order. The sheet comes last.
func workbook() [][2]string {
	return [][2]string{
		{"[Content_Types].xml", xmlHead + `<Types xmlns="` + openXML +
			`package/2006/content-types"><Default Extension="rels" ContentType="` +
			`application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + sheetType +
			`sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="` +
			sheetType + `worksheet+xml"/></Types>`},
		{"_rels/.rels", relationHead + `officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", xmlHead + `<workbook` + spreadsheet + ` xmlns:r="` + officeType +
			`"><sheets><sheet name="data" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", relationHead +
			`worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
		{"xl/worksheets/sheet1.xml", sheetBegin},
	}
}

// writeXLSX writes one sheet: a header of all columns that any row has, then the rows. Text is in
// text cells, so that none is taken for a formula. It reads all rows before it writes, since there
// may be more than a sheet can hold. A library would take twice as long.
func writeXLSX(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	held := &hold{newSpool(o.Disk)}
	defer held.close()
	t, err := tabulate(ctx, rows, o, verbatim, held)
	if err != nil {
		return err
	}
	book := zip.NewWriter(w)
	book.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	var part io.Writer
	for _, p := range workbook() {
		if part, err = book.Create(p[0]); err == nil {
			_, err = io.WriteString(part, p[1])
		}
		if err != nil {
			return fmt.Errorf("begin a sheet: %w", err)
		}
	}
	s := &sheet{out: part}
	if err := s.putHead(t.columns); err != nil {
		return err
	}
	if err := t.each(ctx, held, s.put); err != nil {
		return err
	}
	if _, err = io.WriteString(part, sheetEnd); err == nil {
		err = book.Close()
	}
	if err != nil {
		return fmt.Errorf("end a sheet: %w", err)
	}
	return nil
}

// columnName is a spreadsheet's name of the column at a place: A, …, Z, AA.
func columnName(place int) string {
	name := ""
	for n := place + 1; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// sheet is a sheet being written.
type sheet struct {
	out     io.Writer
	columns []string // names in the sheet
	rows    int
	number  []byte // number of the current row
	line    []byte
}

// putHead writes the header row.
func (s *sheet) putHead(columns []column) error {
	s.beginRow()
	for i, c := range columns {
		s.columns = append(s.columns, columnName(i))
		s.beginCell(i)
		s.endText(c.name)
	}
	return s.endRow()
}

// put writes the cells as the next row, in column order.
func (s *sheet) put(cells []cell) error {
	byPlace := func(a, b cell) int { return a.place - b.place }
	if !slices.IsSortedFunc(cells, byPlace) {
		slices.SortStableFunc(cells, byPlace)
	}
	s.beginRow()
	for i, c := range cells {
		last := i+1 == len(cells) || cells[i+1].place != c.place
		if last && c.value != "null" {
			s.beginCell(c.place)
			s.endCell(c.value)
		}
	}
	return s.endRow()
}

func (s *sheet) beginRow() {
	s.rows++
	s.number = strconv.AppendInt(s.number[:0], int64(s.rows), 10)
	s.line = append(append(append(s.line[:0], `<row r="`...), s.number...), `">`...)
}

func (s *sheet) endRow() error {
	s.line = append(s.line, "</row>"...)
	if _, err := s.out.Write(s.line); err != nil {
		return fmt.Errorf("row of a sheet: %w", err)
	}
	return nil
}

func (s *sheet) beginCell(place int) {
	s.line = append(append(append(s.line, `<c r="`...), s.columns[place]...), s.number...)
}

// endCell ends a cell with a value. A number that a spreadsheet would round becomes text.
func (s *sheet) endCell(value string) {
	if text, ok := rowstore.TextOf(value); ok {
		s.endText(text)
		return
	}
	switch _, kept := keepFloat(value); {
	case value == "true":
		s.line = append(s.line, `" t="b"><v>1</v></c>`...)
	case value == "false":
		s.line = append(s.line, `" t="b"><v>0</v></c>`...)
	case kept:
		s.line = append(append(append(s.line, `"><v>`...), value...), `</v></c>`...)
	default:
		s.endText(value)
	}
}

// endText ends a cell with a text.
func (s *sheet) endText(text string) {
	s.line = append(s.line, `" t="inlineStr"><is><t xml:space="preserve">`...)
	s.line = append(appendSheetText(s.line, text), `</t></is></c>`...)
}

// appendSheetText appends as much of a text as a cell can hold, encoded as ST_Xstring (ECMA-376,
// part 1, 22.9.2.19).
func appendSheetText(out []byte, text string) []byte {
	done := 0 // bytes of the text already appended
	for i, units := 0, 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		if units += utf16.RuneLen(r); units > maxCellUnits {
			text = text[:i]
			break
		}
		if escaped := escapeInSheet(r, text[i:]); escaped != "" {
			out = append(append(out, text[done:i]...), escaped...)
			done = i + size
		}
		i += size
	}
	return append(out, text[done:]...)
}

// escapeInSheet is the escape of a text's first character, "" if it needs none. Characters that XML
// cannot hold become U+FFFD. An underscore is escaped where it would begin an escape.
func escapeInSheet(r rune, text string) string {
	switch {
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '&':
		return "&amp;"
	case r == '_' && spelledOut(text):
		return "_x005F_"
	case r == '\r': // a reader would take it for a line end
		return "&#xD;"
	case r < ' ' && r != '\t' && r != '\n', r == 0xfffe, r == 0xffff, r == utf8.RuneError:
		return "\ufffd"
	}
	return ""
}

// spelledOut says whether a text begins like an escaped character: _x0041_.
func spelledOut(text string) bool {
	if len(text) < 7 || text[1] != 'x' || text[6] != '_' {
		return false
	}
	_, err := strconv.ParseUint(text[2:6], 16, 16)
	return err == nil
}
