package unit

import (
	"context"
	"testing"
	"testing/synctest"
)

// Who stops waiting takes no place along, neither while it waits nor as one is given to it.
func TestPlacesAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(1)
		for range 100 {
			if !p.enter(t.Context(), "a") {
				t.Fatal("there is a place")
			}
			ctx, cancel := context.WithCancel(t.Context())
			entered := make(chan bool)
			go func() { entered <- p.enter(ctx, "b") }()
			go func() { entered <- p.enter(t.Context(), "b") }()
			synctest.Wait()
			go cancel()
			p.leave()
			if <-entered {
				p.leave()
			}
			if <-entered {
				p.leave()
			}
			cancel()
			if p.free != 1 || len(p.waiting) != 0 {
				t.Fatalf("at the end: %d free, waiting %v", p.free, p.waiting)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if p.enter(ended, "a") {
			t.Error("who has gone enters")
		}
	})
}
