package aiconf_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// The schema says what is wanted; the page supplies it. No selector is needed.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.AIConf, Schema: []byte(`{
		"type": "object", "required": ["name"], "properties": {
			"name": {"type": "string"}, "price": {"type": "number"}}}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/chair",
		ContentType: "text/html", Body: []byte(`<title>Chair | Shop</title>
<h1>Chair</h1><p>Price: <b itemprop="price">€ 40,00</b>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		fmt.Printf("%s\n", row)
	}
	// Output:
	// {"name":"Chair","price":40.00}
}
