package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// mostForFile is how much memory the whole process may use for a file, beyond what it had.
const mostForFile = 64 << 20

// largeFile makes files of one kind.
type largeFile struct {
	kind string
	// Sizes in bytes: the one tested with each commit, and nearly the greatest that is accepted.
	usual, largest int
	// write writes a file of at least that size, and returns its number of rows.
	write func(file *bytes.Buffer, size int) (rows int, err error)
}

func largeFiles() map[string]largeFile {
	lines := func(head, row string) func(*bytes.Buffer, int) (int, error) {
		return func(file *bytes.Buffer, size int) (rows int, err error) {
			file.WriteString(head)
			for text := bytes.Repeat([]byte("word "), 60); file.Len() < size; rows++ {
				fmt.Fprintf(file, row, rows, text[:rows%len(text)])
			}
			return rows, nil
		}
	}
	return map[string]largeFile{
		"csv": {"text/csv", 40_000_000, 199_000_000,
			lines("sku,title,price,text\n", "S%d,Thing %[1]d,%[1]d.50,%s\n")},
		"jsonl": {"application/jsonl", 40_000_000, 199_000_000,
			lines("", `{"sku":"S%d","title":"Thing %[1]d","price":"%[1]d.50","text":%q}`+"\n")},
		"xlsx": {sheetType, 8_000_000, 35_500_000, writeSheet},
	}
}

const sheetType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// bookPart is a file within a spreadsheet.
type bookPart struct {
	name  string
	write func(w *bufio.Writer) error
}

// writeBook writes a spreadsheet of one sheet, whose parts are given.
func writeBook(file *bytes.Buffer, parts ...bookPart) (err error) {
	whole := func(text string) func(w *bufio.Writer) error {
		return func(w *bufio.Writer) error { _, err := w.WriteString(text); return err }
	}
	const relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	packed := zip.NewWriter(file)
	for _, part := range append([]bookPart{
		{"xl/workbook.xml", whole(`<workbook xmlns:r="` + relations +
			`"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>`)},
		{"xl/_rels/workbook.xml.rels", whole(`<Relationships><Relationship Id="r1" Type="` +
			relations + `/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`)}},
		parts...) {
		created, partErr := packed.Create(part.name)
		w := bufio.NewWriter(created)
		err = errors.Join(err, partErr, part.write(w), w.Flush())
	}
	return errors.Join(err, packed.Close())
}

// writeSheet writes a spreadsheet of two columns. Its texts are in a separate part, like the shared
// strings of spreadsheets. No two are alike, and packing hardly makes them smaller.
func writeSheet(file *bytes.Buffer, size int) (rows int, err error) {
	texts := func(w *bufio.Writer) error {
		random, text := rand.NewChaCha8([32]byte{}), make([]byte, 210)
		_, err := w.WriteString(`<sst><si><t>sku</t></si><si><t>text</t></si>`)
		for ; file.Len() < size*95/100 && err == nil; rows++ {
			_, _ = random.Read(text) // it never fails
			_, err = fmt.Fprintf(w, `<si><t>%s</t></si>`, base64.StdEncoding.EncodeToString(text))
		}
		_, endErr := io.WriteString(w, `</sst>`)
		return errors.Join(err, endErr)
	}
	cells := func(w *bufio.Writer) error {
		_, err := w.WriteString(`<worksheet><sheetData><row><c t="s"><v>0</v></c>` +
			`<c t="s"><v>1</v></c></row>`)
		for row := 0; row < rows && err == nil; row++ {
			_, err = fmt.Fprintf(w, `<row><c><v>%d</v></c><c t="s"><v>%d</v></c></row>`, row, row+2)
		}
		_, endErr := io.WriteString(w, `</sheetData></worksheet>`)
		return errors.Join(err, endErr)
	}
	err = writeBook(file, bookPart{"xl/sharedStrings.xml", texts},
		bookPart{"xl/worksheets/sheet1.xml", cells})
	return rows, err
}

// TestUploadsTakeLittleMemory uploads a file of each kind to its own process. It checks the peak
// memory of the process until all rows were stored.
func TestUploadsTakeLittleMemory(t *testing.T) {
	for format, of := range largeFiles() {
		t.Run(format, func(t *testing.T) {
			s := newService(t, newWeb(t, synthweb.Config{}))
			group := suite.Must(s.PutGroup(t.Context(), "files"))(t)
			size := of.usual
			if *scale {
				size = of.largest
			}
			file := bytes.NewBuffer(make([]byte, 0, size+1_000))
			rows := suite.Must(of.write(file, size))(t)
			length := file.Len()
			before := suite.Must(s.p.Usage())(t)
			ctx, begin := suite.Within(t, suite.Patience), time.Now()
			answer := suite.Must(s.Do(ctx, "POST", "/api/scraper/group/"+group+"/file-scraper",
				url.Values{"format": {format}, "name": {"large"}}, of.kind, file))(t)
			var made uploadedFile
			err := json.NewDecoder(answer.Body).Decode(&made)
			if err = errors.Join(err, answer.Body.Close()); err != nil {
				t.Fatal(err)
			}
			run := suite.Launched{JobID: made.JobID, ScraperID: made.Scraper.ID}
			suite.Must(s.Follow(ctx, run.JobID, nil))(t)
			job := suite.Must(s.Job(ctx, run))(t)
			after := suite.Must(s.p.Usage())(t)
			t.Logf("%d bytes, %d rows in %v: %d MB, then %d MB at most", length, rows,
				time.Since(begin).Round(time.Millisecond), before.Bytes>>20, after.PeakBytes>>20)
			if job.State != "COMPLETED" || int(job.ItemsQuantity) != rows {
				t.Errorf("%s with %d of %d rows", job.State, job.ItemsQuantity, rows)
			}
			if taken := after.PeakBytes - before.Bytes; taken > mostForFile {
				t.Errorf("it took %d MB, at most %d", taken>>20, mostForFile>>20)
			}
		})
	}
}
