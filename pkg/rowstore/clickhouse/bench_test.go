package clickhouse_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// batch makes pages of one row, as a list run brings them.
func batch(source *ids.Sequence, job rowstore.Job, from, count int) []rowstore.PageWrite {
	pages := make([]rowstore.PageWrite, count)
	for i := range pages {
		seq := from + i
		url := fmt.Sprintf("https://host-%d.example.test/products/item-%d", seq%1000, seq)
		row := fmt.Sprintf(`{"title":"Product %d","price":"%d.99","sku":"SKU-%d","brand":"Brand %d","rating":%d.5,`+
			`"inStock":%v,"description":%q,"_sourceUrl":%q,"_scrapedAt":"2026-01-31T12:00:00.000Z","_jobId":%q,`+
			`"_scraperJobStatusId":%q,"_scraperId":%q}`, seq%5000, seq%500, seq, seq%97, seq%5, seq%3 == 0,
			strings.Repeat(fmt.Sprintf("words %x ", seq*2654435761%100_000), 10), url, job.ID, job.ID, job.Scraper)
		pages[i] = rowstore.PageWrite{Job: job, Page: &model.Page{
			Job: job.ID, Unit: model.Unit{Seq: uint32(seq)}, Fetch: source.New(), Outcome: model.Delivered, Status: 200,
			URL: url, PriceRow: "tier:plain", Quantity: 1, Tries: []model.Try{{Status: 200, Millis: 40}}, Bytes: 20_000,
			Millis: 41, At: 1_700_000_000_000_000 + int64(seq), Last: true, Rows: [][]byte{[]byte(row)},
		}}
	}
	return pages
}

func openB(b *testing.B) *clickhouse.Store {
	store := open(b, clickhouse.Config{Database: database(b)})
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// BenchmarkPutPages gives the time of one page record with one row.
func BenchmarkPutPages(b *testing.B) {
	for _, size := range []int{1, 500, 2_000, 20_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			store, source := openB(b), &ids.Sequence{}
			job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New(), Started: 1}
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
