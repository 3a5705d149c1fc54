package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"shoal.dev/shoal/testkit/api"
)

// loadWorkers is the most calls of a load in flight.
const loadWorkers = 128

// apiClient keeps its connections, so that the calls are measured, not the handshakes.
func apiClient() *http.Client {
	return &http.Client{Timeout: callTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 2 * loadWorkers}}
}

// load makes calls at a steady pace. Each call's time counts from when it was due, so calls delayed
// by slow ones count as slow, too.
type load struct {
	name string
	rate int // per second
	call func(n int) error

	mu     sync.Mutex
	took   []time.Duration
	failed int
	first  error // the first error
}

// startLoads runs loads until ctx ends.
func startLoads(ctx context.Context, loads []*load) *sync.WaitGroup {
	var running sync.WaitGroup
	for _, l := range loads {
		due := make(chan int)
		began := time.Now()
		at := func(n int) time.Time {
			return began.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
		}
		running.Go(func() {
			defer close(due)
			for n := 0; ; n++ {
				timer := time.NewTimer(time.Until(at(n)))
				select {
				case <-ctx.Done():
					timer.Stop()
					return
				case <-timer.C:
				}
				select {
				case <-ctx.Done():
					return
				case due <- n:
				}
			}
		})
		for range loadWorkers {
			running.Go(func() {
				for n := range due {
					err := l.call(n)
					if ctx.Err() == nil {
						l.note(time.Since(at(n)), err)
					}
				}
			})
		}
	}
	return &running
}

func (l *load) note(took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
	if err != nil {
		if l.failed++; l.first == nil {
			l.first = err
		}
	}
}

// percentile returns the of-th percentile of the durations, and 0 if there are none.
func percentile(took []time.Duration, of int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(len(sorted)*of/100, len(sorted)-1)]
}

// tell prints how long the calls took, and fails if they took too long or some failed.
func (l *load) tell(most time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	slow := percentile(l.took, 99)
	fmt.Printf("%-7s %d a second, %d calls: half within %v, 99 in 100 within %v (at most %v), "+
		"%d failed\n", l.name, l.rate, len(l.took),
		percentile(l.took, 50).Round(10*time.Microsecond), slow.Round(10*time.Microsecond), most,
		l.failed)
	switch {
	case l.failed > 0:
		return fmt.Errorf("%s: %d failed, the first one: %w", l.name, l.failed, l.first)
	case len(l.took) == 0:
		return fmt.Errorf("%s: none was made", l.name)
	case slow > most:
		return fmt.Errorf("%s: too slow", l.name)
	}
	return nil
}

// readLoad makes reads for all customers in turn, with tokens and keys.
func (b *apiBench) readLoad(callers []caller) *load {
	paths := []string{"/api/wallet", "/api/key/whoami", "/api/notifications/unread",
		"/api/scraper/group/list"}
	b.reading = &load{name: "reads", rate: b.reads, call: func(n int) error {
		return callers[n%len(callers)].read(paths[n/len(callers)%len(paths)])
	}}
	return b.reading
}

// writeLoad creates groups, with tokens and keys.
func (b *apiBench) writeLoad(callers []caller) *load {
	b.writing = &load{name: "writes", rate: b.writes, call: func(n int) error {
		return callers[n%len(callers)].putGroup(fmt.Sprint("group ", n))
	}}
	return b.writing
}

// topUps opens each top-up with many concurrent calls under one idempotency key. They must return
// one session, and the provider must have made no other.
func (b *apiBench) topUps(ctx context.Context) error {
	began, before := time.Now(), b.outside.sessions()
	var failed error
	var mu sync.Mutex
	for n := range b.keys {
		who := b.tokens[n%len(b.tokens)].Again(api.NewKey())
		sessions := map[string]bool{}
		var copies sync.WaitGroup
		for range b.copies {
			copies.Go(func() {
				session, err := openTopUp(ctx, who)
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
				sessions[session] = true
			})
		}
		copies.Wait()
		who.HTTP.CloseIdleConnections() // a server takes fewer than they would be
		switch {
		case failed != nil:
			return fmt.Errorf("top-ups: %w", failed)
		case len(sessions) != 1:
			return fmt.Errorf("top-ups: %d sessions of one idempotency key", len(sessions))
		}
	}
	made := b.outside.sessions() - before
	fmt.Printf("top-ups %d calls under %d idempotency keys in %v: %d sessions\n",
		b.keys*b.copies, b.keys, time.Since(began).Round(time.Millisecond), made)
	if made != b.keys {
		return fmt.Errorf("top-ups: the provider made %d sessions for %d keys", made, b.keys)
	}
	return nil
}

// openTopUp makes a call, and repeats it while the same call is reported as in progress.
func openTopUp(ctx context.Context, who api.Client) (session string, err error) {
	const again = 20 * time.Millisecond
	for {
		var out struct{ SessionID string }
		err := who.Call(ctx, "POST", "/api/wallet/topup", nil, map[string]int{"amountCents": 500},
			&out)
		if api.CodeOf(err) != "idempotency_in_flight" {
			return out.SessionID, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(again):
		}
	}
}
