package extract_test

import (
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// TestAddressesEndEarly: an address needs the page's base element, wherever that is. Reading still
// ends early once no base element can follow, so odd markup after that place goes unseen.
func TestAddressesEndEarly(t *testing.T) {
	const page, rest = `<html><body><p>text</p><a class="link" href="to">there</a><p>&#65;</p>`,
		`<plaintext>`
	extractor, err := extract.Compile(model.Recipe{Type: model.SingleProduct, Fields: []model.Field{
		{Name: "link", Selector: "a.link", Kind: model.Attr, Attr: "href"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body, want string
		parser     extract.Parser
	}{
		{page + rest, `{"link":"http://a.example/to"}`, extract.Streaming},
		{page + "<p>text <b>in bold</b>, and a basement" + rest,
			`{"link":"http://a.example/to"}`, extract.Streaming},
		{page + `<BaSe href="http://b.example/">`, `{"link":"http://b.example/to"}`,
			extract.Streaming},
		{page + `<BASE href="http://c.example/"><base href="http://b.example/">`,
			`{"link":"http://c.example/to"}`, extract.Streaming},
		{page + `<b<base href="http://b.example/">` + rest, `{"link":"http://a.example/to"}`,
			extract.Streaming},
		{page + "<bas", `{"link":"http://a.example/to"}`, extract.Streaming},
		{page + `<base href="http://b.example/">` + rest, `{"link":"http://b.example/to"}`,
			extract.Streaming},
		{page + `<script>"<base"</script>` + rest, `{"link":"http://a.example/to"}`,
			extract.Streaming},
		{page + rest + `<base href="http://b.example/">`, `{"link":"http://a.example/to"}`,
			extract.Tree},
	} {
		got, err := extractor.Extract(extract.Page{URL: "http://a.example/x",
			ContentType: "text/html", Body: []byte(c.body)})
		if err != nil || len(got.Rows) != 1 || string(got.Rows[0]) != c.want ||
			got.Parser != c.parser {
			t.Errorf("%s: %s by %v, %v; want %s by %v", c.body, got.Rows, got.Parser, err, c.want,
				c.parser)
		}
	}
}
