//go:build !race

package fetcher

import (
	"testing"

	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards the cost of a page besides its exchange, including the task that the test
// makes.
func TestAllocations(t *testing.T) {
	l := newPageLoop(t)
	l.run(t, 5000)       // every host is known, every buffer has grown
	const pages = 20_000 // between processes they vary from 27.5 to 29.7
	allocs.CheckEach(t, "task to page", 28.5, pages, func() { l.run(t, pages) })
}
