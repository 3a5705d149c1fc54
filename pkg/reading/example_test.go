package reading_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/reading"
)

func ExampleCatch() {
	caught := reading.Catch(func() { panic("a page that nobody foresaw") })
	fmt.Println(caught.Value)
	// Output: a page that nobody foresaw
}
