package limits

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/clock"
)

// Over any stretch of time a bucket lets through at most its count and what has flowed in; what it says of itself is so.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clock.NewManual(time.Unix(1_800_000_000, 0))
		figure := Figure{Count: rapid.IntRange(1, 100).Draw(t, "count"), Per: time.Minute}
		b := NewBuckets(c, map[Class]Figure{Run: figure})
		start, allowed := c.Now(), 0
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			c.Advance(time.Duration(rapid.IntRange(0, 3_000).Draw(t, "gap")) * time.Millisecond)
			v := b.Take("k", Run)
			if v.Allowed {
				allowed++
			}
			flowed := float64(c.Now().Sub(start)) / float64(figure.Per) * float64(figure.Count)
			if float64(allowed) > float64(figure.Count)+flowed+1e-6 {
				t.Fatalf("%d calls allowed in %v", allowed, c.Now().Sub(start))
			}
			if v.Limit != figure.Count || v.Remaining < 0 || v.Remaining >= figure.Count || v.Reset > figure.Per {
				t.Fatalf("verdict %+v", v)
			}
			if v.Allowed {
				continue
			}
			c.Advance(v.Retry + time.Microsecond)
			if !b.Take("k", Run).Allowed {
				t.Fatalf("not allowed after %v", v.Retry)
			}
			allowed++
		}
	})
}

func TestHoldersAndClassesAreApart(t *testing.T) {
	c := clock.NewManual(time.Unix(1_800_000_000, 0))
	b := NewBuckets(c, map[Class]Figure{Run: {1, time.Minute}, ListRun: {1, time.Minute}})
	for _, test := range []struct {
		holder string
		class  Class
		want   bool
	}{{"a", Run, true}, {"a", Run, false}, {"b", Run, true}, {"a", ListRun, true}, {"a", Read, true}, {"a", Read, true}} {
		if got := b.Take(test.holder, test.class).Allowed; got != test.want {
			t.Errorf("%s %s: %v", test.holder, test.class, got)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	b := NewBuckets(clock.NewManual(time.Unix(1_800_000_000, 0)), Defaults())
	for i := range maxBuckets + 10 {
		b.Take(fmt.Sprint(i), Run)
	}
	if got := b.buckets.Len(); got != maxBuckets {
		t.Errorf("%d buckets", got)
	}
}

func TestStreams(t *testing.T) {
	var s Streams
	var ends []func()
	for range MaxStreams {
		end := s.Open("a")
		if end == nil {
			t.Fatal("refused")
		}
		ends = append(ends, end)
	}
	if s.Open("a") != nil || s.Open("b") == nil {
		t.Error("the bound is not per customer")
	}
	ends[0]()
	ends[0]()
	if s.Open("a") == nil || s.Open("a") != nil {
		t.Error("an ended stream frees one place, once")
	}
}
