package turns_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/turns"
)

func ExamplePlaces() {
	places := turns.New(2)
	if places.Enter(context.Background(), "customer") {
		defer places.Leave()
		fmt.Println("a page is read")
	}
	// Output: a page is read
}
