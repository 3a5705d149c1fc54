package retry_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/retry"
)

func ExampleBackoff() {
	pauses := retry.Backoff{First: 50 * time.Millisecond, Most: time.Second}
	for failures := 1; failures <= 7; failures++ {
		fmt.Print(pauses.After(failures), " ")
	}
	// Output: 50ms 100ms 200ms 400ms 800ms 1s 1s
}

func TestBackoffStaysInBounds(t *testing.T) {
	for _, b := range []retry.Backoff{{First: 1, Most: time.Hour},
		{First: time.Second, Most: time.Second},
		{First: time.Minute, Most: time.Second}, {First: time.Second, Most: math.MaxInt64 / 2}} {
		last := time.Duration(0)
		for failures := 1; failures <= 200; failures++ {
			pause := b.After(failures)
			if pause < last || pause <= 0 || pause > b.Most {
				t.Fatalf("%+v pauses for %v after %d failures, %v before", b, pause, failures, last)
			}
			last = pause
		}
		if last != b.Most {
			t.Errorf("%+v ends at %v", b, last)
		}
	}
	if b := (retry.Backoff{First: time.Second, Most: time.Minute}); b.After(0) != time.Second {
		t.Errorf("before a failure it pauses for %v", b.After(0))
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := retry.Backoff{First: time.Minute, Most: time.Hour}
		began := time.Now()
		if !pauses.Wait(t.Context(), clock.System{}, 3) || time.Since(began) != 4*time.Minute {
			t.Errorf("it waited for %v", time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if pauses.Wait(ctx, clock.System{}, 1) {
			t.Error("it waited though ctx had ended")
		}
	})
}
