package clock_test

import (
	"context"
	"testing"

	"shoal.dev/shoal/pkg/clock"
)

// TestPauseEndsWithItsContext: an ended context wins over an elapsed pause, whichever was first.
func TestPauseEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if !clock.Pause(ctx, clock.System{}, 0) {
		t.Fatal("it did not wait")
	}
	cancel()
	for range 100 {
		if clock.Pause(ctx, clock.System{}, 0) {
			t.Fatal("it waited though ctx had ended")
		}
	}
}
