package ldjson_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// Each thing that a page states is a row whose columns are its properties.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.ApplicationLDJSON})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/chair",
		ContentType: "text/html", Body: []byte(`<script type="application/ld+json">
{"@context":"https://schema.org","@type":"Product","name":"Chair",
"offers":{"@type":"Offer","price":"40.00","priceCurrency":"EUR"}}</script>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		fmt.Printf("%s\n", row)
	}
	// Output:
	// {"type":"Product","name":"Chair","offers_price":"40.00","offers_priceCurrency":"EUR"}
}
