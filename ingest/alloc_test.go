//go:build !race

package ingest

import (
	"testing"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards the completion of a page's row.
func TestAllocations(t *testing.T) {
	row := []byte(`{"title":"A thing","price":"12.00","sku":"A-1","inStock":true,"image":"/a.png"}`)
	job := rowstore.Job{ID: id(1), Scraper: id(2)}
	rows := make([][]byte, 1)
	allocs.Check(t, "complete a row", 2, func() {
		rows[0] = row
		p := model.Page{URL: "http://site-1.test/product/17", At: 1, Rows: rows}
		completeRows(&p, job)
	})
}
