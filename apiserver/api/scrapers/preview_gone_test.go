package scrapers

import (
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/pkg/clock"
)

func TestAPreviewEndsWithItsCaller(t *testing.T) {
	var gone atomic.Bool
	asked := make(chan struct{}, 1)
	ctx, leave := whileThere(t.Context(), clock.System{}, func() bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		return gone.Load()
	})
	defer leave()
	<-asked
	if ctx.Err() != nil {
		t.Error("it has ended although the caller is there")
	}
	gone.Store(true)
	<-ctx.Done()
}
