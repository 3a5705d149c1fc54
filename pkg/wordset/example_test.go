package wordset_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/wordset"
)

func ExampleOf() {
	gratis := wordset.Of("free gratis kostenlos")
	fmt.Println(gratis["gratis"], gratis["cheap"])
	// Output: true false
}
