package profile_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/profile"
)

// The sums of two pages are in their records, and merge to those of the run.
func Example() {
	var first, second, run profile.Sums
	first.Add([]byte(`{"sku":"a","price":"12.50"}`))
	second.Add([]byte(`{"sku":"b","price":null}`))
	for _, page := range []*profile.Sums{&first, &second} {
		sums, err := profile.Decode(page.Append(nil))
		if err != nil {
			panic(err)
		}
		run.Merge(sums)
	}
	for _, f := range run.Fields {
		distinct, _ := f.Distinct()
		fmt.Println(f.Name, f.Filled(), "of", run.Rows, "with", distinct, "values")
	}
	// Output:
	// sku 2 of 2 with 2 values
	// price 1 of 2 with 1 values
}
