package contacts_test

import (
	"encoding/json"
	"fmt"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// A site publishes an address in its own spelling.
func Example() {
	extractor, err := extract.Compile(model.Recipe{Endpoint: model.WebsiteContacts})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := extractor.Extract(extract.Page{URL: "https://www.example.com/",
		Asked:       "https://example.com",
		ContentType: "text/html", Body: []byte(`<h1>Example Ltd</h1><p>Write to info (at) example.com`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	var site struct{ Website, Email, Status string }
	if err := json.Unmarshal(result.Rows[0], &site); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(site.Website, site.Email, site.Status)
	// Output: https://example.com info@example.com EMAIL_FOUND
}
