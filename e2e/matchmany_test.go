package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/match/matchtest"
	"shoal.dev/shoal/testkit/synthweb"
)

var matchRows = flag.Int("match-rows", 2_000,
	"rows that TestMatchOfMany matches with as many products; a night takes 1,000,000")

// Promised bounds of a match of manyMatched rows with as many products.
const (
	manyMatched     = 1_000_000
	mostMatchTime   = 15 * time.Minute
	mostMatchMemory = 1 << 30
	comparedRows    = 10_000 // that the test matches, too
)

// TestMatchOfMany sends a catalogue and as many rows as csv, and matches them. The result must have
// its rows in the order of the source, each once. Each trade number must find its product, and a
// sample must find what the matcher finds in this process.
func TestMatchOfMany(t *testing.T) {
	t.Parallel()
	m := &manyMatches{service: newService(t, newWeb(t, synthweb.Config{}), suite.Fast()...),
		of: matchtest.New(1), rows: *matchRows, ctx: suite.Within(t, 2*time.Hour)}
	var made struct{ ID string }
	if err := m.Call(m.ctx, "PUT", "/api/scraper/group", nil, map[string]any{"name": "many",
		"startType": "MANUAL", "shouldMatchProducts": true}, &made); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.sendCatalogue()
	read := time.Since(began)

	began = time.Now()
	file := m.sendRows(made.ID)
	stored, before := time.Since(began), suite.Must(m.p.Usage())(t)

	began = time.Now()
	err := m.Call(m.ctx, "PUT", "/api/scraper/group/"+made.ID+"/match", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := m.awaitOther(file.JobID)
	matched, after := time.Since(began), suite.Must(m.p.Usage())(t)
	t.Logf("%d rows × %d products: catalogue read in %v, rows stored in %v, matched in %v",
		m.rows, m.rows, read, stored, matched)
	t.Logf("%d MB before the match, %d MB at most", before.PeakBytes>>20, after.PeakBytes>>20)
	m.check(file.Scraper.ID, run)
	if m.rows < manyMatched {
		return
	}
	if matched > mostMatchTime || after.PeakBytes > mostMatchMemory {
		t.Errorf("it took %v and %d MB, at most %v and %d", matched, after.PeakBytes>>20,
			mostMatchTime, mostMatchMemory>>20)
	}
}

// manyMatches is a service that matches generated rows with generated products.
type manyMatches struct {
	*service
	of   matchtest.Catalogue
	rows int
	ctx  context.Context // of the test
}

var (
	productColumns = []string{"id", "gtin", "brand", "model", "title"}
	rowColumns     = productColumns[1:]
)

// cellsOf returns the values of a product, without its id.
func cellsOf(p match.Product) []string {
	return []string{strings.Join(p.Numbers, ";"), p.Brand, p.Model, p.Title}
}

// writeTable writes a csv file with rows from a function.
func (m *manyMatches) writeTable(head []string, row func(n int) []string) *bytes.Buffer {
	m.T.Helper()
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	err := w.Write(head)
	for n := 0; n < m.rows && err == nil; n++ {
		err = w.Write(row(n))
	}
	w.Flush()
	if err = errors.Join(err, w.Error()); err != nil {
		m.T.Fatal(err)
	}
	return &file
}

// sendCatalogue sends the products, and waits until rows are matched with them.
func (m *manyMatches) sendCatalogue() {
	m.T.Helper()
	file := m.writeTable(productColumns, func(n int) []string {
		id, product := m.of.Product(n)
		return append([]string{id}, cellsOf(product)...)
	})
	answer, err := m.Admin().Do(m.ctx, "PUT", "/api/admin/catalogue",
		url.Values{"format": {"csv"}}, "text/csv", file)
	if err != nil {
		m.T.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		m.T.Fatal(err)
	}
	var status struct{ Current *struct{ Products int } }
	m.until("the catalogue", func() (bool, error) {
		err := m.Admin().Call(m.ctx, "GET", "/api/admin/catalogue/status", nil, nil, &status)
		return status.Current != nil, err
	})
	if got := status.Current.Products; got != m.rows {
		m.T.Fatalf("the catalogue has %d products, want %d", got, m.rows)
	}
}

// sendRows uploads the rows to a group, and waits until they are stored.
func (m *manyMatches) sendRows(group string) (made uploadedFile) {
	m.T.Helper()
	file := m.writeTable(rowColumns, func(n int) []string { return cellsOf(m.of.Row(n)) })
	answer, err := m.Do(m.ctx, "POST", "/api/scraper/group/"+group+"/file-scraper",
		url.Values{"format": {"csv"}, "name": {"rows"}}, "text/csv", file)
	if err != nil {
		m.T.Fatal(err)
	}
	err = json.NewDecoder(answer.Body).Decode(&made)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		m.T.Fatal(err)
	}
	suite.Must(m.Follow(m.ctx, made.JobID, nil))(m.T)
	return made
}

