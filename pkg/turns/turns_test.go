package turns

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
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
			p.Leave()
			if <-entered {
				p.Leave()
			}
			if <-entered {
				p.Leave()
			}
			cancel()
			if p.free != 1 || len(p.waiting) != 0 {
				t.Fatalf("at the end: %d free, waiting %v", p.free, p.waiting)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if p.Enter(ended, "a") {
			t.Error("who has gone enters")
		}
	})
}

// The calls of one customer wait for each other. Those of another wait for one of them.
func TestCustomersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		if !p.Enter(t.Context(), "costly") {
			t.Fatal("there is a place")
		}
		var order []string
		for _, customer := range []string{"costly", "costly", "costly", "costly", "other",
			"other"} {
			go func() {
				if p.Enter(t.Context(), customer) {
					order = append(order, customer)
					p.Leave()
				}
			}()
			synctest.Wait()
		}
		p.Leave()
		synctest.Wait()
		want := []string{"costly", "other", "costly", "other", "costly", "costly"}
		if !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}
