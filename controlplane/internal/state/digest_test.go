package state

import (
	"encoding/binary"
	"flag"
	"runtime"
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

var stateBytes = flag.Int64("state-mb", 16, "megabytes of memory that the state of "+
	"BenchmarkLargeState has")

// BenchmarkSum is what a command that settles a batch of a run pays for the sum. It covers a job, a
// wallet and a ledger entry, each as it was and as it is.
func BenchmarkSum(b *testing.B) {
	s := NewStore()
	job, wallet := &Job{ID: ids.ID{1}, Customer: "customer", Success: 1000, Pages: 1000},
		&Wallet{Customer: "customer", Available: 1_000_000}
	entry := &Entry{ID: ids.ID{2}, Customer: "customer", Amount: -1_000,
		Lines: []Line{{RowKey: "tier:plain", Pages: 1000}}}
	b.ReportAllocs()
	for b.Loop() {
		for range 2 {
			s.sum += s.summer.record(&jobsTable.kind, job) +
				s.summer.record(&walletsTable.kind, wallet) +
				s.summer.record(&entriesTable.kind, entry)
		}
	}
}

// BenchmarkDigest is that of a state with as much out as there may be, and 1,000 runs open: once a
// minute.
func BenchmarkDigest(b *testing.B) {
	s := NewStore()
	openRuns(s)
	b.ReportAllocs()
	for b.Loop() {
		s.digest()
	}
}

// BenchmarkLargeState settles a batch of a run in a state of -state-mb, sums and all. Digest is
// what the first command of each minute pays there.
func BenchmarkLargeState(b *testing.B) {
	s := NewStore()
	stats := func() int64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return int64(memory.HeapAlloc)
	}
	id := func(kind byte, n uint32) (id ids.ID) {
		id[0] = kind
		binary.BigEndian.PutUint32(id[4:], n)
		return id
	}
	records := uint32(0)
	for begun := stats(); records%10_000 != 0 || stats()-begun < *stateBytes<<20; records += 1_000 {
		err := s.Update(uint64(records+1), 1, func(tx *Tx) error {
			for n := records; n < records+1_000; n++ {
				tx.PutJob(&Job{ID: id(1, n), Customer: "customer", Group: id(2, n/1_000),
					Scraper: id(3, n/10), Entry: id(4, n), Success: 1_000})
				tx.PutEntry(&Entry{ID: id(4, n), Customer: "customer", Amount: -1_000,
					Lines: []Line{{RowKey: "tier:plain", Pages: 1_000}}})
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	openRuns(s)
	settle := func(n uint32) error {
		return s.Update(uint64(records+2), 1, func(tx *Tx) error {
			job, entry := *tx.Job(id(1, n%records)), *tx.Entry(id(4, n%records))
			job.Pages++
			entry.Amount--
			tx.PutJob(&job)
			tx.PutEntry(&entry)
			return nil
		})
	}
	b.Run("Settle", func(b *testing.B) {
		for n := uint32(0); b.Loop(); n += 7_919 {
			if err := settle(n); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(stats())/(1<<20), "MB")
	})
	b.Run("Digest", func(b *testing.B) {
		for b.Loop() {
			s.digest()
		}
	})
}

// openRuns are as many as there may be, with as much out as there may be.
func openRuns(s *Store) {
	for n := range 1000 {
		run := NewRun(ids.ID{byte(n), byte(n >> 8)})
		run.Closed.AddRange(0, 1_000_000)
		for seq := range uint32(66) {
			run.Out[seq] = &Out{Number: uint64(seq)}
		}
		s.runs[run.Job] = run
	}
}
