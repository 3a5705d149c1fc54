package turns_test

import (
	"context"
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/turns"
)

func ExamplePlaces() {
	places := turns.New(2)
	if places.Enter(context.Background(), "customer") {
		began := time.Now()
		fmt.Println("a page is read")
		places.Leave("customer", time.Since(began))
	}
	// Output: a page is read
}

func ExampleLine() {
	line := turns.NewLine(time.Minute)
	now := time.Now()
	line.Begin("often", now) // and finds a place
	begun, _ := line.Begin("seldom", now)
	line.Refuse(begun, now) // there was none left
	_, ok := line.Begin("often", now)
	fmt.Println("may try again:", ok)
	// Output: may try again: false
}
