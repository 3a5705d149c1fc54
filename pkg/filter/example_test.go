package filter_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/filter"
)

// Text that is a number counts as that number if the operand is a number.
func ExampleParse() {
	node,
		err := filter.Parse([]byte(`{"price": {"$gt": 10}, "$or": [{"stock": true}, {"title": {"contains": "chair"}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := filter.NewBudget(context.Background())
	fmt.Println(filter.Match(budget, node, map[string]any{"price": "12.50", "title": "Armchair"}))
	fmt.Println(filter.Match(budget, node, map[string]any{"price": "9.90", "stock": true}))
	// Output:
	// true
	// false
}
