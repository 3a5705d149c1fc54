package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/pkg/fault"
)

// disk has room for this many bytes.
type disk struct {
	dir  string
	room int64
}

var errFull = errors.New("the disk is full")

func (d *disk) Dir() string { return d.dir }
func (d *disk) TakeRoom(bytes int64) error {
	if d.room < bytes {
		return errFull
	}
	d.room -= bytes
	return nil
}

// odd are rows that are difficult for a table.
func odd() []string {
	return []string{
		`{"_sourceUrl":"https://a.example/1","title":"One, \"1\"","price":"9","n":1,"on":true}`,
		`{"title":"=HYPERLINK(1)","price":"-1.5","n":2.5,"on":null,"late":"@x"}`,
		"{\"title\":\"Two\\nlines\",\"price\":null,\n \"n\":-3,\"deep\":{\"a\":[1,\"x\"]}}",
		`{"title":"bell \u0007 and _x0041_ \r tab\t","big":123456789012345678901234567890}`,
		"{\"title\":\"bad \xff bytes\",\"big\":1e400,\"id\":9007199254740993,\"id\":1}",
		`{"title":"","mixed":"1","id":9007199254740993}`,
		`{"mixed":1,"title":"  spaces  "}`,
		`{"+key":"+1","":"no name","_jobId":"j"}`,
	}
}

