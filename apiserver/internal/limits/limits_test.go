package limits

import (
	"testing"
	"time"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
)

func TestHoldersAndClassesAreApart(t *testing.T) {
	c := cache.NewLocal(clock.NewManual(time.Unix(1_800_000_000, 0)))
	b := &Buckets{Cache: c, Figures: map[Class]Figure{Run: {Count: 1, Per: time.Minute}, ListRun: {Count: 1, Per: time.Minute}}}
	for _, test := range []struct {
		holder string
		class  Class
		want   bool
	}{{"a", Run, true}, {"a", Run, false}, {"b", Run, true}, {"a", ListRun, true}, {"a", Read, true}, {"a", Read, true}} {
		if got := b.Take(t.Context(), test.holder, test.class).Allowed; got != test.want {
			t.Errorf("%s %s: %v", test.holder, test.class, got)
		}
	}
}

func TestStreams(t *testing.T) {
	s := Streams{Cache: cache.NewLocal(clock.NewManual(time.Unix(1_800_000_000, 0)))}
	var ends []func()
	for range MaxStreams {
		end := s.Open(t.Context(), "a")
		if end == nil {
			t.Fatal("refused")
		}
		ends = append(ends, end)
	}
	if s.Open(t.Context(), "a") != nil || s.Open(t.Context(), "b") == nil {
		t.Error("the bound is not per customer")
	}
	ends[0]()
	ends[0]()
	if s.Open(t.Context(), "a") == nil || s.Open(t.Context(), "a") != nil {
		t.Error("an ended stream frees one place, once")
	}
	s.Unbounded = true
	if end := s.Open(t.Context(), "a"); end == nil {
		t.Error("refused without a bound")
	}
}
