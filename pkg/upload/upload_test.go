package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"shoal.dev/shoal/pkg/upload"
)

// read returns the rows of a file as JSON, and why it is refused.
func read(t testing.TB, format upload.Format, file string) (rows []string, refused string) {
	t.Helper()
	r, err := upload.NewReader(format, strings.NewReader(file), t.TempDir())
	if err == nil {
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	for err == nil {
		var row upload.Row
		if row, err = r.Next(); err == nil {
			rows = append(rows, string(row.AppendJSON(nil)))
		}
	}
	refusal := (*upload.Refusal)(nil)
	switch {
	case errors.As(err, &refusal):
		return rows, refusal.Reason
	case !errors.Is(err, io.EOF):
		t.Fatal(err)
	}
	return rows, ""
}

// book returns a spreadsheet whose first sheet has these rows.
func book(t testing.TB, rows ...[]any) string {
	t.Helper()
	f := excelize.NewFile()
	for i, row := range rows {
		if err := f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.NewSheet("Second"); err != nil {
		t.Fatal(err)
	}
	if err := f.SetCellValue("Second", "A1", "not read"); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := f.Write(&file); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// names returns n column names.
func names(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	return strings.Join(names, ",")
}

// TestRulesOfReading checks the rules of the specification (4.9) for reading files.
func TestRulesOfReading(t *testing.T) {
	const kb32 = 32 << 10
	cell, long := strings.Repeat("x", kb32), strings.Repeat("n", upload.MaxName)
	for _, c := range []struct {
		rule    string
		format  upload.Format
		file    string
		rows    []string
		refused string
	}{
		{"comma separated", "csv", "a,b\n1,2\n", []string{`{"a":"1","b":"2"}`}, ""},
		{"semicolon separated", "csv", "a;b\n1,5;2\n", []string{`{"a":"1,5","b":"2"}`}, ""},
		{"separators in quotes do not count", "csv", "\"a,x,y\";b\n1;2\n",
			[]string{`{"a,x,y":"1","b":"2"}`}, ""},
		{"commas before spaces", "csv", "name;price, EUR;weight, kg, net\nx;1,5;2\n",
			[]string{`{"name":"x","price, EUR":"1,5","weight, kg, net":"2"}`}, ""},
		{"commas before spaces alone", "csv", "a, b\n1, 2\n", []string{`{"a":"1","b":" 2"}`}, ""},
		{"more commas before spaces", "csv", "a, b, c; d, e\n1,2,3,4\n",
			[]string{`{"a":"1","b":"2","c; d":"3","e":"4"}`}, ""},
		{"as many commas as semicolons", "csv", "a,x;b\n1;2\n", []string{`{"a,x":"1","b":"2"}`}, ""},
		{"a row that names the semicolon", "csv", "\ufeffsep=;\r\n\r\na,x,y;b\r\n1,5;2\r\n",
			[]string{`{"a,x,y":"1,5","b":"2"}`}, ""},
		{"a row that names the comma", "csv", "\"SEP=,\"\na;x;y,b\n1,2\n",
			[]string{`{"a;x;y":"1","b":"2"}`}, ""},
		{"a row that names the tab", "csv", "sep=\t\na\tb\n", nil,
			`row 1: it says that "\t" separates values: save the file with commas or semicolons`},
		{"a row that names a separator and more", "csv", "sep=;a\n1;2\n",
			[]string{`{"sep=":"1","a":"2"}`}, ""},
		{"a second row that names one", "csv", "sep=;\nsep=,;b\n1;2\n",
			[]string{`{"sep=,":"1","b":"2"}`}, ""},
		{"nothing but the separator", "csv", "sep=;\n", nil, ""},
		{"UTF-8", "csv", "größe\nfünf\n", []string{`{"größe":"fünf"}`}, ""},
		{"UTF-8 with a byte order mark", "csv", "\ufeffa\n1\n", []string{`{"a":"1"}`}, ""},
		{"a byte order mark before quotes", "csv", "\ufeff\"a\"\n1\n", []string{`{"a":"1"}`}, ""},
		{"not UTF-8", "csv", "a\n\xff\n", nil, "row 2: it is not UTF-8: save the file as UTF-8"},
		{"one JSON object per line", "jsonl", "{\"a\":\"1\"}\n{\"a\":\"2\"}",
			[]string{`{"a":"1"}`, `{"a":"2"}`}, ""},
		{"no object", "jsonl", "{\"a\":1}\n[1]\n", []string{`{"a":"1"}`},
			"row 2: it is not one JSON object"},
		{"two objects", "jsonl", "{} {}", nil, "row 1: it is not one JSON object"},
		{"half an object", "jsonl", `{"a":1`, nil, "row 1: it is not one JSON object"},
		{"plain .json is not read", "jsonl", "[\n{\"a\":1}\n]", nil,
			"row 1: it is not one JSON object"},
		{"first sheet only", "xlsx", book(t, []any{"a"}, []any{"1"}), []string{`{"a":"1"}`}, ""},
		{"old .xls is not read", "xlsx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" +
			strings.Repeat("x", 600), nil, "the file is no spreadsheet that can be read (it is an old"},
		{"nor what is packed in it", "xlsx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" +
			book(t, []any{"a"}, []any{"1"}), nil,
			"the file is no spreadsheet that can be read (it is an old"},
		{"tabs do not separate", "csv", "\n a\tb\n1\t2\n", nil, "row 2: tabs separate its values"},
		{"nor with a comma in a name", "csv", "a, if any\tb\tc\n", nil, "row 1: tabs separate its values"},
		{"a tab in a name", "csv", "\ta,\"b\tc\"\n1,2\n", []string{`{"a":"1","b\tc":"2"}`}, ""},
		{"UTF-16 without a mark", "csv", "a\x00,\x00b\x00\n\x001\x00\n\x00", nil,
			"row 1: it is not UTF-8: save the file as UTF-8"},
		{"no spreadsheet", "xlsx", "a,b\n1,2\n", nil, "the file is no spreadsheet"},
		{"other formats are not read", "parquet", "", nil,
			`files of the format "parquet" are not read`},

		{"the first row gives the names", "csv", " a ,\"b\nb\"\n1,2\n",
			[]string{`{"a":"1","b\nb":"2"}`}, ""},
		{"the first row of a sheet gives the names", "xlsx",
			book(t, []any{}, []any{" a ", "b"}, []any{"1", "2"}), []string{`{"a":"1","b":"2"}`}, ""},
		{"columns without a name", "csv", "a,,\n1,2,3\n4\n",
			[]string{`{"a":"1","column_2":"2","column_3":"3"}`, `{"a":"4"}`}, ""},
		{"columns of one name", "csv", "a,a,a_2\n1,2,3\n",
			[]string{`{"a":"1","a_3":"2","a_2":"3"}`}, ""},
		{"columns that only look alike", "csv", "price,pri\u202ece,\u2066price_2,\a\n1,2,3\n",
			[]string{`{"price":"1","price_3":"2","price_2":"3"}`}, ""},
		{"a place that is a name", "csv", ",column_1\n1,2\n",
			[]string{`{"column_1_2":"1","column_1":"2"}`}, ""},
		{"long columns of one name", "csv", long + "," + long + "\n1,2\n",
			[]string{`{"` + long + `":"1","` + long[2:] + `_2":"2"}`}, ""},
		{"a first row of spaces", "csv", " , \n\" \"\na\n1\n", []string{`{"a":"1"}`}, ""},
		{"first rows of spaces", "csv", " , \n ;\n\t\na,b\n1,2\n", []string{`{"a":"1","b":"2"}`}, ""},
		{"first rows of spaces and semicolons", "csv", " , \n ; \na;b\n1,5;2\n",
			[]string{`{"a":"1,5","b":"2"}`}, ""},
		{"a first row of spaces in a sheet", "xlsx",
			book(t, []any{" "}, []any{"a"}, []any{"1"}), []string{`{"a":"1"}`}, ""},
		{"values beyond the names", "csv", "a\n1,2\n", []string{`{"a":"1","column_2":"2"}`}, ""},
		{"names of the server", "csv", "a,_b\n1,2\n", nil,
			`column "_b": names that begin with _ are those of the server`},
		{"keys in order of first appearance", "jsonl",
			"{\"b\":1,\"a\":2}\n{\"c\":5,\"a\":3,\"b\":4}\n",
			[]string{`{"b":"1","a":"2"}`, `{"b":"4","a":"3","c":"5"}`}, ""},
		{"nested values", "jsonl", `{"a": {"x": [1, 2.50]}, "b": [ ]}`,
			[]string{`{"a":"{\"x\":[1,2.50]}","b":"[]"}`}, ""},
		{"a key that comes twice", "jsonl", `{"a":1,"a":2}`, []string{`{"a":"2"}`}, ""},
		{"keys that only look alike", "jsonl", `{"price":1,"pri\u202ece":2}` + "\n" + `{"\u2066price":3}`,
			[]string{`{"price":"2"}`, `{"price":"3"}`}, ""},
		{"a hidden name of the server", "jsonl", `{"\u202e_jobId":1}`, nil,
			`column "_jobId": names that begin with _ are those of the server`},
		{"a key without a name", "jsonl", `{"":1}`, nil, "a column has no name"},

		{"all values are text", "jsonl", `{"a":1.50,"b":true,"c":1e3,"d":-0,"e":12345678901234567890}`,
			[]string{`{"a":"1.50","b":"true","c":"1e3","d":"-0","e":"12345678901234567890"}`}, ""},
		{"leading zeros", "csv", "a\n007\n", []string{`{"a":"007"}`}, ""},
		{"leading zeros in a sheet", "xlsx", book(t, []any{"a"}, []any{"007"}),
			[]string{`{"a":"007"}`}, ""},
		{"numbers in a sheet", "xlsx", book(t, []any{"a", "b"}, []any{4006381333931, 19.9}),
			[]string{`{"a":"4006381333931","b":"19.9"}`}, ""},
		{"empty cells are left out", "csv", "a,b,c\n1,,\"\"\n", []string{`{"a":"1"}`}, ""},
		{"null and empty text are left out", "jsonl", `{"a":null,"b":"","c":0}`,
			[]string{`{"c":"0"}`}, ""},
		{"empty rows are skipped", "csv", "\n\n,,\na,b\n\n,\n\"\"\n1,2\n\n",
			[]string{`{"a":"1","b":"2"}`}, ""},
		{"empty lines are skipped", "jsonl", "\n{\"a\":null}\n \r\n{\"a\":1}\n\n",
			[]string{`{"a":"1"}`}, ""},
		{"empty rows of a sheet are skipped", "xlsx",
			book(t, []any{"a"}, []any{}, []any{nil}, []any{"1"}), []string{`{"a":"1"}`}, ""},
		{"a line feed ends a row", "csv", "a\n1\n2", []string{`{"a":"1"}`, `{"a":"2"}`}, ""},
		{"both end one row", "csv", "a\r\n1\r\n2\r\n", []string{`{"a":"1"}`, `{"a":"2"}`}, ""},
		{"a lone carriage return ends a row", "csv", "a\r1\r2\r", []string{`{"a":"1"}`, `{"a":"2"}`},
			""},
		{"not so in quotes", "csv", "a\n\"1\r2\n3\"\n", []string{`{"a":"1\r2\n3"}`}, ""},
		{"quotes in quotes", "csv", "a\n\"say \"\"x\"\"\"\n", []string{`{"a":"say \"x\""}`}, ""},
		{"stray quotes", "csv", "a,b\n5\" pipe,\"13\" screen\"\n",
			[]string{`{"a":"5\" pipe","b":"13\" screen"}`}, ""},
		{"lone quotes in quotes", "csv", "a,b\n\"4\"\" or 5\" pipe\",\"\" \"\n",
			[]string{`{"a":"4\" or 5\" pipe","b":"\" "}`}, ""},
		{"quotes around a part", "csv", "a,b\n1,\"Best\" \"\"of\"\" it\n\"x\" \"y\n",
			[]string{`{"a":"1","b":"\"Best\" \"\"of\"\" it"}`, `{"a":"\"x\" \"y"}`}, ""},
		{"space behind quotes", "csv", "\"a\" ;\"b\"\t\n\"1;\" \t; \"2\"\r\n\" 3 \"  ",
			[]string{`{"a":"1;","b":" \"2\""}`, `{"a":" 3 "}`}, ""},
		{"a quote that is never closed", "csv", "a\n\"1\n2\n", nil,
			"row 2: a quote that opens in it is never closed"},

		{"500 columns", "csv", names(500) + "\n1\n", []string{`{"c0":"1"}`}, ""},
		{"501 columns", "csv", names(501) + "\n1\n", nil, "the file has more than 500 columns"},
		{"501 values", "csv", names(500) + "\n" + strings.Repeat(",", 500) + "1\n", nil,
			"the file has more than 500 columns"},
		{"separators behind 500 values", "csv", names(500) + "\n1" + strings.Repeat(",", 9_000) +
			"\n", []string{`{"c0":"1"}`}, ""},
		{"a value behind 9,000 separators", "csv", names(500) + "\n1" +
			strings.Repeat(",", 9_000) + "2\n", nil, "the file has more than 500 columns"},
		{"256 characters", "csv", strings.Repeat("ö", 256) + "\n1\n",
			[]string{`{"` + strings.Repeat("ö", 256) + `":"1"}`}, ""},
		{"257 characters", "csv", strings.Repeat("ö", 257) + "\n1\n", nil,
			"the name of column 1 has more than 256 characters"},
		{"257 characters of a key", "jsonl", `{"` + strings.Repeat("ö", 257) + `":1}`, nil,
			"the name of column 1 has more than 256 characters"},
		{"32 KB", "csv", "a\n" + cell + "\n", []string{`{"a":"` + cell + `"}`}, ""},
		{"over 32 KB", "csv", "a\n" + cell + "x\n", nil,
			`row 2: the value of column "a" has more than 32768 bytes`},
		{"over 32 KB of a nested value", "jsonl", `{"a":["` + cell + `"]}`, nil,
			`row 1: the value of column "a" has more than 32768 bytes`},
		{"1,000,000 bytes", "csv", "a\n" + wide(1_000_000) + "\n2\n", nil, ""},
		{"1,000,001 bytes", "csv", "a\n" + wide(1_000_001) + "\n2\n", nil,
			"row 2: it has more than 1000000 bytes"},
		{"1,000,000 bytes at the end", "csv", "a\n" + wide(1_000_000), nil, ""},
		{"1,000,001 bytes at the end", "csv", "a\n" + wide(1_000_001), nil,
			"row 2: it has more than 1000000 bytes"},
		{"1,000,000 bytes of a line", "jsonl", object(1_000_000) + "\r\n", nil, ""},
		{"1,000,001 bytes of a line", "jsonl", object(1_000_001), nil,
			"row 1: it has more than 1000000 bytes"},

		{"empty", "csv", "", nil, ""},
		{"a byte order mark alone", "csv", "\ufeff", nil, ""},
		{"header only", "csv", "a,b\n", nil, ""},
		{"empty lines alone", "jsonl", "\n\n", nil, ""},
		{"header of a sheet only", "xlsx", book(t, []any{"a"}), nil, ""},
		{"empty sheet", "xlsx", book(t), nil, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			rows, refused := read(t, c.format, c.file)
			if !strings.HasPrefix(refused, c.refused) || c.refused == "" && refused != "" {
				t.Errorf("refused: %q, want %q", refused, c.refused)
			}
			diff := cmp.Diff(c.rows, rows)
			if diff != "" && !strings.HasPrefix(c.rule, "1,000,000") {
				t.Error(diff)
			}
		})
	}
}

// wide returns a row of about 31 values with a number of bytes.
func wide(bytes int) string {
	var b strings.Builder
	for b.Len()+32_001 < bytes {
		b.WriteString(strings.Repeat("x", 32_000) + ",")
	}
	return b.String() + strings.Repeat("x", bytes-b.Len())
}

// object returns a line of JSON with a number of bytes.
func object(bytes int) string {
	var b strings.Builder
	b.WriteString("{")
	for n := 0; b.Len()+32_020 < bytes; n++ {
		fmt.Fprintf(&b, `"c%d":"%s",`, n, strings.Repeat("x", 32_000))
	}
	b.WriteString(`"last":"`)
	return b.String() + strings.Repeat("x", bytes-b.Len()-2) + `"}`
}

// TestErrorsOfAStoreAreNoRefusals: an error of the source is not a refusal of the file.
func TestErrorsOfAStoreAreNoRefusals(t *testing.T) {
	broken := errors.New("the store is away")
	for _, format := range []upload.Format{upload.CSV, upload.JSONL, upload.XLSX} {
		from := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken))
		if format == upload.JSONL {
			from = io.MultiReader(strings.NewReader("{\"a\":1}\n"), iotest.ErrReader(broken))
		}
		r, err := upload.NewReader(format, from, t.TempDir())
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestMediaTypes: a format accepts its media types.
func TestMediaTypes(t *testing.T) {
	for _, name := range upload.Format("").Values() {
		format := upload.Format(name)
		for _, media := range format.MediaTypes() {
			if !format.Is(media) {
				t.Errorf("%s is not %s", format, media)
			}
		}
		if len(format.MediaTypes()) == 0 || format.Is("application/json") {
			t.Errorf("%s: %v", format, format.MediaTypes())
		}
	}
}

// FuzzRead requires rows or a refusal from every file. A source that returns a byte at a time must
// give the same.
func FuzzRead(f *testing.F) {
	for _, file := range []string{"a,b\r\n1,\"2\"\"x\"\r3;4\n", "a;b\n\"1\n",
		"\ufeff\"a\"x,b\n,,\n", "{\"a\":{\"b\":[1,null]},\"c\":\"\\ud800\"}\n\n{}", "PK\x03\x04"} {
		for format := range 3 {
			f.Add(format, file)
		}
	}
	f.Fuzz(func(t *testing.T, number int, file string) {
		format := upload.Format(upload.Format("").Values()[uint(number)%3])
		rows, refused := read(t, format, file)
		for _, row := range rows {
			if len(row) < len(`{"":""}`) {
				t.Errorf("%s: row %s", format, row)
			}
		}
		if format == upload.XLSX {
			return
		}
		r, err := upload.NewReader(format, iotest.OneByteReader(strings.NewReader(file)), "")
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; ; n++ {
			row, err := r.Next()
			if err != nil {
				if n != len(rows) || !errors.Is(err, io.EOF) && err.Error() != refused {
					t.Errorf("%s: %d rows and %v by bytes, %d and %q at once", format, n, err,
						len(rows), refused)
				}
				return
			}
			if n >= len(rows) || string(row.AppendJSON(nil)) != rows[n] {
				t.Fatalf("%s: row %d is %s by bytes", format, n, row.AppendJSON(nil))
			}
		}
	})
}

// BenchmarkRead reads a file of 20 MB.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		format    upload.Format
		head, row string
	}{
		{upload.CSV, "sku,title,price,stock\n", "00012345,\"A good, long title of it\",19.90,7\n"},
		{upload.JSONL, "", `{"sku":"00012345","title":"A good, long title","price":19.90}` + "\n"},
	} {
		file := c.head + strings.Repeat(c.row, 20_000_000/len(c.row))
		b.Run(string(c.format), func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for range b.N {
				r, err := upload.NewReader(c.format, strings.NewReader(file), "")
				for err == nil {
					_, err = r.Next()
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
		})
	}
}
