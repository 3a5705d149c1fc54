package schema_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/schema"
)

func ExampleSchema_Validate() {
	s,
		err := schema.Compile([]byte(`{"properties": {"name": {"type": "string"}, "price": {"type": "number"}}, "required": ["price"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := pattern.NewBudget(context.Background(), 1_000_000)
	fmt.Println(s.Validate(budget, []byte(`{"name": "Chair", "price": 166.1}`)))
	fmt.Println(s.Validate(budget, []byte(`{"name": "Chair"}`)) != nil)
	// Output:
	// <nil>
	// true
}
