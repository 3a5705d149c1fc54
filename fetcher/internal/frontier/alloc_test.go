//go:build !race

package frontier

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards an item's path through the frontier: added, taken, done.
func TestAllocations(t *testing.T) {
	f, now := newFrontier(), epoch
	const hosts = 100
	for n := range 4 * hosts {
		f.Add(item(n%3, n%5, fmt.Sprint("www.host-", n%hosts, ".test"),
			Pace{Rate: 1e6, Connections: 1000}), now)
	}
	allocs.Check(t, "add, take and end", 0, func() {
		now = now.Add(time.Microsecond)
		it, _ := f.Next(now)
		f.Done(it, Answer{}, now)
		f.Add(it, now)
	})
}
