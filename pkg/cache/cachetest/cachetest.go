// Package cachetest has the suites that implementations of cache.Cache must pass. Run is for every
// implementation. RunShared is for one that several processes share through a server; it wipes,
// kills, freezes and restarts the server.
package cachetest

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/cache"
)

// quarter is the time in which the bucket of hourly gains one call: no test takes that long.
const quarter = 15 * time.Minute

// hourly is a limit whose bucket gains nothing while a test runs.
var hourly = cache.Limit{Count: 4, Per: 4 * quarter}

// Subject is the implementation under test.
type Subject struct {
	Cache cache.Cache
	// Advance lets time pass: it moves the subject's clock, or waits.
	Advance func(d time.Duration)
}

// Run runs the suite for one process. open makes an empty cache, and closes it when the test has
// ended.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Subject)
	}{
		{"Bucket", testBucket},
		{"BucketFills", testBucketFills},
		{"BucketsApart", testBucketsApart},
		{"LimitChanges", testLimitChanges},
		{"BucketConcurrently", testBucketConcurrently},
		{"Room", testRoom},
		{"RoomConcurrently", testRoomConcurrently},
		{"Values", testValues},
		{"ValuesExpire", testValuesExpire},
		{"ValuesAreBounded", testValuesAreBounded},
		{"LongNames", testLongNames},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// testBucket checks the verdicts until a bucket is empty and beyond.
func testBucket(t *testing.T, s Subject) {
	for call := 1; call <= 6; call++ {
		v := s.Cache.TakeCall(t.Context(), "b", hourly)
		left := max(0, 4-call)
		if v.Allowed != (call <= 4) || v.Limit != 4 || v.Remaining != left {
			t.Errorf("call %d: %+v", call, v)
		}
		if full := time.Duration(4-left) * quarter; v.Reset > full || v.Reset < full-quarter {
			t.Errorf("call %d: full after %v, want %v", call, v.Reset, full)
		}
		if v.Allowed && v.Retry != 0 || !v.Allowed && (v.Retry <= 0 || v.Retry > quarter) {
			t.Errorf("call %d: %+v", call, v)
		}
	}
}

func testBucketFills(t *testing.T, s Subject) {
	limit := cache.Limit{Count: 2, Per: 400 * time.Millisecond}
	for round := range 3 {
		v := s.Cache.TakeCall(t.Context(), "b", limit)
		for call := 0; v.Allowed; call++ {
			if call > 1000 {
				t.Fatal("the bucket does not become empty")
			}
			v = s.Cache.TakeCall(t.Context(), "b", limit)
		}
		s.Advance(v.Retry + time.Millisecond)
		if v := s.Cache.TakeCall(t.Context(), "b", limit); !v.Allowed {
			t.Errorf("round %d: refused after the time that was told: %+v", round, v)
		}
	}
}

func testBucketsApart(t *testing.T, s Subject) {
	one := cache.Limit{Count: 1, Per: time.Hour}
	for _, test := range []struct {
		bucket string
		want   bool
	}{{"a", true}, {"a", false}, {"b", true}, {"a b", true}, {"a:b", true}, {"", true},
		{"b", false}} {
		if got := s.Cache.TakeCall(t.Context(), test.bucket, one).Allowed; got != test.want {
			t.Errorf("%q: %v", test.bucket, got)
		}
	}
}

// testLimitChanges: an operator changes a limit, and verdicts follow the new limit at once.
func testLimitChanges(t *testing.T, s Subject) {
	wide, narrow := cache.Limit{Count: 100, Per: time.Hour}, cache.Limit{Count: 2, Per: time.Minute}
	for range 90 {
		s.Cache.TakeCall(t.Context(), "b", wide)
	}
	allowed := 0
	for range 10 {
		v := s.Cache.TakeCall(t.Context(), "b", narrow)
		if v.Limit != 2 || v.Remaining > 1 || v.Reset > time.Minute+time.Second {
			t.Errorf("%+v", v)
		}
		if v.Allowed {
			allowed++
		}
	}
	if allowed > 2 {
		t.Errorf("%d calls", allowed)
	}
}

func testBucketConcurrently(t *testing.T, s Subject) {
	if got := Drain(t, cache.Limit{Count: 50, Per: 24 * time.Hour}, s.Cache); got != 50 {
		t.Errorf("%d calls allowed of 50", got)
	}
}

// Drain takes twice as many calls from one bucket as the limit allows, through all caches at once.
// It returns how many were allowed.
func Drain(t testing.TB, limit cache.Limit, through ...cache.Limiter) int64 {
	t.Helper()
	const callers = 8
	var allowed atomic.Int64
	var calls sync.WaitGroup
	for i := range callers {
		calls.Go(func() {
			for range 2 * limit.Count / callers {
				if through[i%len(through)].TakeCall(t.Context(), "drained", limit).Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	calls.Wait()
	return allowed.Load()
}

func testRoom(t *testing.T, s Subject) {
	enter := func(room string) func() { return s.Cache.Enter(t.Context(), room, 3) }
	first, second, third := enter("a"), enter("a"), enter("a")
	if first == nil || second == nil || third == nil {
		t.Fatal("refused")
	}
	if enter("a") != nil || enter("b") == nil {
		t.Error("the bound is not per room")
	}
	second()
	second()
	if enter("a") == nil || enter("a") != nil {
		t.Error("leaving frees one place, once")
	}
}

func testRoomConcurrently(t *testing.T, s Subject) {
	var entered atomic.Int64
	var callers sync.WaitGroup
	for range 30 {
		callers.Go(func() {
			if leave := s.Cache.Enter(t.Context(), "a", 10); leave != nil {
				entered.Add(1)
			}
		})
	}
	callers.Wait()
	if got := entered.Load(); got != 10 {
		t.Errorf("%d entered", got)
	}
}

func expect(t *testing.T, c cache.Values, key string, want []byte) {
	t.Helper()
	got, found := c.Get(t.Context(), key)
	if found != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("%.20q is %.20q, %v, want %.20q", key, got, found, want)
	}
}

func testValues(t *testing.T, s Subject) {
	c, ctx := s.Cache, t.Context()
	expect(t, c, "a", nil)
	c.Delete(ctx, "a")
	c.Set(ctx, "a", []byte("one"), time.Hour)
	c.Set(ctx, "b", []byte{0, 255, '\n'}, time.Hour)
	c.Set(ctx, "", []byte{}, time.Hour)
	expect(t, c, "a", []byte("one"))
	expect(t, c, "b", []byte{0, 255, '\n'})
	expect(t, c, "", []byte{})
	c.Set(ctx, "a", []byte("two"), time.Hour)
	expect(t, c, "a", []byte("two"))
	c.Delete(ctx, "a")
	expect(t, c, "a", nil)
	expect(t, c, "b", []byte{0, 255, '\n'})
	if got := c.Counts(); got.Hits != 5 || got.Misses != 2 {
		t.Errorf("counts %+v", got)
	}
}

func testValuesExpire(t *testing.T, s Subject) {
	s.Cache.Set(t.Context(), "short", []byte("x"), 50*time.Millisecond)
	s.Cache.Set(t.Context(), "long", []byte("x"), time.Hour)
	s.Cache.Set(t.Context(), "again", []byte("x"), 50*time.Millisecond)
	s.Cache.Set(t.Context(), "again", []byte("y"), time.Hour)
	s.Advance(100 * time.Millisecond)
	expect(t, s.Cache, "short", nil)
	expect(t, s.Cache, "long", []byte("x"))
	expect(t, s.Cache, "again", []byte("y"))
}

func testValuesAreBounded(t *testing.T, s Subject) {
	largest := bytes.Repeat([]byte("x"), cache.MaxValueBytes)
	s.Cache.Set(t.Context(), "a", largest, time.Hour)
	expect(t, s.Cache, "a", largest)
	s.Cache.Set(t.Context(), "a", append(largest, 'x'), time.Hour)
	expect(t, s.Cache, "a", nil) // the previous value is out of date
}

func testLongNames(t *testing.T, s Subject) {
	long := strings.Repeat("n", 20_000)
	s.Cache.Set(t.Context(), long, []byte("a"), time.Hour)
	s.Cache.Set(t.Context(), long+"n", []byte("b"), time.Hour)
	expect(t, s.Cache, long, []byte("a"))
	expect(t, s.Cache, long+"n", []byte("b"))
	one := cache.Limit{Count: 1, Per: time.Hour}
	if !s.Cache.TakeCall(t.Context(), long, one).Allowed ||
		s.Cache.TakeCall(t.Context(), long, one).Allowed {
		t.Error("a bucket with a long name")
	}
}
