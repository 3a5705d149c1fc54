package turns

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// enter returns the place that a customer has entered, nil if the context has ended.
func enter(ctx context.Context, p *Places, customer string) *Place {
	place := &Place{}
	if !p.Enter(ctx, customer, place) {
		return nil
	}
	return place
}

// TestPlacesAreNotLost: a call that stops waiting loses no place, even while one is given to it.
func TestPlacesAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, clock.System{})
		for range 100 {
			place := enter(t.Context(), p, "a")
			if place == nil {
				t.Fatal("there is a place")
			}
			ctx, cancel := context.WithCancel(t.Context())
			entered := make(chan *Place)
			go func() { entered <- enter(ctx, p, "b") }()
			go func() { entered <- enter(t.Context(), p, "b") }()
			synctest.Wait()
			go cancel()
			place.Leave()
			for range 2 {
				if place := <-entered; place != nil {
					place.Leave()
				}
			}
			cancel()
			if p.free != 1 || len(p.waiting) != 0 {
				t.Fatalf("at the end: %d free, waiting %v", p.free, p.waiting)
			}
			for name, a := range p.accounts {
				if a.here != 0 {
					t.Fatalf("%d calls of %s are still there", a.here, name)
				}
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if enter(ended, p, "a") != nil {
			t.Error("who has gone enters")
		}
	})
}

// TestCustomersTakeTurns: the calls of one customer wait for each other. Another customer's calls
// wait for at most one of them, however long they take.
func TestCustomersTakeTurns(t *testing.T) {
	for name, test := range map[string]struct {
		costs map[string]time.Duration
		want  []string
	}{
		"by turns": {want: []string{"costly", "other", "costly", "other", "costly", "other",
			"costly"}},
		"by time": {costs: map[string]time.Duration{"costly": time.Minute, "other": time.Second},
			want: []string{"costly", "other", "other", "other", "costly", "costly", "costly"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New(1, clock.System{})
				var order []string
				read := func(customer string) {
					place := enter(t.Context(), p, customer)
					order = append(order, customer)
					<-time.After(test.costs[customer])
					place.Leave()
				}
				before := enter(t.Context(), p, "before")
				for _, customer := range []string{"costly", "costly", "costly", "costly", "other",
					"other", "other"} {
					go read(customer)
					synctest.Wait()
				}
				before.Leave()
				<-time.After(time.Hour)
				synctest.Wait()
				if !slices.Equal(order, test.want) {
					t.Errorf("%v, want %v", order, test.want)
				}
			})
		})
	}
}

// TestNobodyIsPassedOver: no waiting call starves, and customers who are gone are forgotten.
func TestNobodyIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2, clock.System{})
		var ended atomic.Bool
		read := func(customer string, costs time.Duration) {
			place := enter(t.Context(), p, customer)
			<-time.After(costs)
			place.Leave()
		}
		for range 2 {
			go read("costly", time.Minute) // it has had more than all the others
		}
		<-time.After(time.Minute)
		for n := range 5 { // one of these always waits
			go func() {
				for !ended.Load() {
					read(fmt.Sprint("steady ", n), time.Second)
				}
			}()
		}
		<-time.After(time.Second / 2)
		began := time.Now()
		read("costly", 0)
		if waited := time.Since(began); waited > 10*time.Minute {
			t.Errorf("who had had two minutes waited for %v", waited)
		}
		for n := range 3 * mostAway {
			read(fmt.Sprint("once ", n), time.Second)
		}
		p.mu.Lock()
		n := len(p.accounts)
		p.mu.Unlock()
		if n > mostAway+10 {
			t.Errorf("%d customers are remembered", n)
		}
		ended.Store(true)
		<-time.After(time.Hour)
	})
}

// TestLongWorkLetsOthersGoFirst: long work rests while a customer with less time waits, and resumes
// before its own customer's later calls. It does not rest for customers with as much time.
func TestLongWorkLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, clock.System{})
		var order []string
		work := func(what, customer string, parts int) {
			place := enter(t.Context(), p, customer)
			defer place.Leave()
			for n := range parts {
				order = append(order, fmt.Sprint(what, n))
				<-time.After(time.Second)
				if err := Yield(place); err != nil {
					t.Error(err)
				}
			}
		}
		go work("long", "costly", 3)
		synctest.Wait()
		go work("later", "costly", 1)
		synctest.Wait()
		go work("short", "other", 1)
		synctest.Wait()
		<-time.After(time.Hour)
		want := []string{"long0", "short0", "long1", "long2", "later0"}
		if !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
		if Yield(t.Context()) != nil {
			t.Error("what has no place is held up")
		}
	})
}

// TestFewRest: the number of resting calls is limited because of their memory: the others stay to
// the end. No place is lost if the context ends, and a call that has lost its place frees none.
func TestFewRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, clock.System{})
		ctx, cancel := context.WithCancel(t.Context())
		const customers = restsPerPlace + 3
		var begun, ended atomic.Int64
		for n := range customers {
			go func() {
				place := enter(t.Context(), p, fmt.Sprint(n))
				begun.Add(1)
				place.Context = ctx
				<-time.After(time.Duration(customers-n) * time.Second) // each has had less
				_ = Yield(place)
				<-time.After(time.Hour)
				place.Leave()
				ended.Add(1)
			}()
			synctest.Wait()
		}
		<-time.After(time.Minute)
		if n := begun.Load(); n != restsPerPlace+1 {
			t.Errorf("%d have begun, want those that rest and the one that stays", n)
		}
		cancel()
		<-time.After(customers * time.Hour)
		if n := ended.Load(); n != customers {
			t.Errorf("%d of %d have ended", n, customers)
		}
		if p.free != 1 || p.rests != restsPerPlace || len(p.waiting) != 0 {
			t.Errorf("at the end: %d free, %d may rest, waiting %v", p.free, p.rests, p.waiting)
		}
	})
}
