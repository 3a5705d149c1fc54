package sqlite_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

func openB(b *testing.B) *sqlite.Store {
	store, err := sqlite.Open(sqlite.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// batch makes pages of one row, as the run of a list brings them.
func batch(source *ids.Sequence, job rowstore.Job, from, count int) []rowstore.PageWrite {
	pages := make([]rowstore.PageWrite, count)
	for i := range pages {
		seq := from + i
		url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", seq%1000, seq)
		row := fmt.Sprintf(`{"_jobId":%q,"_sourceUrl":%q,"_scrapedAt":"2026-01-31T12:00:00Z","_rowId":%q,"title":"Product %d","price":"%d.99",`+
			`"sku":"SKU-%d","description":%q}`, job.ID, url,
			model.RowID{Job: job.ID, Unit: model.Unit{Seq: uint32(seq)}}, seq, seq%500, seq,
			strings.Repeat("words ", 40))
		hash := sha256.Sum256([]byte(url))
		pages[i] = rowstore.PageWrite{Job: job, Page: &model.Page{
			Job: job.ID, Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(),
			Outcome: model.Delivered, Status: 200,
			URL: url, PriceRow: "tier:plain", Quantity: 1,
			Tries: []model.Try{{Status: 200, Millis: 40}}, Bytes: 20_000,
			Millis: 41, At: 1_700_000_000_000_000 + int64(seq), Last: true,
			Rows: [][]byte{[]byte(row)}, BodyHash: hash[:],
		}}
	}
	return pages
}

// BenchmarkPutPages measures one page record with one row.
func BenchmarkPutPages(b *testing.B) {
	for _, size := range []int{500, 2000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			store, source := openB(b), &ids.Sequence{}
			job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New()}
			for seq := 0; seq < b.N; seq += size {
				b.StopTimer()
				pages := batch(source, job, seq, min(size, b.N-seq))
				b.StartTimer()
				if _, err := store.PutPages(context.Background(), pages); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPutChain measures one page, with one row, of 100 chains whose pages come in order. It
// must not grow with the length of the chains.
func BenchmarkPutChain(b *testing.B) {
	store, source := openB(b), &ids.Sequence{}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New()}
	const chains = 100
	for n := 0; n < b.N; n += chains {
		b.StopTimer()
		pages := batch(source, job, 0, chains)
		for i := range pages {
			pages[i].Page.Unit.Page, pages[i].Page.Last = uint32(n/chains), false
		}
		b.StartTimer()
		if _, err := store.PutPages(context.Background(), pages); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIntake measures one link.
func BenchmarkIntake(b *testing.B) {
	store, source := openB(b), &ids.Sequence{}
	w, err := store.CreateList(context.Background(), source.New())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", i%1000, i)
		if _, err := w.Add(context.Background(), url, url); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Finish(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReads reads a group of 2,000 rows in four jobs, 20 rows at a time.
func BenchmarkReads(b *testing.B) {
	store, source := openB(b), &ids.Sequence{}
	group, scraper := source.New(), source.New()
	for job := range 4 {
		of := rowstore.Job{ID: source.New(), Group: group, Scraper: scraper}
		if _, err := store.PutPages(b.Context(), batch(source, of, job*500, 500)); err != nil {
			b.Fatal(err)
		}
	}
	node, err := filter.Parse([]byte(`{"sku":"SKU-123"}`))
	if err != nil {
		b.Fatal(err)
	}
	all := rowstore.Scope{Group: group}
	for _, read := range []struct {
		name string
		read func(ctx context.Context) error
	}{
		{"horizon", func(ctx context.Context) error { _, err := store.Horizon(ctx); return err }},
		{"cursor", func(ctx context.Context) error {
			_, _, err := store.Scan(ctx,
				rowstore.ScanQuery{Scope: all, After: 1_000, Upto: 2_000, Limit: 20})
			return err
		}},
		{"page", func(ctx context.Context) error {
			_, err := store.Rows(ctx, rowstore.RowsQuery{Scope: all, Limit: 20})
			return err
		}},
		{"page, filtered", func(ctx context.Context) error {
			_, err := store.Rows(ctx, rowstore.RowsQuery{Scope: all, Filter: node, Limit: 20})
			return err
		}},
		{"count", func(ctx context.Context) error {
			_,
				err := store.Count(ctx, all, nil)
			return err
		}},
		{"count, filtered", func(ctx context.Context) error {
			_,
				err := store.Count(ctx, all, node)
			return err
		}},
	} {
		b.Run(read.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context()) // cancelable, like a call's
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				if err := read.read(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The history that BenchmarkPast reads.
var (
	benchPast     = flag.Int("bench-past", 10_000, "runs of the history")
	benchPastEach = flag.Int("bench-past-each", 1_000, "runs of a customer")
)

func BenchmarkPast(b *testing.B) {
	store, err := sqlite.Open(sqlite.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	rowstoretest.BenchPast(b, store, *benchPast, *benchPastEach)
}

var benchOrder = flag.Int("bench-order", 20_000, "rows of the group that BenchmarkOrder reads")

// BenchmarkOrder reads a group of one job in the order of a number and of a text.
func BenchmarkOrder(b *testing.B) {
	store, source := openB(b), &ids.Sequence{}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New()}
	for from := 0; from < *benchOrder; from += 2_000 {
		if _, err := store.PutPages(b.Context(),
			batch(source, job, from, min(2_000, *benchOrder-from))); err != nil {
			b.Fatal(err)
		}
	}
	rowstoretest.BenchOrder(b, store, rowstore.Scope{Group: job.Group}, "price", "title")
}
