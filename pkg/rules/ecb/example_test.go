package ecb_test

import (
	"fmt"
	"time"

	"shoal.dev/shoal/pkg/rules/ecb"
)

// A Sunday uses Friday's rate.
func ExampleTable_Rate() {
	table, err := ecb.Parse([]byte(`<Envelope><Cube>
<Cube time='2025-10-13'><Cube currency='USD' rate='1.25'/></Cube>
<Cube time='2025-10-10'><Cube currency='USD' rate='1.10'/></Cube>
</Cube></Envelope>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Rate("EUR", "USD", time.Date(2025, 10, 12, 9, 0, 0, 0, time.UTC)))
	// Output:
	// 1.1 2025-10-10 true
}
