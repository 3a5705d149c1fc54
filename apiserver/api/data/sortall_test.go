package data

import (
	"encoding/json"
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// TestSortAllGoesOn: a sorted file with more rows than are ordered at once has each row once.
func TestSortAllGoesOn(t *testing.T) {
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	job := newBenchJob()
	const atOnce, rows = 500, 1_734
	page := &model.Page{Job: job.ID, Fetch: job.ID, Outcome: model.Delivered,
		URL: "https://x.test/", PriceRow: model.Plain.PriceRow(), Quantity: 1, Last: true}
	for n := range rows { // 7919 and the number of rows are coprime
		page.Rows = append(page.Rows, fmt.Appendf(nil, `{"n":%d}`, n*7919%rows/2))
	}
	if _, err := store.PutPages(t.Context(), []rowstore.PageWrite{{Job: job,
		Page: page}}); err != nil {
		t.Fatal(err)
	}
	upto, err := store.Horizon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{0, 10, atOnce, atOnce + 1, rows + 1} {
		n := int64(0)
		for docs, err := range sortAll(t.Context(), store, rowstore.OrderQuery{
			Scopes: []rowstore.Scope{{Group: job.Group}}, Sort: rowstore.Sort{Field: "n"},
			Upto: upto, Limit: atOnce}, exportBytes, most) {
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range docs {
				var row struct{ N int64 }
				if err := json.Unmarshal(doc, &row); err != nil || row.N != n/2 {
					t.Fatalf("row %d of %d is %s: %v", n, most, doc, err)
				}
				n++
			}
		}
		want := int64(rows)
		if most > 0 {
			want = min(rows, most)
		}
		if n != want {
			t.Errorf("%d rows of at most %d, want %d", n, most, want)
		}
	}
}
