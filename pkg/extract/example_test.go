package extract_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// A recipe is compiled once and then makes rows of each page.
func ExampleCompile() {
	extractor, err := extract.Compile(model.Recipe{Type: model.MultipleProducts,
		Fields: []model.Field{
			{Name: "title", Selector: "h2", Kind: model.Text},
			{Name: "link", Selector: "a", Kind: model.Attr, Attr: "href"},
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://example.com/shop/", Body: []byte(
		`<ul><li><h2>Chair</h2><a href="chair">more</a></li><li><h2>Table</h2><a href="/table">more</a></li></ul>`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range result.Rows {
		fmt.Printf("%s\n", row)
	}
	// Output:
	// {"title":"Chair","link":"https://example.com/shop/chair"}
	// {"title":"Table","link":"https://example.com/table"}
}
