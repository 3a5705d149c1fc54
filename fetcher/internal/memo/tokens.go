package memo

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

const maxTokenSets = 1_024

// TokenKey identifies discovered values: by a scraper's configuration or, for build ids, by one of
// its sites.
type TokenKey struct {
	Scraper ids.ID
	Config  uint64
	Root    string // of the site; "" for configured rules
}

// Tokens caches discovered values, in this process only. Callers that find none start a discovery
// or wait for one under way.
type Tokens struct {
	clock clock.Clock

	mu      sync.Mutex
	sets    *simplelru.LRU[TokenKey, tokenSet]
	flights map[TokenKey]*Flight
}

type tokenSet struct {
	values  map[string]string
	expires time.Time
}

// Flight is a discovery under way.
type Flight struct {
	done   chan struct{} // closed when it has landed
	values map[string]string
	failed bool
}

// Await waits until a discovery has landed. There are no values if it failed or goes on later. The
// error is ctx's.
func (f *Flight) Await(ctx context.Context) (values map[string]string, failed bool, err error) {
	select {
	case <-f.done:
		return f.values, f.failed, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// NewTokens returns an empty cache.
func NewTokens(clk clock.Clock) *Tokens {
	return &Tokens{clock: clk,
		sets:    cache.NewLRU[TokenKey, tokenSet](maxTokenSets, nil),
		flights: map[TokenKey]*Flight{}}
}

// Get returns the values, nil if none are known. They must not be changed.
func (t *Tokens) Get(key TokenKey) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.getLocked(key)
}

func (t *Tokens) getLocked(key TokenKey) map[string]string {
	set, known := t.sets.Get(key)
	if known && !t.clock.Now().Before(set.expires) {
		t.sets.Remove(key)
		return nil
	}
	return set.values
}

// Invalidate removes values that did not work, unless they have been replaced.
func (t *Tokens) Invalidate(key TokenKey, stale map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.Equal(t.getLocked(key), stale) {
		t.sets.Remove(key)
	}
}

// Join returns known values, or a discovery under way, or a new one. The caller must make and land
// the new one.
func (t *Tokens) Join(key TokenKey) (values map[string]string, f *Flight, own bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if values := t.getLocked(key); values != nil {
		return values, nil, false
	}
	if f := t.flights[key]; f != nil {
		return nil, f, false
	}
	f = &Flight{done: make(chan struct{})}
	t.flights[key] = f
	return nil, f, true
}

// Land ends a discovery. It has values, or none because it failed or goes on later.
func (t *Tokens) Land(key TokenKey, f *Flight, values map[string]string, failed bool,
	ttl time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flights, key)
	f.values, f.failed = values, failed
	close(f.done)
	if values == nil {
		return
	}
	t.sets.Add(key, tokenSet{values, t.clock.Now().Add(ttl)})
}
