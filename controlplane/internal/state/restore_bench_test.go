package state

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var restoredScrapers = flag.Int("restored-scrapers", 2_000,
	"scrapers in the snapshots that benchmarks read and write, ten of each customer")

// storeToRestore makes a state of customers with scrapers that share one recipe.
func storeToRestore(b *testing.B) *Store {
	s := NewStore()
	// Ids are scattered.
	id := func(kind string, n int) (id ids.ID) {
		sum := xxh3.HashString128(fmt.Sprint(kind, n)).Bytes()
		copy(id[:], sum[:])
		return id
	}
	const ofCustomer = 10
	for c := range *restoredScrapers / ofCustomer {
		err := s.Update(uint64(c+1), 1, func(tx *Tx) error {
			if c == 0 {
				tx.PutCluster(&Cluster{Version: 2})
			}
			customer, group := fmt.Sprintf("auth0|%024d", c), id("group", c)
			tx.PutCustomer(&Customer{Ref: customer})
			tx.PutWallet(&Wallet{Customer: customer})
			tx.PutGroup(&Group{ID: group, Customer: customer, Name: "Products",
				DataTable: "products", StartType: "MANUAL"})
			for n := range ofCustomer {
				scraper := id("scraper", c*ofCustomer+n)
				tx.PutRecipe(&Recipe{Scraper: scraper, Revision: 1,
					Recipe: model.Recipe{Type: model.MultipleProducts}})
				tx.PutScraper(&Scraper{ID: scraper, Customer: customer, Group: group, Revision: 1,
					CreatedAt: int64(n), Spec: model.Scraper{Name: fmt.Sprint("Products of ", n),
						Type: model.MultipleProducts}})
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkSnapshot writes a snapshot of definitions. Commands share the processors with it, so it
// should also leave no garbage.
func BenchmarkSnapshot(b *testing.B) {
	s := storeToRestore(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Snapshot().Write(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*restoredScrapers),
		"ns/scraper")
}

// BenchmarkTakeSnapshot takes a snapshot of many open runs, while commands wait.
func BenchmarkTakeSnapshot(b *testing.B) {
	const runs = 10_000
	s := NewStore()
	for n := range runs {
		run := NewRun(ids.ID{byte(n >> 8), byte(n)})
		run.Out[200] = &Out{Grant: 1}
		run.Closed.AddRange(0, 100)
		s.runs[run.Job] = run
	}
	b.ReportAllocs()
	for b.Loop() {
		if taken := s.Snapshot(); len(taken.runs) != runs {
			b.Fatalf("%d runs", len(taken.runs))
		}
	}
}

// BenchmarkRestore reads a snapshot of definitions, as a node does when it starts.
func BenchmarkRestore(b *testing.B) {
	s := storeToRestore(b)
	var snapshot bytes.Buffer
	if err := s.Snapshot().Write(&snapshot); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		restored, err := Restore(io.Reader(bytes.NewReader(snapshot.Bytes())))
		if err != nil {
			b.Fatal(err)
		}
		if restored.sum != s.sum {
			b.Fatalf("the sum is %d, want %d", restored.sum, s.sum)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*restoredScrapers),
		"ns/scraper")
}
