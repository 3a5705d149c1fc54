package state

import (
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// BenchmarkSum is what a command that settles a batch of a run pays for the sum: a job, a wallet and a ledger entry, each as
// it was and as it is.
func BenchmarkSum(b *testing.B) {
	s := NewStore()
	job, wallet := &Job{ID: ids.ID{1}, Customer: "customer", Success: 1000, Pages: 1000}, &Wallet{Customer: "customer", Available: 1_000_000}
	entry := &Entry{ID: ids.ID{2}, Customer: "customer", Amount: -1_000, Lines: []Line{{RowKey: "tier:plain", Pages: 1000}}}
	b.ReportAllocs()
	for b.Loop() {
		for range 2 {
			s.sum += s.summer.record("jobs", job) + s.summer.record("wallets", wallet) + s.summer.record("entries", entry)
		}
	}
}

// BenchmarkDigest is that of a state with as much out as there may be, and 1,000 runs open: once a minute.
func BenchmarkDigest(b *testing.B) {
	s := NewStore()
	for n := range 1000 {
		run := NewRun(ids.ID{byte(n), byte(n >> 8)})
		run.Closed.AddRange(0, 1_000_000)
		for seq := range uint32(66) {
			run.Out[seq] = &Out{Number: uint64(seq)}
		}
		s.runs[run.Job] = run
	}
	b.ReportAllocs()
	for b.Loop() {
		s.digest()
	}
}
