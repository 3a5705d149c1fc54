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

// TokenKey names what is discovered: by a scraper's configuration, or, for build ids, by a site of
// it.
type TokenKey struct {
	Scraper ids.ID
	Config  uint64
	Root    string // of the site; "" for configured rules
}

// Tokens keeps the values that discoveries brought, in this process alone. Who finds none begins a
// discovery, or waits for the one under way.
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

// Await waits until a discovery has landed. It has no values when it failed, or goes on later. The
// error is ctx's.
func (f *Flight) Await(ctx context.Context) (values map[string]string, failed bool, err error) {
	select {
	case <-f.done:
		return f.values, f.failed, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// NewTokens keeps no values yet.
func NewTokens(clk clock.Clock) *Tokens {
	return &Tokens{clock: clk,
		sets:    cache.NewLRU[TokenKey, tokenSet](maxTokenSets, nil),
		flights: map[TokenKey]*Flight{}}
}

// Get is nil when nothing is known. The values must not be changed.
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

// Invalidate forgets values that did not work, unless others have taken their place.
func (t *Tokens) Invalidate(key TokenKey, stale map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.Equal(t.getLocked(key), stale) {
		t.sets.Remove(key)
	}
}

// Join answers what is known, or the discovery under way, or a new one that the caller makes and
// lands.
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

// Land ends a discovery: with values, with none because it failed, or with none because it goes on
// later.
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
