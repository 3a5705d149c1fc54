package model_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/model"
)

// Tiers are tried in the order of their prices, in whatever order they are named.
func ExampleTierSet_Tiers() {
	fmt.Println(model.TiersOf(model.RenderSuper, model.Super, model.Plain).Tiers())
	// Output: [plain super render+super]
}
