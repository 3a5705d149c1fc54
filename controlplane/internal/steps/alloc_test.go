//go:build !race

package steps_test

import (
	"testing"

	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards the control plane's own work per page, including the test's work for its
// list and receipts.
func TestAllocations(t *testing.T) {
	const links = 100_000
	l := newLoop(t, links)
	allocs.CheckEach(t, "plan, window, publish, settle", 16.8, links, func() { l.run(t) })
}
