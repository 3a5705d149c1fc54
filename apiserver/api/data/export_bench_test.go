package data

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

var benchRows = flag.Int("export-rows", 5_000, "rows that BenchmarkExport exports")

// BenchmarkExport compares a bare scan of rows with 5 fields and 480 bytes to their export in each
// format. It also measures ClickHouse if CLICKHOUSE_URL is set.
func BenchmarkExport(b *testing.B) {
	embedded, err := sqlite.Open(sqlite.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = embedded.Close() }()
	b.Run("sqlite", func(b *testing.B) { benchExport(b, embedded) })
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		return
	}
	server, err := clickhouse.Open(b.Context(), clickhouse.Config{URL: url, Node: "bench",
		Database: "bench_" + ids.Random{Now: time.Now}.New().String()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	b.Run("clickhouse", func(b *testing.B) { benchExport(b, server) })
}

func benchExport(b *testing.B, store rowstore.Store) {
	job := newBenchJob()
	putBenchRows(b, store, job, 0, *benchRows)
	upto, err := store.Horizon(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	rows := func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		return scanAll(ctx, store, []rowstore.Scope{{Group: job.Group}},
			rowstore.ScanQuery{Bytes: exportBytes, Upto: upto}, 0)
	}
	measure := func(name string, run func() (int, error)) {
		b.Run(name, func(b *testing.B) {
			used := processorTime(b)
			for b.Loop() {
				if n, err := run(); err != nil || n == 0 {
					b.Fatalf("%d: %v", n, err)
				}
			}
			rows := float64(*benchRows * b.N)
			b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
			// On a busy machine wall-clock time says less.
			b.ReportMetric(rows/(processorTime(b)-used).Seconds(), "rows/processor-s")
		})
	}
	measure("scan", func() (n int, err error) {
		for part, err := range rows(b.Context()) {
			if err != nil {
				return 0, err
			}
			n += len(part)
		}
		return n, nil
	})
	for _, format := range []export.Format{export.CSV, export.JSONL, export.Parquet,
		export.XLSX} {
		measure(string(format), func() (int, error) {
			if format == export.XLSX && *benchRows > 100_000 {
				b.Skip("a spreadsheet has no such number of rows")
			}
			out := &counted{}
			err := export.Write(b.Context(), out, rows, export.Options{Format: format,
				Disk: benchDisk{b.TempDir()}})
			return out.bytes, err
		})
	}
}

// processorTime is the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// benchDisk always has room.
type benchDisk struct{ dir string }

func (d benchDisk) Dir() string        { return d.dir }
func (benchDisk) TakeRoom(int64) error { return nil }

type counted struct{ bytes int }

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return io.Discard.Write(p)
}

// newBenchJob makes a run in a new group.
func newBenchJob() rowstore.Job {
	source := ids.Random{Now: time.Now}
	return rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(),
		Started: time.Now().UnixMicro()}
}

// putBenchRows stores the rows of a run with numbers in [from, upto), as a list run does.
func putBenchRows(t testing.TB, store rowstore.Store, job rowstore.Job, from, upto int) {
	t.Helper()
	source := ids.Random{Now: time.Now}
	for ; from < upto; from += 1_000 {
		pages := make([]rowstore.PageWrite, min(1_000, upto-from))
		for i := range pages {
			seq := from + i
			row := benchRow{seq, job.ID}
			pages[i] = rowstore.PageWrite{Job: job, Page: &model.Page{Job: job.ID,
				Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(),
				Outcome: model.Delivered, Status: 200, URL: row.url(),
				PriceRow: model.Plain.PriceRow(), Quantity: 1, At: job.Started + int64(seq),
				Last: true, Rows: [][]byte{row.json()}}}
		}
		if _, err := store.PutPages(t.Context(), pages); err != nil {
			t.Fatal(err)
		}
	}
}

// benchRow makes a row of 5 fields and 480 bytes.
type benchRow struct {
	seq int
	job ids.ID
}

func (r benchRow) url() string {
	return fmt.Sprintf("https://host-%d.example.test/products/item-%d", r.seq%1000, r.seq)
}

func (r benchRow) json() []byte {
	c := r.cells()
	return fmt.Appendf(nil, `{"title":%q,"price":%q,"sku":%q,"inStock":%s,"description":%q,`+
		`"_sourceUrl":%q,"_scrapedAt":%q,"_jobId":%q}`, c["title"], c["price"], c["sku"],
		c["inStock"], c["description"], c["_sourceUrl"], c["_scrapedAt"], c["_jobId"])
}

// cells are the row's members as text.
func (r benchRow) cells() map[string]string {
	return map[string]string{"title": fmt.Sprintf("Product %d, new", r.seq%5000),
		"price": fmt.Sprintf("%d.99", r.seq%500), "sku": fmt.Sprintf("SKU-%d", r.seq),
		"inStock":     fmt.Sprint(r.seq%3 == 0),
		"description": strings.Repeat(fmt.Sprintf("words %05x ", r.seq*2654435761%100_000), 18),
		"_sourceUrl":  r.url(), "_scrapedAt": "2026-01-31T12:00:00.000Z", "_jobId": r.job.String()}
}
