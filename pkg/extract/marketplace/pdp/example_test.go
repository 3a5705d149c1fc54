package pdp_test

import (
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// A product page gives one row, whatever the shop system.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.Marketplace,
		Endpoint: "/plugin/marketplace/pdp"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/chair",
		ContentType: "text/html", Body: []byte(`<h1>Chair</h1>
<script type="application/ld+json">{"@type":"Product","name":"Chair","sku":"C-1",
"offers":{"price":"40.00","priceCurrency":"EUR"}}</script>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		var product struct{ Title, SKU, Currency string }
		if err := json.Unmarshal(row, &product); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(product)
	}
	// Output:
	// {Chair C-1 EUR}
}
