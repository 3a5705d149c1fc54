package marketplace_test

import (
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// A plugin reads what a shop states about its product.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.Marketplace,
		Endpoint: "/plugin/marketplace/pdp"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/chair",
		ContentType: "text/html", Body: []byte(`<h1>Chair</h1>
<script type="application/ld+json">{"@type":"Product","name":"Chair",
"offers":{"price":"40.00","priceCurrency":"EUR"}}</script>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	var product struct{ Title, Currency, Platform string }
	if err := json.Unmarshal(result.Rows[0], &product); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(product)
	// Output: {Chair EUR schema.org}
}
