package ids_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/ids"
)

func ExampleParse() {
	id, err := ids.Parse("6b01682d9c892b6c0ef329b7")
	fmt.Println(id, id.Seconds(), err)
	_, err = ids.Parse("6b01")
	fmt.Println(err)
	// Output:
	// 6b01682d9c892b6c0ef329b7 1795254317 <nil>
	// malformed id: want 24 hex digits, got 4 characters
}
