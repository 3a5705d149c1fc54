//go:build !race

package fetcher

import (
	"testing"

	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards what a page costs beside its exchange, the task that the test makes for it
// included.
func TestAllocations(t *testing.T) {
	l := newPageLoop(t)
	l.run(t, 5000)       // every host has been seen, every buffer has grown
	const pages = 20_000 // from one process to another they take 27.5 to 29.7
	allocs.CheckEach(t, "task to page", 29, pages, func() { l.run(t, pages) })
}
