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

var benchRows = flag.Int("export-rows", 5_000, "rows that BenchmarkExport exports; from "+
	"100,000 on, it fails if an export is slower than it may be")

// judgedRows is from how many rows on ratios of speed say enough to fail.
const judgedRows = 100_000

// BenchmarkExport compares a bare scan of rows with 5 fields and 480 bytes to their export in each
// format. It also measures ClickHouse if CLICKHOUSE_URL is set, without judging it: the server's
// processor time is not seen here.
func BenchmarkExport(b *testing.B) {
	embedded, err := sqlite.Open(sqlite.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = embedded.Close() }()
	b.Run("sqlite", func(b *testing.B) { benchExport(b, embedded, *benchRows >= judgedRows) })
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
	b.Run("clickhouse", func(b *testing.B) { benchExport(b, server, false) })
}

// benchExport measures each format. If judged is set, it fails if an export is too slow both by the
// clock and by processor time. Other load disturbs the clock, and processor time says less of an
// export that works on several processors.
func benchExport(b *testing.B, store rowstore.Store, judged bool) {
	job := newBenchJob()
	putBenchRows(b, store, job, 0, *benchRows)
	upto, err := store.Horizon(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		format export.Format
		aim    float64
	}{{export.CSV, 0.7}, {export.JSONL, 0.7}, {export.Parquet, 0.5}, {export.XLSX, 0.2}} {
		b.Run(string(c.format), func(b *testing.B) {
			n := *benchRows
			if c.format == export.XLSX {
				n = min(n, sheetRows)
			}
			rows := firstRows(store, job, upto, n)
			var scan, sent spent
			// They take turns, so that both meet the same load.
			for b.Loop() {
				scan.measure(b, func() error { return scanOnly(b.Context(), rows) })
				sent.measure(b, func() error {
					return export.Write(b.Context(), io.Discard, rows,
						export.Options{Format: c.format, Disk: benchDisk{b.TempDir()}})
				})
			}
			clock := float64(scan.clock) / float64(sent.clock)
			processor := float64(scan.processor) / float64(sent.processor)
			b.ReportMetric(float64(n*b.N)/scan.clock.Seconds(), "scanned/s")
			b.ReportMetric(float64(n*b.N)/scan.processor.Seconds(), "scanned/processor-s")
			b.ReportMetric(clock, "of-scan-by-clock")
			b.ReportMetric(processor, "of-scan-by-processor")
			if judged && max(clock, processor) < c.aim {
				b.Errorf("%s has %.2f of the speed of a scan by the clock, %.2f by processor "+
					"time; the aim is %.1f", c.format, clock, processor, c.aim)
			}
		})
	}
}

// firstRows reads the first n rows of a run's group.
func firstRows(store rowstore.Store, job rowstore.Job, upto int64, n int) export.Source {
	return func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		return scanAll(ctx, store, []rowstore.Scope{{Group: job.Group}},
			rowstore.ScanQuery{Bytes: exportBytes, Upto: upto}, int64(n))
	}
}

func scanOnly(ctx context.Context, rows export.Source) error {
	for _, err := range rows(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// spent sums the time of repeated work.
type spent struct{ clock, processor time.Duration }

func (s *spent) measure(b *testing.B, work func() error) {
	b.Helper()
	began, used := time.Now(), processorTime(b)
	if err := work(); err != nil {
		b.Fatal(err)
	}
	s.clock += time.Since(began)
	s.processor += processorTime(b) - used
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
