package state

import (
	"encoding/binary"
	"flag"
	"runtime"
	"syscall"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var stateBytes = flag.Int64("state-mb", 16, "megabytes of memory that the state of "+
	"BenchmarkLargeState has")

// BenchmarkSum measures the sum's cost for a command that settles a batch of a run. It sums a job,
// a wallet and a ledger entry, each before and after.
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

// BenchmarkDigest measures a digest, taken once a minute, with 1,000 open runs and the largest out
// set.
func BenchmarkDigest(b *testing.B) {
	s := NewStore()
	openRuns(s)
	b.ReportAllocs()
	for b.Loop() {
		s.digest()
	}
}

// BenchmarkLargeState settles a batch of a run in a state of -state-mb, including sums. Sum is the
// share of the sums, and Digest the cost of each minute's digest. It counts CPU time, since other
// work may delay the clock. Sums of full batches and digests together may take 1% of a leader.
func BenchmarkLargeState(b *testing.B) {
	s := NewStore()
	records := s.fill(b, *stateBytes<<20)
	openRuns(s)
	at := func(n uint32) (job Job, entry Entry) {
		return *s.View().Job(recordID(1, n%records)), *s.View().Entry(recordID(4, n%records))
	}
	var settle, sum, digest time.Duration
	b.Run("Settle", func(b *testing.B) {
		n := uint32(0)
		settle = perCommand(b, func() {
			err := s.Update(uint64(records+2), 1, func(tx *Tx) error {
				job, entry := at(n)
				job.Pages++
				entry.Amount--
				tx.PutJob(&job)
				tx.PutEntry(&entry)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			n += 7_919
		})
		b.ReportMetric(float64(heapInUse())/(1<<20), "MB")
	})
	b.Run("Sum", func(b *testing.B) {
		n := uint32(0)
		sum = perCommand(b, func() {
			job, entry := at(n)
			for range 2 { // before and after
				s.sum += s.summer.record(&jobsTable.kind, &job) +
					s.summer.record(&entriesTable.kind, &entry)
			}
			n += 7_919
		})
	})
	b.Run("Digest", func(b *testing.B) { digest = perCommand(b, func() { s.digest() }) })
	const pages, perPage = 1_000, 43 * time.Microsecond // of a full batch (deploy/CAPACITY.md)
	share := float64(sum)/float64(settle+pages*perPage) + float64(digest)/float64(time.Minute)
	if b.ReportMetric(100*share, "%"); share > 0.01 {
		b.Errorf("sums and digests take %.2f%% of a leader", 100*share)
	}
}

// perCommand measures the CPU time of do.
func perCommand(b *testing.B, do func()) time.Duration {
	b.Helper()
	begun := processorTime(b)
	for b.Loop() {
		do()
	}
	each := (processorTime(b) - begun) / time.Duration(b.N)
	b.ReportMetric(float64(each.Nanoseconds()), "cpu-ns/op")
	return each
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// heapInUse returns the memory in use.
func heapInUse() int64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

func recordID(kind byte, n uint32) (id ids.ID) {
	id[0] = kind
	binary.BigEndian.PutUint32(id[4:], n)
	return id
}

// fill adds jobs with entries to an empty state until it takes a number of bytes, and returns how
// many. It measures the memory only a few times.
func (s *Store) fill(b *testing.B, bytes int64) (records uint32) {
	b.Helper()
	begun := heapInUse()
	for want := uint32(10_000); ; {
		for ; records < want; records += 1_000 {
			err := s.Update(uint64(records+1), 1, func(tx *Tx) error {
				for n := records; n < records+1_000; n++ {
					tx.PutJob(&Job{ID: recordID(1, n), Customer: "customer",
						Group: recordID(2, n/1_000), Scraper: recordID(3, n/10),
						Entry: recordID(4, n), Success: 1_000})
					tx.PutEntry(&Entry{ID: recordID(4, n), Customer: "customer", Amount: -1_000,
						Lines: []Line{{RowKey: "tier:plain", Pages: 1_000}}})
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		took := heapInUse() - begun
		if took >= bytes {
			return records
		}
		want += max(10_000, uint32(float64(bytes-took)*float64(records)/float64(took)))
	}
}

// openRuns adds the most open runs, with the largest out set.
func openRuns(s *Store) {
	for n := range 1000 {
		run := NewRun(ids.ID{byte(n), byte(n >> 8)})
		run.Closed.AddRange(0, 1_000_000)
		for seq := range uint32(66) {
			run.Out[seq] = &Out{Number: uint64(seq), Chain: Chain{Start: 1,
				From: &model.Continuation{Page: 1, URL: "https://shop.example/lamps?page=2",
					Seen: make([]uint64, model.MaxSeen)}}}
		}
		s.runs[run.Job] = run
	}
}
