package amount_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/amount"
)

// A sign shared by several currencies names none.
func ExampleParse() {
	for _, text := range []string{"1.299,00 €", "$1,299.00", "CHF 12.–"} {
		found, ok := amount.Parse(text)
		fmt.Printf("%s %q %v\n", found.Amount, found.Currency, ok)
	}
	// Output:
	// 1299.00 "EUR" true
	// 1299.00 "" true
	// 12 "CHF" true
}
