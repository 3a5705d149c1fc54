package export_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/pkg/fault"
)

// parts yields rows in parts of this many.
func parts(rows []string, of int) export.Source {
	return func(context.Context) iter.Seq2[[]json.RawMessage, error] {
		return func(yield func([]json.RawMessage, error) bool) {
			var part []json.RawMessage
			for i, row := range rows {
				if part = append(part, json.RawMessage(row)); len(part) < of && i+1 < len(rows) {
					continue
				}
				if !yield(part, nil) {
					return
				}
				part = nil
			}
		}
	}
}

func write(t testing.TB, o export.Options, rows ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := export.Write(t.Context(), &out, parts(rows, 2), o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFormats(t *testing.T) {
	rows := []string{
		`{"_sourceUrl":"https://a.example/1","title":"One, \"1\"","price":"9"}`,
		`{"_sourceUrl":"https://a.example/2","title":"Two\nlines","price":null}`,
		"{\"price\":1.50,\n \"title\":true,\"tags\":[1,\"x\"]}",
		`{"title":"=HYPERLINK(1)","price":"-1.5","-late":"@x"}`,
	}
	for name, c := range map[string]struct {
		o    export.Options
		want string
	}{
		"jsonl": {export.Options{Format: export.JSONL}, rows[0] + "\n" + rows[1] + "\n" +
			`{"price":1.50,"title":true,"tags":[1,"x"]}` + "\n" + rows[3] + "\n"},
		"jsonl with fields": {export.Options{Format: export.JSONL,
			Members: export.Members{Fields: []string{"price", "none", "title"}}},
			`{"price":"9","title":"One, \"1\""}` + "\n" + `{"price":null,"title":"Two\nlines"}` +
				"\n" + `{"price":1.50,"title":true}` + "\n" +
				`{"price":"-1.5","title":"=HYPERLINK(1)"}` + "\n"},
		"csv": {export.Options{Format: export.CSV, First: []string{"sku", "price"}},
			"sku,price,title,tags,'-late,_sourceUrl\n" +
				`,9,"One, ""1""",,,https://a.example/1` + "\n" +
				",,\"Two\nlines\",,,https://a.example/2\n" +
				`,1.50,true,"[1,""x""]",,` + "\n" + ",-1.5,'=HYPERLINK(1),,'@x,\n"},
		"csv with fields, a mark and formulas": {export.Options{Format: export.CSV, BOM: true,
			Unguarded: true, Members: export.Members{Fields: []string{"title", "none"}}},
			"\ufefftitle,none\n" + `"One, ""1""",` + "\n\"Two\nlines\",\ntrue,\n=HYPERLINK(1),\n"},
	} {
		if diff := cmp.Diff(c.want, write(t, c.o, rows...)); diff != "" {
			t.Errorf("%s (- wanted):\n%s", name, diff)
		}
	}
	if got := write(t, export.Options{Format: export.CSV, Members: export.Members{Fields: []string{"a"}}}, `{"a":null}`,
		`{"a":1}`); got != "a\n\"\"\n1\n" {
		t.Errorf("one empty cell: %q", got)
	}
	if got := write(t, export.Options{Format: export.CSV, First: []string{"a", "b"}}); got !=
		"a,b\n" {
		t.Errorf("no row: %q", got)
	}
}

// A csv holds exactly what the rows hold, and no cell is a formula.
func TestCSVHoldsTheRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "=d", "_e", "ü", ""})
		value := rapid.OneOf(rapid.String(),
			rapid.SampledFrom([]string{"=1", "+a", "-", "\t", "1e9"}))
		docs := rapid.SliceOf(rapid.MapOf(name, value)).Draw(rt, "docs")
		rows := make([]string, len(docs))
		for i, doc := range docs {
			encoded, err := json.Marshal(doc)
			if err != nil {
				rt.Fatal(err)
			}
			rows[i] = string(encoded)
		}
		read, err := csv.NewReader(strings.NewReader(write(t,
			export.Options{Format: export.CSV, First: []string{"first"}}, rows...))).ReadAll()
		if err != nil || len(read) != len(docs)+1 {
			rt.Fatalf("%d records of %d rows: %v", len(read), len(docs), err)
		}
		for i, doc := range docs {
			seen := map[string]string{}
			for at, column := range read[0] {
				cell := read[i+1][at]
				if strings.HasPrefix(cell, "=") || strings.HasPrefix(column, "=") {
					rt.Fatalf("a formula: %q in %q", cell, column)
				}
				if cell != "" {
					seen[strings.TrimPrefix(column, "'")] = strings.TrimPrefix(cell, "'")
				}
			}
			for key, text := range doc {
				// csv has only one kind of line break
				text = strings.ReplaceAll(strings.TrimPrefix(text, "'"), "\r\n", "\n")
				if seen[key] != text {
					rt.Fatalf("%q is %q, want %q", key, seen[key], text)
				}
			}
		}
	})
}

