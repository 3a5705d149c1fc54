package search_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract/search"
)

// An operator names the engines that may be used.
func Example() {
	engines, err := search.ParseEngines([]byte(
		`[{"name": "searxng", "url": "https://search.example/?format=json&q={query}"}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(search.Address(&engines[0], "oak chair"))
	// Output:
	// https://search.example/?format=json&q=oak+chair
}
