package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"shoal.dev/shoal/pkg/clock"
)

// Bounds of a Local; the buckets take some 20 MB. The least recently used goes first. Dropping a
// full bucket loses nothing, since an unknown bucket is full.
const (
	maxBuckets    = 100_000
	maxValues     = 65_536
	maxValueBytes = 64 << 20 // of all values together
)

// Local is the Cache of one process. It has no goroutines.
type Local struct {
	clock        clock.Clock
	hits, misses atomic.Uint64

	mu      sync.Mutex
	buckets *simplelru.LRU[string, *bucket]
	rooms   map[string]int // places taken
	values  *Sized[string, *value]
}

var _ Cache = (*Local)(nil)

type bucket struct {
	limit  Limit
	tokens *rate.Limiter
}

type value struct {
	bytes   []byte
	expires time.Time
}

// NewLocal makes an empty cache.
func NewLocal(c clock.Clock) *Local {
	return &Local{clock: c, rooms: map[string]int{},
		buckets: NewLRU[string, *bucket](maxBuckets, nil),
		values:  NewSized[string, *value](maxValues, maxValueBytes)}
}

// TakeCall implements Limiter.
func (l *Local) TakeCall(_ context.Context, name string, limit Limit) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	b := l.bucket(bounded(name), limit, now)
	allowed := b.tokens.AllowN(now, 1)
	return limit.verdict(allowed, b.tokens.TokensAt(now))
}

// bucket returns the bucket of a name, adjusted if the limit has changed. The lock is held.
func (l *Local) bucket(name string, limit Limit, now time.Time) *bucket {
	if b, known := l.buckets.Get(name); known {
		if b.limit != limit {
			b.tokens.SetLimitAt(now, rate.Every(limit.perCall()))
			b.tokens.SetBurstAt(now, limit.Count)
			b.limit = limit
		}
		return b
	}
	b := &bucket{limit: limit, tokens: rate.NewLimiter(rate.Every(limit.perCall()), limit.Count)}
	l.buckets.Add(name, b)
	return b
}

// Enter implements Limiter.
func (l *Local) Enter(_ context.Context, room string, most int) (leave func()) {
	room = bounded(room)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rooms[room] >= most {
		return nil
	}
	l.rooms[room]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.rooms[room]--; l.rooms[room] == 0 {
			delete(l.rooms, room)
		}
	})
}

// Get implements Values.
func (l *Local) Get(_ context.Context, key string) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key = bounded(key)
	if v, known := l.values.Get(key); known {
		if l.clock.Now().Before(v.expires) {
			l.hits.Add(1)
			return v.bytes, true
		}
		l.values.Remove(key)
	}
	l.misses.Add(1)
	return nil, false
}

// Set implements Values.
func (l *Local) Set(_ context.Context, key string, bytes []byte, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key = bounded(key)
	if len(bytes) > MaxValueBytes {
		l.values.Remove(key)
		return
	}
	l.values.Add(key, &value{bytes: bytes, expires: l.clock.Now().Add(ttl)}, len(bytes))
}

// Delete implements Values.
func (l *Local) Delete(_ context.Context, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values.Remove(bounded(key))
}

// Counts implements Cache.
func (l *Local) Counts() Counts { return Counts{Hits: l.hits.Load(), Misses: l.misses.Load()} }

// Close implements Cache. It does nothing.
func (l *Local) Close() error { return nil }
