package curl_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/curl"
)

func ExampleParse() {
	request,
		err := curl.Parse(`curl 'https://api.example.com/items' -H 'Content-Type: application/json' --data-raw '{"page":1}'`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(request.Method, request.URL)
	page, _ := request.BodyParam("page")
	fmt.Println("page", page)
	fmt.Printf("%s\n", request.WithBodyParam("page", "2").Body)
	// Output:
	// POST https://api.example.com/items
	// page 1
	// {"page":2}
}
