package clock_test

import (
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// A test moves time by hand.
func ExampleManual() {
	c := clock.NewManual(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	due := c.After(time.Minute)
	c.Advance(time.Minute)
	fmt.Println((<-due).UTC().Format(time.TimeOnly))
	// Output: 12:01:00
}
