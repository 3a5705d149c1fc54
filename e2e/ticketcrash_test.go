package e2e

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// ticket gets a ticket, however often the process dies.
func (c *crashCase) ticket() string {
	c.T.Helper()
	var issued struct{ Ticket string }
	c.survive("ticket", func(ctx context.Context) error {
		return c.Call(ctx, "POST", "/api/events/ticket", nil, nil, &issued)
	})
	return issued.Ticket
}

// take opens a stream with a ticket, and returns the status; 0: no answer.
func (c *crashCase) take(ctx context.Context, server, ticket string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		server+"/api/events/stream?"+url.Values{"ticket": {ticket}}.Encode(), nil)
	if err != nil {
		c.T.Error(err)
		return 0
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestCrashesOfTickets kills the process while tickets of the portal's stream are issued and taken.
// An issued but untaken ticket is valid once afterwards. A taken one is not valid again, and
// neither is one that two clients tried when the process died.
func TestCrashesOfTickets(t *testing.T) {
	t.Parallel()
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1, PageBytes: []int{2500}})
	args := append(suite.Fast(), "--no-rate-limits", "--raft-snapshot-entries", "10")
	c := &crashCase{service: &service{single: newSingle(t, args, web)}}
	c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
	c.bring()
	torn, opened := 0, 0
	for round := range 8 {
		began := time.Now()
		kept, taken, fought := c.ticket(), c.ticket(), c.ticket()
		if got := c.take(t.Context(), c.Server, taken); got != http.StatusOK {
			t.Fatalf("a new ticket is answered %d", got)
		}
		var mu sync.Mutex
		good := 0
		var takers sync.WaitGroup
		begun := make(chan struct{}, 2)
		for range 2 {
			takers.Go(func() {
				begun <- struct{}{}
				got := c.take(t.Context(), c.Server, fought)
				mu.Lock()
				defer mu.Unlock()
				if got == http.StatusOK {
					good++
				} else if got == 0 {
					torn++
				}
			})
		}
		if round%2 == 0 {
			<-begun // otherwise as soon as both have connected
		}
		c.kill()
		takers.Wait()
		c.bring()
		for range 2 {
			if c.take(t.Context(), c.Server, fought) == http.StatusOK {
				good++
			}
		}
		if opened += good; good > 1 {
			t.Errorf("round %d: one ticket opened %d streams", round, good)
		}
		var got [3]int
		for i, ticket := range []string{kept, kept, taken} {
			got[i] = c.take(t.Context(), c.Server, ticket)
		}
		want := [3]int{http.StatusOK, http.StatusUnauthorized, http.StatusUnauthorized}
		if time.Since(began) > 50*time.Second { // a ticket is valid for one minute
			want[0] = got[0]
		}
		if got != want {
			t.Errorf("round %d: kept, again, taken: %v", round, got)
		}
	}
	t.Logf("%d calls were cut off, and %d of 8 tickets that were fought for opened a "+
		"stream", torn, opened)
}
