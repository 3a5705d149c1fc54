//go:build !race

package sqlite_test

import (
	"context"
	"testing"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards the cost of storing a page of one row, in batches like those of ingest.
func TestAllocations(t *testing.T) {
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	source := &ids.Sequence{}
	job := rowstore.Job{ID: source.New(), Group: source.New(), Scraper: source.New()}
	const size = 1000
	put := func(pages []rowstore.PageWrite) {
		if _, err := store.PutPages(context.Background(), pages); err != nil {
			t.Fatal(err)
		}
	}
	put(batch(source, job, 0, size)) // statements are prepared once
	pages := batch(source, job, size, size)
	allocs.CheckEach(t, "store a page", 11.7, size, func() { put(pages) })
}
