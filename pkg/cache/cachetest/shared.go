package cachetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/cache"
)

// Server is the server that processes share, with functions that disturb it.
type Server struct {
	// Open makes the cache of one more process, closed when the test has ended. processes is how
	// many share a limit, and lease is the lease of places. Calls, and noticing that the server is
	// down, take at most that long.
	Open func(t *testing.T, processes int, lease time.Duration) cache.Cache
	Wipe func() // forgets everything
	// Kill ends the server without notice. Freeze leaves its connections open and silent. Start
	// and Thaw bring it back.
	Kill, Start, Freeze, Thaw func()
}

// patience is how long a test waits before it fails.
const patience = time.Minute

// lease is the lease of places whose end a test waits for. A busy machine does not delay a renewal
// that long.
const lease = 2 * time.Second

// RunShared runs the suite for several processes. open makes a new server for each test.
func RunShared(t *testing.T, open func(t *testing.T) Server) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Server)
	}{
		{"OneLimit", testOneLimit},
		{"OneRoom", testOneRoom},
		{"ValuesAreShared", testValuesAreShared},
		{"DeadProcessFreesItsPlaces", testDeadProcess},
		{"Wiped", testWiped},
		{"WipedAllTheTime", testWipedAllTheTime},
		{"Killed", func(t *testing.T, s Server) { testGone(t, s, s.Kill, s.Start) }},
		{"Frozen", func(t *testing.T, s Server) { testGone(t, s, s.Freeze, s.Thaw) }},
		{"NeverThere", testNeverThere},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// await polls until so is true, which other goroutines bring about.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, patience)
		}
		<-tick.C
	}
}

func testOneLimit(t *testing.T, s Server) {
	a, b := s.Open(t, 2, time.Hour), s.Open(t, 2, time.Hour)
	if got := Drain(t, cache.Limit{Count: 100, Per: 24 * time.Hour}, a, b); got != 100 {
		t.Errorf("%d calls allowed of 100", got)
	}
	for call, through := range []cache.Cache{a, b, a, b, b, a} {
		v := through.TakeCall(t.Context(), "b", hourly)
		if v.Allowed != (call < 4) || v.Limit != 4 || v.Remaining != max(0, 3-call) {
			t.Errorf("call %d: %+v", call, v)
		}
	}
	if a.Counts().Alone != 0 || b.Counts().Alone != 0 {
		t.Errorf("decided alone: %+v, %+v", a.Counts(), b.Counts())
	}
}

func testOneRoom(t *testing.T, s Server) {
	a, b := s.Open(t, 2, time.Hour), s.Open(t, 2, time.Hour)
	var leave []func()
	for i := range 10 {
		left := []cache.Cache{a, b}[i%2].Enter(t.Context(), "r", 10)
		if left == nil {
			t.Fatalf("place %d is refused", i)
		}
		leave = append(leave, left)
	}
	if a.Enter(t.Context(), "r", 10) != nil || b.Enter(t.Context(), "r", 10) != nil {
		t.Error("an eleventh place")
	}
	leave[0]()
	if b.Enter(t.Context(), "r", 10) == nil || a.Enter(t.Context(), "r", 10) != nil {
		t.Error("the place that one left is not the other's")
	}
}

func testValuesAreShared(t *testing.T, s Server) {
	a, b := s.Open(t, 2, time.Hour), s.Open(t, 2, time.Hour)
	a.Set(t.Context(), "k", []byte("v"), time.Hour)
	expect(t, b, "k", []byte("v"))
	b.Delete(t.Context(), "k")
	expect(t, a, "k", nil)
}

// testDeadProcess: the places of a dead process become free; those of a live one do not.
func testDeadProcess(t *testing.T, s Server) {
	alive, dead, other := s.Open(t, 3, lease), s.Open(t, 3, lease), s.Open(t, 3, lease)
	if alive.Enter(t.Context(), "r", 2) == nil || dead.Enter(t.Context(), "r", 2) == nil {
		t.Fatal("refused")
	}
	if err := dead.Close(); err != nil { // it gives no place back
		t.Fatal(err)
	}
	await(t, "the dead process's place",
		func() bool { return other.Enter(t.Context(), "r", 2) != nil })
	if other.Enter(t.Context(), "r", 2) != nil {
		t.Error("a place that is held is given away")
	}
}

// testWiped: the server forgets everything, and places that are still taken come back.
func testWiped(t *testing.T, s Server) {
	a, b := s.Open(t, 2, lease), s.Open(t, 2, lease)
	a.Set(t.Context(), "k", []byte("v"), time.Hour)
	for range 5 {
		a.TakeCall(t.Context(), "b", hourly)
	}
	for range 3 {
		if a.Enter(t.Context(), "r", 3) == nil {
			t.Fatal("refused")
		}
	}
	s.Wipe()
	expect(t, b, "k", nil)
	if v := b.TakeCall(t.Context(), "b", hourly); !v.Allowed || v.Remaining != 3 {
		t.Errorf("a bucket that is not known is not full: %+v", v)
	}
	if a.Enter(t.Context(), "r", 3) != nil {
		t.Error("a process has forgotten its own places")
	}
	await(t, "renewed places", func() bool {
		leave := b.Enter(t.Context(), "r", 3)
		if leave != nil {
			leave()
		}
		return leave == nil
	})
	if a.Counts().Down || b.Counts().Down || a.Counts().Failures+b.Counts().Failures > 0 {
		t.Errorf("a wipe is no failure: %+v, %+v", a.Counts(), b.Counts())
	}
}