// A csv equals the output of encoding/csv, byte for byte.
func TestCSVIsAsTheLibraryWritesIt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune(",\"\r\n\\. \u2003a"))))
		records := [][]string{{"a", "b"}}
		var rows []string
		for _, pair := range rapid.SliceOf(rapid.SliceOfN(text, 2, 2)).Draw(rt, "texts") {
			row, err := json.Marshal(map[string]string{"a": pair[0], "b": pair[1]})
			if err != nil {
				rt.Fatal(err)
			}
			records, rows = append(records, pair), append(rows, string(row))
		}
		var want bytes.Buffer
		if err := csv.NewWriter(&want).WriteAll(records); err != nil {
			rt.Fatal(err)
		}
		got := write(t, export.Options{Format: export.CSV, First: records[0], Unguarded: true},
			rows...)
		if got != want.String() {
			rt.Fatalf("%q, want %q", got, want.String())
		}
	})
}

func TestTooManyColumnsAreRefused(t *testing.T) {
	var row strings.Builder
	row.WriteString(`{"a":1`)
	for i := range 16_384 {
		fmt.Fprintf(&row, `,"c%d":1`, i)
	}
	row.WriteString("}")
	var out bytes.Buffer
	err := export.Write(t.Context(), &out, parts([]string{row.String()}, 1),
		export.Options{Format: export.CSV})
	if fault.CodeOf(err) != fault.InvalidRequest || out.Len() > 0 {
		t.Errorf("%v after %d bytes", err, out.Len())
	}
}

func TestAnErrorEndsTheFile(t *testing.T) {
	broken := errors.New("the disk is gone")
	rows := func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		return func(yield func([]json.RawMessage, error) bool) { yield(nil, broken) }
	}
	for _, format := range []export.Format{export.CSV, export.JSONL} {
		if err := export.Write(t.Context(), &bytes.Buffer{}, rows,
			export.Options{Format: format}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// lame is a reader that goes away after some bytes.
type lame struct{ left int }

var errGone = errors.New("the reader is gone")

func (l *lame) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errGone
	}
	return len(p), nil
}

// A reader that goes away midway ends the writing, in every format.
func TestReadersThatGoAway(t *testing.T) {
	rows := make([]string, 2_000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		text := make([]byte, 2_000)
		for at := range text {
			text[at] = byte(random.UintN(256))
		}
		rows[i] = fmt.Sprintf(`{"n":%d,"text":"%x"}`, i, text)
	}
	for _, format := range []export.Format{export.CSV, export.JSONL, export.XLSX, export.Parquet} {
		for _, d := range []export.Disk{nil, &disk{t.TempDir(), 1 << 40}} {
			err := export.Write(t.Context(), &lame{1 << 20}, parts(rows, 100),
				export.Options{Format: format, Disk: d})
			if !errors.Is(err, errGone) {
				t.Errorf("%s: %v", format, err)
			}
		}
	}
}

// A text that a spreadsheet would calculate is defused. A number stays a number.
func TestGuardText(t *testing.T) {
	for _, number := range []string{"-1", "+1.5", "-.5", "-1e-9", "+2E7"} {
		if got := export.GuardText(number); got != number {
			t.Errorf("%q of the number %q", got, number)
		}
	}
	for _, text := range []string{"-inf", "+Infinity", "-0x1p-2", "-1_000", "+nan", "-1-1", "=1",
		"@a", "\t=1", "\r=1", "\n=1", "-"} {
		if got := export.GuardText(text); got != "'"+text {
			t.Errorf("%q of the text %q", got, text)
		}
	}
}

// Whatever the rows are, what follows any of them is the rest of the whole file. Columns that only
// skipped rows have count, too.
func TestSkippedRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		docs := rapid.SliceOf(rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "_c", "d"}),
			rapid.OneOf(rapid.String(), rapid.Just("\n\"")))).Draw(rt, "docs")
		rows := make([]string, len(docs))
		for i, doc := range docs {
			encoded, err := json.Marshal(doc)
			if err != nil {
				rt.Fatal(err)
			}
			rows[i] = string(encoded)
		}
		skip := rapid.IntRange(0, len(rows)).Draw(rt, "skip")
		for _, o := range []export.Options{{Format: export.JSONL}, {Format: export.CSV, BOM: true},
			{Format: export.CSV, First: []string{"first"}},
			{Format: export.CSV, Members: export.Members{Fields: []string{"b", "a"}}}} {
			whole, shorter := write(t, o, rows...), o
			shorter.Skip = int64(skip)
			rest := write(t, shorter, rows...)
			head, is := strings.CutSuffix(whole, rest)
			if !is || skip == 0 && head != "" || skip > 0 && countRows(rt, o, head) != skip {
				rt.Fatalf("%+v: %q after %d rows of %q", o, rest, skip, whole)
			}
			shorter.Skip = int64(len(rows) + 1)
			var none bytes.Buffer
			if err := export.Write(t.Context(), &none, parts(rows, 2),
				shorter); fault.CodeOf(err) != fault.InvalidRequest || none.Len() > 0 {
				rt.Fatalf("%+v: %v and %d bytes after more rows than there are", o, err, none.Len())
			}
		}
	})
}

// countRows counts the rows of a csv or jsonl.
func countRows(rt *rapid.T, o export.Options, file string) int {
	if o.Format == export.JSONL {
		return strings.Count(file, "\n")
	}
	file = strings.TrimPrefix(file, "\ufeff")
	if strings.HasPrefix(file, "\n") { // without columns each line is empty, and readers skip it
		return strings.Count(file, "\n") - 1
	}
	records, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil {
		rt.Fatal(err)
	}
	return len(records) - 1
}
