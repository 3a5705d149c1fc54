package schedule_test

import (
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/schedule"
)

// A time of day that a zone skips starts after the gap.
func ExampleSchedule_Next() {
	s, err := schedule.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for range 3 {
		at, _ = s.Next(at)
		fmt.Println(at.Format(time.RFC3339))
	}
	// Output:
	// 2026-03-28T01:30:00Z
	// 2026-03-29T01:00:00Z
	// 2026-03-30T00:30:00Z
}