// testWipedAllTheTime: between any two wipes a read finds the value that was set, or nothing. No
// call fails.
func testWipedAllTheTime(t *testing.T, s Server) {
	a, b := s.Open(t, 2, 5*lease), s.Open(t, 2, 5*lease)
	var callers sync.WaitGroup
	for i := range 6 {
		callers.Go(func() {
			c := []cache.Cache{a, b}[i%2]
			for n := range 60 {
				key := fmt.Sprint(n % 7)
				if got, found := c.Get(t.Context(), key); found && string(got) != "value "+key {
					t.Errorf("%s is %q", key, got)
				}
				c.Set(t.Context(), key, []byte("value "+key), time.Hour)
				if v := c.TakeCall(t.Context(), key, hourly); v.Limit != 4 || v.Remaining > 3 ||
					v.Reset > 4*quarter {
					t.Errorf("%+v", v)
				}
				if leave := c.Enter(t.Context(), key, 10); leave != nil {
					leave()
				} else {
					t.Errorf("room %s is full", key)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
			s.Wipe()
		}
	}
}

// testGone: the server goes down in the middle of the test, and comes back.
func testGone(t *testing.T, s Server, leave, comeBack func()) {
	a, b := s.Open(t, 2, lease), s.Open(t, 2, lease)
	limit := cache.Limit{Count: 8, Per: 24 * time.Hour}
	for range 2 {
		a.TakeCall(t.Context(), "b", limit)
	}
	for range 2 {
		if a.Enter(t.Context(), "r", 6) == nil {
			t.Fatal("refused")
		}
	}
	a.Set(t.Context(), "k", []byte("v"), time.Hour)

	leave()
	// The share of a is 4, of which it has already allowed 2.
	if got := Allowed(t, a, "b", limit, 10); got != 2 {
		t.Errorf("%d calls allowed without the server", got)
	}
	if got := Allowed(t, b, "b", limit, 10); got != 4 {
		t.Errorf("%d calls allowed by the other one", got)
	}
	if v := a.TakeCall(t.Context(), "b", limit); v.Limit != 4 || v.Remaining != 0 || v.Retry <= 0 {
		t.Errorf("%+v", v)
	}
	if a.Enter(t.Context(), "r", 6) == nil || a.Enter(t.Context(), "r", 6) != nil {
		t.Error("without the server a process has its part of the places, 3")
	}
	expect(t, a, "k", nil)
	before := a.Counts()
	if !before.Down || before.Failures < 3 || before.Alone < 11 {
		t.Errorf("counts %+v", before)
	}
	for range 1000 {
		a.TakeCall(t.Context(), "b", limit)
		a.Set(t.Context(), "k", nil, time.Hour)
	}
	if after := a.Counts(); after.Failures != before.Failures || after.Alone != before.Alone+1000 {
		t.Errorf("a server that is down is asked: %+v, then %+v", before, after)
	}

	comeBack()
	await(t, "the server again", func() bool { return !a.Counts().Down && !b.Counts().Down })
	a.Set(t.Context(), "k", []byte("w"), time.Hour)
	expect(t, b, "k", []byte("w"))
	if got := Drain(t, cache.Limit{Count: 40, Per: 24 * time.Hour}, a, b); got != 40 {
		t.Errorf("%d calls allowed of 40", got)
	}
	// a took its third place while the server was down, and renews it now. Three are left.
	await(t, "renewed places", func() bool {
		var left []func()
		for {
			leave := b.Enter(t.Context(), "r", 6)
			if leave == nil {
				break
			}
			left = append(left, leave)
		}
		for _, leave := range left {
			leave()
		}
		return len(left) == 3
	})
}

// Allowed makes calls calls and returns how many were allowed.
func Allowed(t testing.TB, c cache.Limiter, bucket string, limit cache.Limit,
	calls int) (allowed int) {
	t.Helper()
	for range calls {
		if c.TakeCall(t.Context(), bucket, limit).Allowed {
			allowed++
		}
	}
	return allowed
}

// testNeverThere: a process starts while the server is away.
func testNeverThere(t *testing.T, s Server) {
	s.Kill()
	c := s.Open(t, 4, lease)
	if got := Allowed(t, c, "b", hourly, 8); got != 1 {
		t.Errorf("%d calls allowed", got)
	}
	if v := c.TakeCall(t.Context(), "small", cache.Limit{Count: 2, Per: time.Hour}); !v.Allowed ||
		v.Limit != 1 {
		t.Errorf("less than one call is allowed: %+v", v)
	}
	await(t, "noticing", func() bool { c.Get(t.Context(), "k"); return c.Counts().Down })
	s.Start()
	await(t, "the server", func() bool { return !c.Counts().Down })
	c.Set(t.Context(), "k", []byte("v"), time.Hour)
	expect(t, c, "k", []byte("v"))
}
