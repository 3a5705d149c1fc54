//go:build !race

package egress

import (
	"testing"
	"time"

	"shoal.dev/shoal/testkit/allocs"
)

// TestAllocations guards one exchange over a kept connection, including the test's server.
func TestAllocations(t *testing.T) {
	c := newClient(t, Config{Origins: map[string]string{"*.example": benchServer(t)}})
	exchange := func() {
		resp, err := c.Do(t.Context(),
			&Request{URL: "http://shop.example/p/12345",
				Deadline: time.Now().Add(10 * time.Second)})
		if err != nil || resp.Status != 200 {
			t.Fatal(resp, err)
		}
		resp.Release()
	}
	allocs.Check(t, "exchange", 5, exchange)
}
