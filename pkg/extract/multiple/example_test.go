package multiple_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// Each repeated item is a row; values that it lacks are null.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.MultipleProducts,
		Fields: []model.Field{
			{Name: "title", Selector: "h2", Kind: model.Text},
			{Name: "price", Selector: ".price", Kind: model.Text},
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/shop/",
		ContentType: "text/html", Body: []byte(`<ul><li><h2>Chair</h2><b class="price">40</b></li><li><h2>Table</h2></li></ul>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		fmt.Printf("%s\n", row)
	}
	// Output:
	// {"title":"Chair","price":"40"}
	// {"title":"Table","price":null}
}
