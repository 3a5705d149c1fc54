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

// BenchmarkExport is a bare scan of rows with 5 fields and 480 bytes, and their export in each
// format. ClickHouse is measured, too, where CLICKHOUSE_URL names one.
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
	job := putBenchRows(b, store)
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
			for b.Loop() {
				if n, err := run(); err != nil || n == 0 {
					b.Fatalf("%d: %v", n, err)
				}
			}
			b.ReportMetric(float64(*benchRows*b.N)/b.Elapsed().Seconds(), "rows/s")
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

// benchDisk has room for everything.
type benchDisk struct{ dir string }

func (d benchDisk) Dir() string        { return d.dir }
func (benchDisk) TakeRoom(int64) error { return nil }

type counted struct{ bytes int }

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return io.Discard.Write(p)
}

// putBenchRows stores rows as a list run does.
func putBenchRows(b *testing.B, store rowstore.Store) rowstore.Job {
	b.Helper()
	source := ids.Random{Now: time.Now}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(),
		Started: time.Now().UnixMicro()}
	for from := 0; from < *benchRows; from += 1_000 {
		pages := make([]rowstore.PageWrite, min(1_000, *benchRows-from))
		for i := range pages {
			seq := from + i
			url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", seq%1000, seq)
			row := fmt.Sprintf(`{"title":"Product %d, new","price":"%d.99","sku":"SKU-%d",`+
				`"inStock":%v,"description":%q,"_sourceUrl":%q,`+
				`"_scrapedAt":"2026-01-31T12:00:00.000Z","_jobId":%q}`, seq%5000, seq%500, seq,
				seq%3 == 0, strings.Repeat(fmt.Sprintf("words %05x ",
					seq*2654435761%100_000), 18), url, job.ID)
			pages[i] = rowstore.PageWrite{Job: job, Page: &model.Page{Job: job.ID,
				Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(),
				Outcome: model.Delivered, Status: 200, URL: url,
				PriceRow: model.Plain.PriceRow(), Quantity: 1, At: job.Started + int64(seq),
				Last: true, Rows: [][]byte{[]byte(row)}}}
		}
		if _, err := store.PutPages(b.Context(), pages); err != nil {
			b.Fatal(err)
		}
	}
	return job
}
