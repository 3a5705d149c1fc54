package limits

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
)

func TestHoldersAndClassesAreApart(t *testing.T) {
	c := cache.NewLocal(clock.NewManual(time.Unix(1_800_000_000, 0)))
	b := &Buckets{Cache: c, Figures: map[Class]Figure{Run: {Count: 1, Per: time.Minute},
		ListRun: {Count: 1, Per: time.Minute}}}
	for _, test := range []struct {
		holder string
		class  Class
		want   bool
	}{{"a", Run, true}, {"a", Run, false}, {"b", Run, true}, {"a", ListRun, true},
		{"a", Read, true}, {"a", Read, true}} {
		if got := b.TakeCall(t.Context(), test.holder, "", test.class).Allowed; got != test.want {
			t.Errorf("%s %s: %v", test.holder, test.class, got)
		}
	}
}

// More keys do not allow more calls: a customer's keys share ten times a key's figure. Calls that a
// key's own bucket refuses do not count for the customer.
func TestKeysShareTheirCustomersBucket(t *testing.T) {
	manual := clock.NewManual(time.Unix(1_800_000_000, 0))
	b := &Buckets{Cache: cache.NewLocal(manual),
		Figures: map[Class]Figure{Run: {Count: 2, Per: time.Minute}}}
	allowed := 0
	for key := range 30 {
		for call := range 3 {
			v := b.TakeCall(t.Context(), fmt.Sprint("key ", key), "alice", Run)
			if v.Allowed {
				allowed++
			}
			if key == 0 && v.Limit != 2 || key == 20 && call == 0 && v.Limit != 20 {
				t.Errorf("key %d is told of a limit of %d", key, v.Limit)
			}
		}
	}
	if allowed != 20 {
		t.Errorf("%d calls of 30 keys are allowed, want 20", allowed)
	}
	if !b.TakeCall(t.Context(), "key 30", "bob", Run).Allowed {
		t.Error("another customer is refused")
	}
	manual.Advance(3 * time.Second)
	if v := b.TakeCall(t.Context(), "key 31", "alice", Run); !v.Allowed || v.Limit != 20 ||
		v.Remaining != 0 {
		t.Errorf("after a twentieth of the time: %+v", v)
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
