package prelaunch_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/prelaunch"
)

func ExampleRules_Find() {
	rules, faults := prelaunch.Compile(&model.Prelaunch{DiscoveryURL: "https://example.com/",
		Tokens: []model.TokenRule{
			{Name: "TOKEN", Source: "META", Expression: "csrf"},
		}})
	if len(faults) > 0 {
		fmt.Println(faults)
		return
	}
	values, err := rules.Find(context.Background(), []byte(`<meta name="csrf" content="a1B2">`))
	fmt.Println(values["TOKEN"], err)
	// Output: a1B2 <nil>
}
