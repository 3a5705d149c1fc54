package turns

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Who stops waiting takes no place along, neither while it waits nor as one is given to it.
func TestPlacesAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		for range 100 {
			if !p.Enter(t.Context(), "a") {
				t.Fatal("there is a place")
			}
			ctx, cancel := context.WithCancel(t.Context())
			entered := make(chan bool)
			go func() { entered <- p.Enter(ctx, "b") }()
			go func() { entered <- p.Enter(t.Context(), "b") }()
			synctest.Wait()
			go cancel()
			p.Leave("a", time.Second)
			for range 2 {
				if <-entered {
					p.Leave("b", 2*time.Second)
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
		if p.Enter(ended, "a") {
			t.Error("who has gone enters")
		}
	})
}

// The calls of one customer wait for each other. Those of another wait for one of them, however
// long each of them takes.
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
				p := New(1)
				var order []string
				read := func(customer string) {
					if p.Enter(t.Context(), customer) {
						order = append(order, customer)
						<-time.After(test.costs[customer])
						p.Leave(customer, test.costs[customer])
					}
				}
				p.Enter(t.Context(), "before")
				for _, customer := range []string{"costly", "costly", "costly", "costly", "other",
					"other", "other"} {
					go read(customer)
					synctest.Wait()
				}
				p.Leave("before", 0)
				<-time.After(time.Hour)
				synctest.Wait()
				if !slices.Equal(order, test.want) {
					t.Errorf("%v, want %v", order, test.want)
				}
			})
		})
	}
}

// Whatever comes and goes, nobody who waits is passed over for ever, and who is gone is forgotten.
func TestNobodyIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2)
		var ended atomic.Bool
		read := func(customer string, costs time.Duration) {
			if p.Enter(t.Context(), customer) {
				<-time.After(costs)
				p.Leave(customer, costs)
			}
		}
		for range 2 {
			go read("costly", time.Minute) // it has had more than all others
		}
		<-time.After(time.Minute)
		for n := range 5 { // one of these waits always
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
		if n := len(p.accounts); n > mostAway+10 {
			t.Errorf("%d customers are remembered", n)
		}
		ended.Store(true)
		<-time.After(time.Hour)
	})
}
