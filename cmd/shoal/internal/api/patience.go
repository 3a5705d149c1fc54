package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/retry"
)

// Bounds of the waiting for a server.
const (
	maxWaits    = 20               // how often one call waits
	longestWait = 2 * time.Minute  // the longest Retry-After of a rate limit that it accepts
	unavailable = 30 * time.Second // how long it is repeated while the server is unavailable
)

// underway is the backoff while the server is still working on the first call with the same key.
var underway = retry.Backoff{First: time.Second, Most: time.Minute}

// patiently repeats a call until its answer is final. It gives notice of each wait with its length.
func (c *Client) patiently(ctx context.Context, r request, try func(request) error) error {
	var failed time.Time // the first time
	for waits := 0; ; waits++ {
		err := try(r)
		if waits == 0 {
			failed = c.clock.Now()
		}
		wait, again := retryAfter(err, r.again, waits, c.clock.Now().Sub(failed))
		if !again || c.hasty {
			return doubt(err, r, waits)
		}
		var problem *Problem
		if errors.As(err, &problem) {
			c.notice(fmt.Sprintf("%s: waiting %s", problem.text(), wait))
		} else {
			c.notice(fmt.Sprintf("%v: waiting %s", err, wait))
		}
		if !clock.Pause(ctx, c.clock, wait) {
			return ctx.Err()
		}
	}
}

// retryAfter says whether a call that failed for lasted, after waits tries, is worth another try,
// and when. unsure says that it may be repeated when its result is unknown.
func retryAfter(err error, unsure bool, waits int, lasted time.Duration) (time.Duration, bool) {
	var problem *Problem
	switch {
	case waits >= maxWaits:
		return 0, false
	case isUnsent(err, waits):
		return 0, false // whoever mistyped the address gets the error at once
	case errors.Is(err, ErrUnreachable):
		return time.Second, unsure && lasted+time.Second < unavailable
	case !errors.As(err, &problem):
		return 0, false
	}
	wait := max(problem.retryAfter, time.Second)
	switch {
	case problem.Status == http.StatusTooManyRequests:
		return wait, problem.retryAfter <= longestWait
	case problem.Status == http.StatusServiceUnavailable:
		return wait, lasted+wait < unavailable
	case problem.isOfProxy():
		return wait, unsure && lasted+wait < unavailable
	case problem.isUnderway():
		return underway.After(waits + 1), unsure
	}
	return 0, false
}

// isUnsent says whether the first try failed before anything reached the server.
func isUnsent(err error, waits int) bool { return waits == 0 && errors.Is(err, errUnsent) }

// isOfProxy says that a proxy before the server gave up. The server may go on. Its own answers have
// codes.
func (p *Problem) isOfProxy() bool {
	return p.Code == "" &&
		(p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout)
}

// isUnderway says that the server is still at the first call with the key.
func (p *Problem) isUnderway() bool { return p.Code == string(fault.IdempotencyInFlight) }

// doubt adds to the error of a mutating call that its result is unknown.
func doubt(err error, r request, waits int) error {
	var problem *Problem
	unknown := errors.Is(err, ErrUnreachable) && !isUnsent(err, waits) ||
		errors.As(err, &problem) && (problem.isOfProxy() || problem.isUnderway())
	if r.method == http.MethodGet || !unknown {
		return err
	}
	return fmt.Errorf("%w\n  what was asked for may have been done all the same", err)
}
