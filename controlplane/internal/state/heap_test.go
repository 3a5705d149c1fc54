package state

import (
	"encoding/binary"
	"runtime"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// BenchmarkHeapOfRuns measures the memory that an ended run and its entry take on a node.
func BenchmarkHeapOfRuns(b *testing.B) {
	number := func(n, kind int) (id ids.ID) {
		id[0] = byte(kind)
		binary.BigEndian.PutUint64(id[4:], uint64(n))
		return id
	}
	const scrapers = 100
	measure := func(b *testing.B, put func(*Tx, int)) {
		b.ReportAllocs()
		s := NewStore()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for n := range b.N {
			err := s.Update(uint64(n+1), 1, func(tx *Tx) error { put(tx, n); return nil })
			if err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N),
			"heap-bytes/record")
		runtime.KeepAlive(s)
	}
	customer := func(n int) string {
		return []string{"customer-a", "customer-b", "customer-c"}[n%3]
	}
	b.Run("run", func(b *testing.B) {
		measure(b, func(tx *Tx, n int) {
			tx.PutJob(&Job{ID: number(n, 1), Customer: customer(n),
				Scraper: number(n%scrapers, 2), Group: number(n%scrapers, 3),
				List: number(n, 4), State: model.Completed, Closed: true, Queued: int64(n),
				Started: int64(n), Finished: int64(n), Entry: number(n, 5)})
		})
	})
	b.Run("entry", func(b *testing.B) {
		measure(b, func(tx *Tx, n int) {
			tx.PutEntry(&Entry{ID: number(n, 5), Customer: customer(n), Type: EntryCharge,
				Status: EntrySettled, Scraper: number(n%scrapers, 2),
				Group: number(n%scrapers, 3), Job: number(n, 1), Created: uint64(n),
				Lines: []Line{{RowKey: "DATA_SCRAPING", Label: "Data scraping", Pages: 1,
					UnitPrice: 400, Amount: -400}}})
		})
	})
}
