package cache_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/cache/cachetest"
	"shoal.dev/shoal/pkg/clock"
)

func TestLocal(t *testing.T) {
	cachetest.Run(t, func(*testing.T) cachetest.Subject {
		now := clock.NewManual(time.Unix(1_800_000_000, 0))
		return cachetest.Subject{Cache: cache.NewLocal(now), Advance: now.Advance}
	})
}

// In any span of time a bucket allows at most its count and what it has gained meanwhile. Its
// verdicts are true.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := clock.NewManual(time.Unix(1_800_000_000, 0))
		limit := cache.Limit{Count: rapid.IntRange(1, 100).Draw(t, "count"), Per: time.Minute}
		c := cache.NewLocal(now)
		start, allowed := now.Now(), 0
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			now.Advance(time.Duration(rapid.IntRange(0, 3_000).Draw(t, "gap")) * time.Millisecond)
			v := c.TakeCall(t.Context(), "b", limit)
			if v.Allowed {
				allowed++
			}
			flowed := float64(now.Now().Sub(start)) / float64(limit.Per) * float64(limit.Count)
			if float64(allowed) > float64(limit.Count)+flowed+1e-6 {
				t.Fatalf("%d calls allowed in %v", allowed, now.Now().Sub(start))
			}
			if v.Limit != limit.Count || v.Remaining < 0 || v.Remaining >= limit.Count ||
				v.Reset > limit.Per {
				t.Fatalf("verdict %+v", v)
			}
			if v.Allowed {
				continue
			}
			now.Advance(v.Retry + time.Microsecond)
			if !c.TakeCall(t.Context(), "b", limit).Allowed {
				t.Fatalf("not allowed after %v", v.Retry)
			}
			allowed++
		}
	})
}

// The least recently used goes first when a bound is exceeded.
func TestLocalIsBounded(t *testing.T) {
	c := cache.NewLocal(clock.NewManual(time.Unix(1_800_000_000, 0)))
	one := cache.Limit{Count: 1, Per: time.Hour}
	for i := range 100_001 {
		c.TakeCall(t.Context(), fmt.Sprint(i), one)
	}
	if !c.TakeCall(t.Context(), "0", one).Allowed ||
		c.TakeCall(t.Context(), "100000", one).Allowed {
		t.Error("buckets are not bounded, or the wrong one went")
	}
	large := make([]byte, cache.MaxValueBytes)
	for i := range 65 {
		c.Set(t.Context(), fmt.Sprint(i), large, time.Hour)
	}
	for i := range 65 {
		if _, found := c.Get(t.Context(), fmt.Sprint(i)); found != (i > 0) {
			t.Errorf("value %d: %v", i, found)
		}
	}
}
