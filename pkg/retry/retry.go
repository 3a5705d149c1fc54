// Package retry owns the pauses between attempts. Callers decide which failures to retry, and how
// often.
package retry

import (
	"context"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// Backoff is a pause that doubles per failure in a row, from First to Most, both positive.
type Backoff struct {
	First, Most time.Duration
}

// After returns the pause after a number of failures in a row, 1 or more.
func (b Backoff) After(failures int) time.Duration {
	pause := b.First
	for ; failures > 1 && pause < b.Most; failures-- {
		pause *= 2
	}
	return min(pause, b.Most)
}

// Wait waits for that pause; false if ctx ends.
func (b Backoff) Wait(ctx context.Context, c clock.Clock, failures int) bool {
	return clock.Pause(ctx, c, b.After(failures))
}
