package data

import (
	"context"
	"encoding/json"
	"flag"
	"iter"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

var memoryRows = flag.Int("memory-rows", 40_000,
	"rows of the larger export of TestMemoryOfExports; a night takes 1,000,000")

// TestMemoryOfExports exports a tenth of the rows, then all of them. Both must stay within the same
// bound of memory.
func TestMemoryOfExports(t *testing.T) {
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	job := newBenchJob()
	putBenchRows(t, store, job, 0, *memoryRows)
	upto, err := store.Horizon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for format, bound := range map[export.Format]uint64{export.CSV: 4 << 20, export.JSONL: 4 << 20,
		export.XLSX: 4 << 20, export.Parquet: 16 << 20} {
		most := *memoryRows
		if format == export.XLSX {
			most = min(most, sheetRows)
		}
		for _, n := range []int{most / 10, most} {
			runtime.GC() // with inUse, twice: then pools keep nothing of the export before
			before := inUse()
			watch := &heapWatch{every: 1 + n/10_000}
			if err := export.Write(t.Context(), watch, watch.each(firstRows(store, job, upto, n)),
				export.Options{Format: format, Disk: benchDisk{t.TempDir()}}); err != nil {
				t.Fatal(err)
			}
			took := max(watch.most, before) - before
			t.Logf("%s: %d rows take %d KiB", format, n, took>>10)
			if took > bound {
				t.Errorf("%s: %d rows take %d bytes of memory, more than %d", format, n, took, bound)
			}
		}
	}
}

// heapWatch records the most memory that was in use as parts of rows came and parts of a file went.
type heapWatch struct {
	every int // it looks at every so manieth part
	mu    sync.Mutex
	parts int
	most  uint64
}

// Write implements io.Writer.
func (w *heapWatch) Write(p []byte) (int, error) {
	w.look()
	return len(p), nil
}

// each passes rows on.
func (w *heapWatch) each(rows export.Source) export.Source {
	return func(ctx context.Context) iter.Seq2[[]json.RawMessage, error] {
		return func(yield func([]json.RawMessage, error) bool) {
			for part, err := range rows(ctx) {
				if w.look(); !yield(part, err) {
					return
				}
			}
		}
	}
}

func (w *heapWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parts++; w.parts%w.every == 0 {
		w.most = max(w.most, inUse())
	}
}

// inUse is the heap in use without garbage, which depends on the collector's pace.
func inUse() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
