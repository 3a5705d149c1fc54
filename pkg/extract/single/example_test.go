package single_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// A page is one row, made of the first match of each field.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Type: model.SingleProduct,
		Fields: []model.Field{
			{Name: "title", Selector: "h1", Kind: model.Text},
			{Name: "image", Selector: "img", Kind: model.Attr, Attr: "src"},
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/shop/chair",
		ContentType: "text/html", Body: []byte(`<h1>Chair</h1><p>Oak.<img src="chair.jpg">`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		fmt.Printf("%s\n", row)
	}
	// Output:
	// {"title":"Chair","image":"https://example.com/shop/chair.jpg"}
}