// awaitOther waits until a run other than one is COMPLETED.
func (m *manyMatches) awaitOther(than string) (run suite.Launched) {
	m.T.Helper()
	m.until("the match", func() (bool, error) {
		jobs, err := m.Jobs(m.ctx, "")
		for _, job := range jobs {
			if job.ID == than {
				continue
			}
			run = suite.Launched{JobID: job.ID, ScraperID: job.ScraperID}
			if job.State == "FAILED" {
				m.T.Fatal(job.ErrorMessage)
			}
			return job.State == "COMPLETED", nil
		}
		return false, err
	})
	return run
}

// until asks until it is so.
func (m *manyMatches) until(what string, is func() (bool, error)) {
	m.T.Helper()
	for {
		so, err := is()
		switch {
		case err != nil:
			m.T.Fatalf("%s: %v", what, err)
		case so:
			return
		}
		select {
		case <-m.ctx.Done():
			m.T.Fatalf("waited in vain for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// foundMatch is a row of a match's result.
type foundMatch struct {
	JobID       string `json:"_jobId"`
	RowID       string `json:"rowId"`
	CatalogueID string `json:"catalogueId"`
	Score       float64
	Method      match.Method
}

// check compares the result with the rows and with the matcher.
func (m *manyMatches) check(source string, run suite.Launched) {
	t := m.T
	t.Helper()
	finder, columns := m.finder()
	sources, results := m.export(source), m.export(run.ScraperID)
	var next foundMatch
	there := readLine(t, results, &next)
	stored, right, wrong, compared := 0, 0, 0, 0
	for n := range m.rows {
		var row struct {
			ID string `json:"_rowId"`
		}
		if !readLine(t, sources, &row) {
			t.Fatalf("%d rows are stored, want %d", n, m.rows)
		}
		id, _ := m.of.Product(n)
		cells := cellsOf(m.of.Row(n))
		var got match.Match
		if there && next.RowID == row.ID {
			if next.JobID != run.JobID {
				t.Fatalf("row %d is %+v", n, next)
			}
			got = match.Match{ID: next.CatalogueID, Score: next.Score, Method: next.Method}
			stored++
			next = foundMatch{}
			there = readLine(t, results, &next)
		}
		switch got.ID {
		case id:
			right++
		case "":
		default:
			wrong++
		}
		if cells[0] != "" && (got.ID != id || got.Method != match.ByNumber) {
			t.Fatalf("row %d has the number %s of %s, and found %+v", n, cells[0], id, got)
		}
		if n%max(1, m.rows/comparedRows) == 0 {
			product := columns.Product(func(name string) string { return cellOf(cells, name) })
			if want, _ := finder.Find(&product); got != want {
				t.Fatalf("row %d found %+v, want %+v", n, got, want)
			}
			compared++
		}
	}
	if there {
		t.Errorf("%+v is out of order, twice there, or of no row", next)
	}
	job := suite.Must(m.Job(m.ctx, run))(t)
	if int(job.ItemsQuantity) != stored {
		t.Errorf("the run has %d rows, and %d are there", job.ItemsQuantity, stored)
	}
	if right*10 < m.rows*9 {
		t.Errorf("only %d of %d rows found their product", right, m.rows)
	}
	t.Logf("%d rows found their product and %d another; %d are what the matcher finds", right,
		wrong, compared)
}

// finder finds the same products, and has the columns of the rows.
func (m *manyMatches) finder() (*match.Finder, match.Columns) {
	m.T.Helper()
	var b match.Builder
	of := match.ColumnsOf(productColumns)
	for n := range m.rows {
		id, product := m.of.Product(n)
		cells := cellsOf(product)
		product = of.Product(func(name string) string { return cellOf(cells, name) })
		if err := b.Add(id, &product); err != nil {
			m.T.Fatal(err)
		}
	}
	return suite.Must(b.Build())(m.T).Finder(), match.ColumnsOf(rowColumns)
}

// cellOf returns a value by its column.
func cellOf(cells []string, column string) string {
	for at, name := range rowColumns {
		if name == column {
			return cells[at]
		}
	}
	return ""
}

// export reads the rows of a scraper as they come.
func (m *manyMatches) export(scraper string) *json.Decoder {
	m.T.Helper()
	answer := suite.Must(m.Do(m.ctx, "GET", "/api/scraper/data/export",
		url.Values{"scraperId": {scraper}, "format": {"jsonl"}}, "", nil))(m.T)
	m.T.Cleanup(func() { _ = answer.Body.Close() })
	return json.NewDecoder(answer.Body)
}

// readLine reads a row, and reports whether there is one.
func readLine(t *testing.T, lines *json.Decoder, row any) bool {
	t.Helper()
	err := lines.Decode(row)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return err == nil
}
