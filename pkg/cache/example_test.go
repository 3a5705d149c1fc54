package cache_test

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
)

// A bucket allows all its calls at once, and fills again as time passes.
func ExampleLocal_TakeCall() {
	now := clock.NewManual(time.Unix(1_800_000_000, 0))
	limiter := cache.NewLocal(now)
	limit := cache.Limit{Count: 2, Per: time.Minute}
	for range 3 {
		verdict := limiter.TakeCall(context.Background(), "key 1", limit)
		fmt.Println(verdict.Allowed, verdict.Remaining, verdict.Retry)
	}
	now.Advance(30 * time.Second)
	fmt.Println(limiter.TakeCall(context.Background(), "key 1", limit).Allowed)
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 30s
	// true
}