// readSheet reads a spreadsheet with a maintained library.
func readSheet(t testing.TB, file string) (table [][]string) {
	t.Helper()
	book, err := excelize.OpenReader(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	if table, err = book.GetRows("data", excelize.Options{RawCellValue: true}); err != nil {
		t.Fatal(err)
	}
	for row := range table {
		for column := range table[row] {
			cell, err := excelize.CoordinatesToCellName(column+1, row+1)
			if err != nil {
				t.Fatal(err)
			}
			if formula, err := book.GetCellFormula("data", cell); err != nil || formula != "" {
				t.Errorf("%s holds the formula %q, %v", cell, formula, err)
			}
		}
	}
	return table
}

// lastOfSheet is the number of rows of a long spreadsheet, and the first cell of the last row.
func lastOfSheet(t *testing.T, file string) (n int, last string) {
	t.Helper()
	book, err := excelize.OpenReader(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	rows, err := book.Rows("data")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for ; rows.Next(); n++ {
		cells, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		last = cells[0]
	}
	return n, last
}

func TestSheet(t *testing.T) {
	for name, d := range map[string]*disk{"on disk": {t.TempDir(), 1 << 40}, "none": nil,
		"full": {t.TempDir(), 0}} {
		o := export.Options{Format: export.XLSX, First: []string{"sku", "price"}}
		if d != nil {
			o.Disk = d
		}
		want := [][]string{
			{"sku", "price", "title", "n", "on", "late", "deep", "big", "id", "mixed", "+key",
				"", "_sourceUrl", "_jobId"},
			{"", "9", `One, "1"`, "1", "1", "", "", "", "", "", "", "", "https://a.example/1"},
			{"", "-1.5", "=HYPERLINK(1)", "2.5", "", "@x"},
			{"", "", "Two\nlines", "-3", "", "", `{"a":[1,"x"]}`},
			{"", "", "bell \ufffd and _x0041_ \r tab\t", "", "", "", "",
				"123456789012345678901234567890"},
			{"", "", "bad \ufffd bytes", "", "", "", "", "1e400", "1"},
			{"", "", "", "", "", "", "", "", "9007199254740993", "1"},
			{"", "", "  spaces  ", "", "", "", "", "", "", "1"},
			{"", "", "", "", "", "", "", "", "", "", "+1", "no name", "", "j"},
		}
		if diff := cmp.Diff(want, readSheet(t, write(t, o, odd()...))); diff != "" {
			t.Errorf("%s (- wanted):\n%s", name, diff)
		}
		o.Members = export.Members{Fields: []string{"title", "none"}}
		if got := readSheet(t, write(t, o, odd()[:2]...)); !cmp.Equal(got,
			[][]string{{"title", "none"}, {`One, "1"`}, {"=HYPERLINK(1)"}}) {
			t.Errorf("%s, with fields: %q", name, got)
		}
	}
}

// The cells of a sheet have types, so numbers can be summed.
func TestSheetTypes(t *testing.T) {
	book, err := excelize.OpenReader(strings.NewReader(write(t,
		export.Options{Format: export.XLSX}, `{"text":"1","n":1.5,"on":true,"long":"`+
			strings.Repeat("x", 40_000)+`"}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	for cell, want := range map[string]excelize.CellType{"A2": excelize.CellTypeInlineString,
		"B2": excelize.CellTypeUnset, "C2": excelize.CellTypeBool} {
		if got, err := book.GetCellType("data", cell); err != nil || got != want {
			t.Errorf("%s is of type %d, want %d: %v", cell, got, want, err)
		}
	}
	if long, err := book.GetCellValue("data", "D2"); err != nil || len(long) != 32_767 {
		t.Errorf("a long text has %d characters, %v", len(long), err)
	}
}

// A cell of a spreadsheet has at most 32,767 UTF-16 code units, and never half a character.
func TestSheetCellsAreBounded(t *testing.T) {
	most := strings.Repeat("x", 32_767)
	for text, want := range map[string]string{most: most, most + "x": most,
		most[1:] + "\U0001f41f": most[1:], most[2:] + "\U0001f41f": most[2:] + "\U0001f41f",
		most + "<": most, "<" + most: "<" + most[1:]} {
		encoded, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		got := readSheet(t, write(t, export.Options{Format: export.XLSX}, string(encoded)))
		if len(got) != 2 || got[1][0] != want {
			t.Errorf("%.5q…%q of %d bytes: %d rows", text, text[len(text)-5:], len(text), len(got))
		}
	}
}

// A spreadsheet holds exactly what the rows hold, as a maintained library reads it. Control
// characters become U+FFFD, since XML has none.
func TestSheetHoldsTheRows(t *testing.T) {
	printable := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
				return '\ufffd'
			}
			return r
		}, text)
	}
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"=1", "_x0041_", "_x005F_",
			"_x00e4_x0041_", "__x0041_", "_x004_", "&lt;", "]]>", " a ", "\r\n", "\t", "\ufffe",
			"\x00", "\U0010ffff", "<a b='c'>\"d\"</a>"}))
		rows := rapid.SliceOfN(rapid.SliceOfN(value, 3, 3), 1, 5).Draw(rt, "rows")
		docs := make([]string, len(rows))
		for i, row := range rows {
			encoded, err := json.Marshal(map[string]string{"a": row[0], "b": row[1], "c": row[2]})
			if err != nil {
				rt.Fatal(err)
			}
			docs[i] = string(encoded)
		}
		book, err := excelize.OpenReader(strings.NewReader(write(t,
			export.Options{Format: export.XLSX}, docs...)))
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = book.Close() }()
		for i, row := range rows {
			for at, text := range row {
				cell := string(rune('A'+at)) + strconv.Itoa(i+2)
				if got, err := book.GetCellValue("data", cell); err != nil ||
					got != printable(text) {
					rt.Fatalf("%s is %q, want %q: %v", cell, got, printable(text), err)
				}
			}
		}
	})
}

func TestSheetIsBounded(t *testing.T) {
	many := make([]string, 100_001)
	for i := range many {
		many[i] = `{"n":` + strconv.Itoa(i) + `}`
	}
	long := slices.Repeat([]string{`{"text":"` + strings.Repeat("x", 1_000_000) + `"}`}, 300)
	for name, rows := range map[string][]string{"rows": many, "bytes": long} {
		for _, fields := range [][]string{nil, {"n"}} {
			var out bytes.Buffer
			err := export.Write(t.Context(), &out, parts(rows, 100), export.Options{
				Format: export.XLSX, Members: export.Members{Fields: fields},
				Disk: &disk{t.TempDir(), 1 << 40}})
			if fault.CodeOf(err) != fault.ExportTooLarge || out.Len() > 0 {
				t.Errorf("%s, fields %v: %v after %d bytes", name, fields, err, out.Len())
			}
		}
	}
	if n, last := lastOfSheet(t, write(t, export.Options{Format: export.XLSX,
		Disk: &disk{t.TempDir(), 1 << 40}}, many[:100_000]...)); n != 100_001 || last != "99999" {
		t.Errorf("%d rows of the most that there may be, the last is %q", n, last)
	}
}

// readParquet reads a parquet file: its columns, as "name type", and each row's values.
func readParquet(t testing.TB, file string) (columns []string, rows []map[string]any) {
	t.Helper()
	in, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range in.Root().Columns() {
		columns = append(columns, column.Name()+" "+column.Type().String())
	}
	reader := parquet.NewReader(in)
	defer func() { _ = reader.Close() }()
	buffer := make([]parquet.Row, 10)
	for {
		n, err := reader.ReadRows(buffer)
		for _, row := range buffer[:n] {
			values := map[string]any{}
			for _, value := range row {
				name, kind, _ := strings.Cut(columns[value.Column()], " ")
				switch {
				case value.IsNull():
				case kind == "BOOLEAN":
					values[name] = value.Boolean()
				case kind == "INT(64,true)":
					values[name] = value.Int64()
				case kind == "DOUBLE":
					values[name] = value.Double()
				default:
					values[name] = string(value.ByteArray())
				}
			}
			rows = append(rows, values)
		}
		if errors.Is(err, io.EOF) {
			return columns, rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestParquet(t *testing.T) {
	for name, room := range map[string]int64{"on disk": 1 << 40, "no room": 0} {
		o := export.Options{Format: export.Parquet, First: []string{"sku", "price"},
			Disk: &disk{t.TempDir(), room}}
		columns, rows := readParquet(t, write(t, o, odd()...))
		if diff := cmp.Diff([]string{"sku STRING", "price STRING", "title STRING", "n DOUBLE",
			"on BOOLEAN", "late STRING", "deep JSON", "big JSON", "id INT(64,true)",
			"mixed JSON", "+key STRING", " STRING", "_sourceUrl STRING",
			"_jobId STRING"}, columns); diff != "" {
			t.Errorf("%s, columns (- wanted):\n%s", name, diff)
		}
		if diff := cmp.Diff([]map[string]any{
			{"price": "9", "title": `One, "1"`, "n": 1., "on": true,
				"_sourceUrl": "https://a.example/1"},
			{"price": "-1.5", "title": "=HYPERLINK(1)", "n": 2.5, "late": "@x"},
			{"title": "Two\nlines", "n": -3., "deep": `{"a":[1,"x"]}`},
			{"title": "bell \a and _x0041_ \r tab\t", "big": "123456789012345678901234567890"},
			{"title": "bad \ufffd bytes", "big": "1e400", "id": int64(1)},
			{"title": "", "mixed": `"1"`, "id": int64(9007199254740993)},
			{"title": "  spaces  ", "mixed": "1"},
			{"+key": "+1", "": "no name", "_jobId": "j"},
		}, rows); diff != "" {
			t.Errorf("%s (- wanted):\n%s", name, diff)
		}
		o.Members = export.Members{Fields: []string{"n", "none"}}
		if columns, rows = readParquet(t, write(t, o, odd()[:1]...)); !cmp.Equal(columns,
			[]string{"n INT(64,true)", "none STRING"}) || rows[0]["n"] != int64(1) {
			t.Errorf("%s, with fields: %v, %v", name, columns, rows)
		}
		if columns, rows = readParquet(t, write(t, export.Options{Format: export.Parquet,
			First: []string{"a"}, Disk: o.Disk})); len(rows) > 0 || len(columns) != 1 {
			t.Errorf("%s, no row: %v, %v", name, columns, rows)
		}
	}
}

// A parquet file's row groups hold all rows, and none of them is long. Long values that compress
// well make a small file.
func TestParquetRowGroups(t *testing.T) {
	rows := make([]string, 60)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", 1_000_000))
	}
	file := write(t, export.Options{Format: export.Parquet}, rows...)
	in, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for _, group := range in.RowGroups() {
		most = max(most, group.NumRows())
	}
	if in.NumRows() != 60 || most > 17 {
		t.Errorf("%d rows, of which %d are in one group", in.NumRows(), most)
	}
	if len(file) > 20_000_000 {
		t.Errorf("60 MB of text that repeats itself take %d MB", len(file)/1_000_000)
	}
}

// A table is the same whether its rows were held or read twice, and holds their values.
func TestHeldRowsAreTheRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), boxed[bool]),
			rapid.Map(rapid.Float64(), boxed[float64]), rapid.Map(rapid.Int64(), boxed[int64]),
			rapid.Map(rapid.StringN(0, 50, -1), boxed[string]))
		docs := rapid.SliceOf(rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "_d", "ü"}),
			value)).Draw(rt, "docs")
		rows := make([]string, len(docs))
		for i, doc := range docs {
			encoded, err := json.Marshal(doc)
			if err != nil {
				rt.Fatal(err)
			}
			rows[i] = string(encoded)
		}
		held := &disk{t.TempDir(), 1 << 40}
		for _, format := range []export.Format{export.CSV, export.Parquet, export.XLSX} {
			twice := write(t, export.Options{Format: format}, rows...)
			if once := write(t, export.Options{Format: format, Disk: held},
				rows...); once != twice {
				rt.Fatalf("%s differs", format)
			}
		}
		_, read := readParquet(t, write(t, export.Options{Format: export.Parquet}, rows...))
		for i, doc := range docs {
			for name, value := range doc {
				if got := read[i][name]; !same(got, value) {
					rt.Fatalf("%s of row %d is %v, want %v", name, i, got, value)
				}
			}
		}
	})
}

func boxed[T any](value T) any { return value }

// same says whether a column has a value, in its own type or as JSON.
func same(got, want any) bool {
	if number, ok := got.(int64); ok {
		got = float64(number)
		if exact, ok := want.(int64); ok && exact != number {
			return false
		}
	}
	if number, ok := want.(int64); ok {
		want = float64(number)
	}
	if got == want {
		return true
	}
	var decoded any
	text, ok := got.(string)
	if !ok || json.Unmarshal([]byte(text), &decoded) != nil {
		return false
	}
	if number, ok := decoded.(float64); ok {
		expected, ok := want.(float64)
		return ok && (number == expected || math.IsNaN(expected))
	}
	return decoded == want
}

// Rows that do not fit into memory wait in a file, even long ones, and come back in order.
func TestHeldRowsOnDisk(t *testing.T) {
	rows := make([]string, 3_000)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", i%1000))
	}
	rows[1_500] = `{"n":1500,"late":"` + strings.Repeat("y", 900_000) + `"}`
	for name, room := range map[string]int64{"enough": 1 << 40, "half": 1 << 20, "none": 0} {
		table, err := csv.NewReader(strings.NewReader(write(t, export.Options{
			Format: export.CSV, Disk: &disk{t.TempDir(), room}}, rows...))).ReadAll()
		if err != nil || len(table) != len(rows)+1 || !cmp.Equal(table[0],
			[]string{"n", "text", "late"}) || len(table[1_501][2]) != 900_000 {
			t.Fatalf("%s: %d records, head %v: %v", name, len(table), table[0], err)
		}
		for i, record := range table[1:] {
			if record[0] != strconv.Itoa(i) || i != 1_500 && len(record[1]) != i%1000 {
				t.Fatalf("%s: record %d is %.50q", name, i, record)
			}
		}
	}
}
