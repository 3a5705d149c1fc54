package detect_test

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/detect"
)

// A page is examined without any given selector.
func ExampleShown() {
	root, err := html.Parse(strings.NewReader(`<title>Chair | Shop</title>
<main><h1>Chair</h1><p class="price">€ 40.00</p></main>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	thing, _ := detect.Shown(root, "https://example.com/chair")
	for _, value := range thing {
		fmt.Println(value.Name, value.Text)
	}
	// Output:
	// title Chair
	// price € 40.00
}
