// Package retry owns how long to wait before what failed is tried again. Which failures are worth
// another try, and how many of them, is for its callers to say.
package retry

import (
	"context"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// Backoff is a pause that doubles with each failure in a row, from First to Most. Both are above 0.
type Backoff struct {
	First, Most time.Duration
}

// After is the pause after so many failures in a row, 1 or more.
func (b Backoff) After(failures int) time.Duration {
	pause := b.First
	for ; failures > 1 && pause < b.Most; failures-- {
		pause *= 2
	}
	return min(pause, b.Most)
}

// Wait waits for that pause; false when ctx ended.
func (b Backoff) Wait(ctx context.Context, c clock.Clock, failures int) bool {
	return clock.Pause(ctx, c, b.After(failures))
}
