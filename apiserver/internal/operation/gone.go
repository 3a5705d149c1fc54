package operation

import (
	"context"
	"errors"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// statusGone is the customary status, in logs and metrics, of a call whose caller has hung up.
const statusGone = 499

// ErrGone is the answer to a caller who has hung up. It is not an error of the service.
var (
	ErrGone = fault.Wrap(fault.Unavailable, errGone, "the caller is gone")
	errGone = errors.New("operation: the caller is gone") // tells faults of one code apart
)

// goneEvery is the interval of checks that a caller is still there.
const goneEvery = 200 * time.Millisecond

// WhileThere returns a context that ends when the caller has hung up, for handlers that compute.
// The returned function must be called before the handler ends.
func (c *Caller) WhileThere(ctx context.Context, now clock.Clock) (context.Context, func()) {
	ctx, leave := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-now.After(goneEvery):
				if c.Gone() {
					leave()
				}
			}
		}
	})
	return ctx, func() {
		leave()
		watch.Wait()
	}
}
