//go:build !race

package page

import (
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards page → row on the page of the project's figures.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name     string
		recorded float64
		absent   bool
	}{
		{"five fields", 3, false},
		{"five fields and one that is missing", 3, true},
	} {
		e, err := extract.Compile(model.Recipe{Type: model.SingleProduct, Fields: Fields(c.absent)})
		if err != nil {
			t.Fatal(err)
		}
		p := extract.Page{URL: "http://shop.example/p/12345",
			ContentType: "text/html; charset=utf-8", Body: HTML()}
		allocs.Check(t, c.name, c.recorded, func() {
			if got, err := e.Extract(p); err != nil || len(got.Rows) != 1 {
				t.Fatalf("%d rows, %v", len(got.Rows), err)
			}
		})
	}
}
