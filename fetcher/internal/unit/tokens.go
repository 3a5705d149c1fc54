package unit

import (
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of discoveries (specification 2.3).
const (
	MaxDiscoveries = 3 // at once
	maxTokenSets   = 1_024
)

// tokenKey names what is discovered: by a scraper's configuration, or, for build ids, by a site of
// it.
type tokenKey struct {
	scraper ids.ID
	config  uint64
	root    string // of the site; "" for configured rules
}

// tokens keeps the values that discoveries brought, in this process alone. Who finds none begins a
// discovery, or waits for the one under way.
type tokens struct {
	clock clock.Clock

	mu      sync.Mutex
	sets    *simplelru.LRU[tokenKey, tokenSet]
	flights map[tokenKey]*flight
}

type tokenSet struct {
	values  map[string]string
	expires time.Time
}

// flight is a discovery under way. Its outcome may be read once done is closed.
type flight struct {
	done   chan struct{}
	values map[string]string // nil: given up, or failed
	failed bool
}

func newTokens(clk clock.Clock) *tokens {
	return &tokens{clock: clk, sets: cache.NewLRU[tokenKey, tokenSet](maxTokenSets, nil),
		flights: map[tokenKey]*flight{}}
}

// get is nil when nothing is known. The values must not be changed.
func (t *tokens) get(key tokenKey) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known(key)
}

// known is get under the lock.
func (t *tokens) known(key tokenKey) map[string]string {
	set, known := t.sets.Get(key)
	if known && !t.clock.Now().Before(set.expires) {
		t.sets.Remove(key)
		return nil
	}
	return set.values
}

// invalidate forgets values that did not work, unless others have taken their place.
func (t *tokens) invalidate(key tokenKey, stale map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.Equal(t.known(key), stale) {
		t.sets.Remove(key)
	}
}

// join answers what is known, or the discovery under way, or a new one that the caller makes and
// lands.
func (t *tokens) join(key tokenKey) (values map[string]string, f *flight, own bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if values := t.known(key); values != nil {
		return values, nil, false
	}
	if f := t.flights[key]; f != nil {
		return nil, f, false
	}
	f = &flight{done: make(chan struct{})}
	t.flights[key] = f
	return nil, f, true
}

// land ends a discovery: with values, with none because it failed, or with none because it goes on
// later.
func (t *tokens) land(key tokenKey, f *flight, values map[string]string, failed bool,
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
