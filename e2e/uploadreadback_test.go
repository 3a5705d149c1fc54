package e2e

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

var uploadRows = flag.Int("upload-rows", uploadedRows,
	"rows that TestUploadsAreReadBack uploads in each format; a night takes 1,000,000")

// sentColumns are the columns of sent rows. The first is a number, the others are texts.
var sentColumns = []string{"n", "gtin", "price", "text"}

// sentRow returns the values of a row. An empty one is left out.
func sentRow(n int) []string {
	texts := []string{"plain", `with "quotes"`, "a,b;c\td", "two\nlines", "grün ✓ 漢字", "",
		"<b>&amp;</b>", `{"a":[1]}`, "1e5", "=SUM(A1)"}
	return []string{fmt.Sprint(n), "0" + gtin(n%1_000_000), fmt.Sprintf("%d.%d0", n/7, n%10),
		texts[n%len(texts)]}
}

// sentFile is how rows are written as a file of a format.
type sentFile struct {
	kind  string
	write func(file *bytes.Buffer, rows int) error
}

func sentFiles() map[string]sentFile {
	return map[string]sentFile{
		"csv": {"text/csv", func(file *bytes.Buffer, rows int) error {
			w := csv.NewWriter(file)
			err := w.Write(sentColumns)
			for n := 0; n < rows && err == nil; n++ {
				err = w.Write(sentRow(n))
			}
			w.Flush()
			return errors.Join(err, w.Error())
		}},
		"jsonl": {"application/jsonl", func(file *bytes.Buffer, rows int) error {
			w := json.NewEncoder(file)
			for n := range rows {
				row := map[string]any{}
				for at, value := range sentRow(n) {
					row[sentColumns[at]] = value
				}
				row[sentColumns[0]] = n
				if err := w.Encode(row); err != nil {
					return err
				}
			}
			return nil
		}},
		"xlsx": {sheetType, func(file *bytes.Buffer, rows int) error {
			return writeBook(file, bookPart{"xl/worksheets/sheet1.xml",
				func(w *bufio.Writer) error {
					_, _ = w.WriteString(`<worksheet><sheetData>`) // Flush returns the error
					writeCells(w, sentColumns)
					for n := range rows {
						writeCells(w, sentRow(n))
					}
					_, _ = w.WriteString(`</sheetData></worksheet>`)
					return w.Flush()
				}})
		}},
	}
}

// writeCells writes a row of a sheet: digits as a number, other values as texts. The writer keeps
// its error.
func writeCells(w *bufio.Writer, values []string) {
	_, _ = w.WriteString("<row>")
	for at, value := range values {
		if at == 0 && value != sentColumns[0] {
			_, _ = fmt.Fprintf(w, "<c><v>%s</v></c>", value)
			continue
		}
		_, _ = w.WriteString(`<c t="inlineStr"><is><t>`)
		_ = xml.EscapeText(w, []byte(value))
		_, _ = w.WriteString("</t></is></c>")
	}
	_, _ = w.WriteString("</row>")
}

// TestUploadsAreReadBack uploads rows in each format and exports them. All must be there, unchanged
// and in order.
func TestUploadsAreReadBack(t *testing.T) {
	t.Parallel()
	s := newService(t, newWeb(t, synthweb.Config{}))
	group := suite.Must(s.PutGroup(t.Context(), "files"))(t)
	for format, of := range sentFiles() {
		t.Run(format, func(t *testing.T) {
			var file bytes.Buffer
			if err := of.write(&file, *uploadRows); err != nil {
				t.Fatal(err)
			}
			length, began := file.Len(), time.Now()
			ctx := suite.Within(t, time.Hour)
			answer := suite.Must(s.Do(ctx, "POST", "/api/scraper/group/"+group+"/file-scraper",
				url.Values{"format": {format}, "name": {format}}, of.kind, &file))(t)
			var made uploadedFile
			err := json.NewDecoder(answer.Body).Decode(&made)
			if err = errors.Join(err, answer.Body.Close()); err != nil {
				t.Fatal(err)
			}
			suite.Must(s.Follow(ctx, made.JobID, nil))(t)
			stored := time.Since(began)
			answer = suite.Must(s.Do(ctx, "GET", "/api/scraper/data/export",
				url.Values{"scraperId": {made.Scraper.ID}, "format": {"jsonl"}}, "", nil))(t)
			defer func() { _ = answer.Body.Close() }()
			n := 0
			for lines := json.NewDecoder(answer.Body); lines.More(); n++ {
				var row map[string]any
				if err := lines.Decode(&row); err != nil {
					t.Fatalf("row %d: %v", n, err)
				}
				if row["_jobId"] != made.JobID {
					t.Fatalf("row %d is %v", n, row)
				}
				maps.DeleteFunc(row, func(name string, _ any) bool {
					return strings.HasPrefix(name, "_")
				})
				for at, want := range sentRow(n) {
					name := sentColumns[at]
					if got, has := row[name]; has != (want != "") || has && got != want {
						t.Fatalf("row %d: %s is %q, want %q", n, name, got, want)
					}
					delete(row, name)
				}
				if len(row) > 0 {
					t.Fatalf("row %d also has %v", n, row)
				}
			}
			if n != *uploadRows {
				t.Fatalf("%d rows are read back, want %d", n, *uploadRows)
			}
			t.Logf("%d rows of %d MB are equal, stored in %v", n, length>>20,
				stored.Round(time.Millisecond))
		})
	}
}
