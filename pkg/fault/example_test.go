package fault_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/fault"
)

// A code survives the wrapping of its error, and determines the response's status.
func ExampleCodeOf() {
	err := fmt.Errorf("read page: %w",
		fault.Invalid(fault.InvalidFilter, "filters", "depth is at most %d", 8))
	code := fault.CodeOf(err)
	fmt.Println(code, fault.Lookup(code).Status)
	fmt.Println(err)
	// Output:
	// invalid_filter 400
	// read page: invalid_filter (filters): depth is at most 8
}
