package search_test

import (
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// Each product of a result list is a row with its position.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.Marketplace,
		Endpoint: "/plugin/marketplace/search"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/chairs",
		ContentType: "text/html", Body: []byte(`<script type="application/ld+json">{"@type":"ItemList","itemListElement":[
{"@type":"Product","name":"Chair","url":"/chair"},
{"@type":"Product","name":"Stool","url":"/stool"}]}</script>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		var product struct {
			Position   int
			Title, URL string
		}
		if err := json.Unmarshal(row, &product); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(product)
	}
	// Output:
	// {1 Chair https://example.com/chair}
	// {2 Stool https://example.com/stool}
}
