package turns_test

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/turns"
)

func ExamplePlaces() {
	places := turns.New(2, clock.System{})
	ctx := context.Background()
	var place turns.Place
	if places.Enter(ctx, "customer", &place) {
		defer place.Leave()
		for page := range 3 {
			if turns.Yield(&place) == nil {
				fmt.Println("page", page, "is read")
			}
		}
	}
	// Output:
	// page 0 is read
	// page 1 is read
	// page 2 is read
}

func ExampleLine() {
	line := turns.NewLine(2, time.Minute)
	now := time.Now()
	fmt.Println("one:", line.Enter("often", now))
	fmt.Println("another:", line.Enter("often", now))
	fmt.Println("somebody else:", line.Enter("seldom", now))
	// Output:
	// one: true
	// another: false
	// somebody else: true
}
