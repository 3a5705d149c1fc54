package extract_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// ATTR fields whose attribute is an address give absolute addresses, resolved against the page's
// base; other attributes stay as written (decision 62). This holds for both types, for CSS and
// XPath, and with pagination.
func TestAddressesInRows(t *testing.T) {
	const page = "https://shop.test/a/list?x=1"
	attributes := []string{"href", "src", "poster", "action", "data-src", "data-original",
		"data-lazy-src", "HREF", "data-href", "srcset", "alt", "data-url", "content"}
	late := []string{"data-original", "data-lazy-src"} // of pictures alone
	for _, c := range []struct{ value, byPage, byBase string }{
		{"p/1?a=1&amp;b=2", "https://shop.test/a/p/1?a=1&b=2", "https://cdn.test/b/p/1?a=1&b=2"},
		{"/p", "https://shop.test/p", "https://cdn.test/p"},
		{"//img.test/x", "https://img.test/x", "https://img.test/x"},
		{"?page=2", "https://shop.test/a/list?page=2", "https://cdn.test/b/c?page=2"},
		{"#top", "https://shop.test/a/list?x=1#top", "https://cdn.test/b/c#top"},
		{" http://a.test/ü ", "http://a.test/%C3%BC", "http://a.test/%C3%BC"},
		{"mailto:a@b.test", "mailto:a@b.test", "mailto:a@b.test"},
		{"data:image/gif;base64,R0lGOD", "data:image/gif;base64,R0lGOD",
			"data:image/gif;base64,R0lGOD"},
		{"javascript:void(0)", "javascript:void(0)", "javascript:void(0)"},
		{"http://[", "http://[", "http://["},
		{"", "", ""},
	} {
		for n, attribute := range append(attributes, late...) {
			element := "a"
			if n >= len(attributes) {
				element = "img"
			}
			for base, resolved := range map[string]string{"": c.byPage,
				`<base target=x><base href="//cdn.test/b/c">`: c.byBase} {
				for _, after := range []bool{false, true} {
					body := `<p><` + element + ` ` + attribute + `="` + c.value + `">text</a></p>`
					if after {
						body += base
					} else {
						body = base + body
					}
					want := resolved
					if !slices.Contains([]string{"href", "src", "poster", "action", "data-src"},
						strings.ToLower(attribute)) && element == "a" {
						want = strings.ReplaceAll(c.value, "&amp;", "&")
					}
					for _, selector := range []string{element, "//" + element} {
						checkAddress(t, page, body, selector, attribute, want)
					}
				}
			}
		}
	}
}

func checkAddress(t *testing.T, address, body, selector, attribute, want string) {
	t.Helper()
	fields := []model.Field{{Name: "v", Selector: selector, Kind: model.Attr, Attr: attribute},
		{Name: "t", Selector: selector, Kind: model.Text}}
	for _, kind := range []model.ScraperType{model.SingleProduct, model.MultipleProducts} {
		e, err := extract.Compile(model.Recipe{Type: kind, Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		result, err := e.Extract(extract.Page{URL: address, ContentType: "text/html",
			Body: []byte("<!doctype html><body>" + body)})
		if err != nil || len(result.Rows) != 1 {
			t.Fatalf("%s: %q, %v", body, result.Rows, err)
		}
		var row struct{ V string }
		if err := json.Unmarshal(result.Rows[0], &row); err != nil || row.V != want {
			t.Errorf("%s %s over %s: %q, want %q", kind, attribute, body, row.V, want)
		}
	}
}
