package rowstoretest

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// The customers of BenchPast.
const (
	pastScrapers    = 16
	pastBodyBytes   = 180
	pastEntryBytes  = 160
	pastPage        = 20
	pastRunsAtOnce  = rowstore.MaxPast
	pastMillisApart = 60_000
)

// BenchPast measures reads of a history of runs, each run with its entry and each customer with the
// same number of runs. It reads the newest page, a middle one, a run by its id, and the ledger.
func BenchPast(b *testing.B, store rowstore.Store, runs, each int) {
	b.Helper()
	generation := ids.ID{1}
	path := whole(generation)
	customers := max(runs/each, 1)
	customer := func(n int) string { return fmt.Sprintf("auth0|%024d", n) }
	var some []rowstore.PastRun
	var made []rowstore.PastRun
	var entries []rowstore.PastEntry
	for n := range runs {
		at := int64(1_700_000_000_000 + n/customers*pastMillisApart)
		of := n % customers
		run := rowstore.PastRun{ID: pastID(1, n), Generation: generation, Sealed: uint64(n + 1),
			Customer: customer(of), PastKind: rowstore.PastKind{Group: pastID(2, of),
				Scraper: pastID(3, of*pastScrapers+n/customers%pastScrapers), State: "COMPLETED"},
			List: pastID(4, n), Queued: at, Started: at + 5, Finished: at + 1_000, Links: 20,
			Success: 20, Items: 200, Pages: 20, Delivered: 20, Charged: 3_000,
			Body: make([]byte, pastBodyBytes)}
		made = append(made, run)
		entries = append(entries, rowstore.PastEntry{ID: pastID(5, n), Generation: generation,
			Sealed: uint64(n + 1), Customer: customer(of), Created: uint64(n + 1),
			Body: make([]byte, pastEntryBytes)})
		if n%(runs/100+1) == 0 {
			some = append(some, run)
		}
		if len(made) == pastRunsAtOnce || n == runs-1 {
			if err := store.PutPast(b.Context(), made, entries); err != nil {
				b.Fatal(err)
			}
			made, entries = made[:0], entries[:0]
		}
	}
	page := func(b *testing.B, n, offset int) {
		q := rowstore.PastQuery{Path: path, Customer: customer(n % customers),
			By: rowstore.ByStarted, Descending: true, Offset: offset, Limit: pastPage}
		found, err := store.PastRuns(b.Context(), q)
		if err == nil && len(found) == pastPage {
			_, err = store.CountPast(b.Context(), path, q.Customer,
				rowstore.PastSpan{})
		}
		if err != nil || len(found) != pastPage {
			b.Fatalf("%d runs: %v", len(found), err)
		}
	}
	for name, read := range map[string]func(b *testing.B, n int){
		"newest": func(b *testing.B, n int) { page(b, n, 0) },
		"later":  func(b *testing.B, n int) { page(b, n, each/2) },
		"one": func(b *testing.B, n int) {
			found, err := store.PastRuns(b.Context(), rowstore.PastQuery{Path: path, Trials: true,
				IDs: []ids.ID{some[n%len(some)].ID}, By: rowstore.BySealed, Limit: 1})
			if err != nil || len(found) != 1 {
				b.Fatalf("%d runs: %v", len(found), err)
			}
		},
		"ledger": func(b *testing.B, n int) {
			found, err := store.PastEntries(b.Context(), rowstore.PastEntriesQuery{Path: path,
				Customers: []string{customer(n % customers)}, Offset: each / 2, Limit: pastPage})
			if err != nil || len(found) != pastPage {
				b.Fatalf("%d entries: %v", len(found), err)
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				read(b, n*7)
			}
		})
	}
}

// pastID returns an id of a kind by its number, scattered like real ids.
func pastID(kind byte, n int) (id ids.ID) {
	copy(id[:], fmt.Sprintf("%c%011x", kind, uint64(n+1)*0x9E3779B97F4A7C15>>20))
	return id
}
