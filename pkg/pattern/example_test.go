package pattern_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/pattern"
)

// A budget pays for matching; once it is spent, nothing matches any more.
func ExamplePattern_Find() {
	price, err := pattern.Compile(`(\d+)\.(\d\d)`, pattern.MaxSize)
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := pattern.NewBudget(context.Background(), 1_000_000)
	const text = "only 12.50 today"
	at := price.Find(budget, text)
	fmt.Println(text[at[2]:at[3]], text[at[4]:at[5]])
	// Output: 12 50
}
