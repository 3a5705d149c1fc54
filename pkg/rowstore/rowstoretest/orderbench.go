package rowstoretest

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/rowstore"
)

// BenchOrder measures pages of 1,000 rows in the order of some fields, and pages as large as an
// export's.
func BenchOrder(b *testing.B, store rowstore.Store, scope rowstore.Scope, fields ...string) {
	horizon, err := store.Horizon(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, field := range fields {
		for _, limit := range []int{1_000, rowstore.MaxOrdered} {
			b.Run(fmt.Sprintf("%s/%d", field, limit), func(b *testing.B) {
				b.ReportAllocs()
				q := rowstore.OrderQuery{Scopes: []rowstore.Scope{scope}, Upto: horizon,
					Sort: rowstore.Sort{Field: field}, Limit: limit}
				for b.Loop() {
					found, err := store.Order(b.Context(), q)
					if err != nil {
						b.Fatal(err)
					}
					if q.After = nil; len(found) == limit {
						q.After = &found[limit-1]
					}
					var places []int64
					for _, row := range found[:min(limit, len(found), rowstore.MaxAt)] {
						places = append(places, row.Place)
					}
					if _, _, err := store.At(b.Context(), q.Scopes, places, 4<<20); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
