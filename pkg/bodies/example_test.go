package bodies_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/ids"
)

// A pack's key says whose bodies it has, and for how long they are kept.
func ExampleParsePack() {
	key := bodies.Pack{Group: ids.ID{1}, Scraper: ids.ID{2}, Job: ids.ID{3}, ID: ids.ID{4},
		Days: 7}.Key("alice")
	pack, is := bodies.ParsePack(key)
	fmt.Println(is, pack.Job == ids.ID{3}, pack.Lifetime())
	// Output: true true 168h0m0s
}
