package extract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// words has more letters than a page that scripts fill.
var words = strings.Repeat("<p>Some words of a page. ", 40)

func TestReasons(t *testing.T) {
	field := func(name, selector string) model.Field {
		return model.Field{Name: name, Selector: selector, Kind: model.Text}
	}
	one := model.Recipe{Type: model.SingleProduct, Fields: []model.Field{field("title", "h9"),
		field("price", "//b[@class='price']"),
		{Name: "note", Selector: ".note", Kind: model.Attr, Attr: "href"}}}
	list := model.Recipe{Type: model.MultipleProducts,
		Fields: []model.Field{field("name", ".card h3")}}
	links := model.Recipe{Type: model.MultipleProducts, Fields: []model.Field{
		{Name: "link", Selector: ".card", Kind: model.Attr, Attr: "href"}}}
	paths := model.Recipe{Type: model.MultipleProducts,
		Fields: []model.Field{field("id", "$.items[*].id")}}
	html := "text/html; charset=utf-8"
	for _, test := range []struct {
		name     string
		recipe   model.Recipe
		media    string
		body     string
		rendered bool
		want     string
	}{
		{"empty", one, html, "<!doctype html><title>Shop</title>", false, "The page is empty."},
		{"by scripts", one, html, `<div id="root"></div><noscript>` + words +
			`</noscript><script src="app.js"></script>`, false, "allow the tier render"},
		{"by scripts, rendered", one, html, `<div id="root"></div><script src="app.js"></script>`,
			true, "in a browser too"},
		{"fields", one, html, words + `<i class="note"></i>`, false,
			"Nothing matches title (h9) and price (//b[@class='price']). "},
		{"first field", list, html, words, false, "Nothing matches name (.card h3). "},
		{"matched, but empty", links, html, words + `<div class="card"></div>`, false,
			"what they match is empty"},
		{"JSON", paths, "application/json", `{"items":[]}`, false,
			"Nothing matches id ($.items[*].id). "},
		{"structured", model.Recipe{Type: model.ApplicationLDJSON}, html, words, false,
			"tryWithHiddenData"},
		{"detection", model.Recipe{Type: model.Detection}, html, words, false,
			"Nothing on the page repeats"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := extract.Compile(test.recipe)
			if err != nil {
				t.Fatal(err)
			}
			p := extract.Page{URL: "https://shop.test/", ContentType: test.media,
				Body: []byte(test.body)}
			result, err := e.Extract(p)
			if err != nil || len(result.Rows) > 0 {
				t.Fatalf("%d rows, %v", len(result.Rows), err)
			}
			got := e.Explain(context.Background(), p, test.rendered)
			if !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A short page names its fields, too: a script on it may only count visitors. It says that scripts
// may fill the page up to the edge alone.
func TestReasonsOfShortPages(t *testing.T) {
	e, err := extract.Compile(model.Recipe{Type: model.SingleProduct,
		Fields: []model.Field{{Name: "title", Selector: ".nope", Kind: model.Text}}})
	if err != nil {
		t.Fatal(err)
	}
	const (
		counter = "<script>gtag('config')</script>"
		fields  = "Nothing matches title (.nope). Compare the selectors with the page as it is " +
			"now, or propose a scraper for it anew."
		browser = " The page has scripts and little text: maybe it needs a browser, the tier render."
		little  = " The page shows little text, in a browser too."
	)
	for _, test := range []struct {
		letters  int
		script   string
		rendered bool
		want     string
	}{
		{1, counter, false, fields + browser},
		{199, counter, false, fields + browser},
		{199, counter, true, fields + little},
		{200, counter, false, fields},
		{200, counter, true, fields},
		{1, "", false, fields},
		{1, "", true, fields},
	} {
		body := "<title>Lamp</title><p>" + strings.Repeat("x", test.letters) + test.script
		p := extract.Page{URL: "https://shop.test/", ContentType: "text/html", Body: []byte(body)}
		got := e.Explain(context.Background(), p, test.rendered)
		if got != test.want {
			t.Errorf("%d letters, script %q, rendered %t: %q", test.letters, test.script,
				test.rendered, got)
		}
	}
	// What has nothing else to say still says that.
	e, err = extract.Compile(model.Recipe{Type: model.SingleProduct, Fields: []model.Field{{
		Name: "title", Selector: "$.embedded.shop.title", Kind: model.Text}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Explain(context.Background(), extract.Page{URL: "https://shop.test/",
		ContentType: "text/html", Body: []byte("<p>Lamp" + counter)}, false); " "+got != browser {
		t.Errorf("%q", got)
	}
}

// A reason stays within its bound, however long field names and selectors are. It still says what
// to try, and how many fields it does not name.
func TestReasonsAreBounded(t *testing.T) {
	r := model.Recipe{Type: model.SingleProduct}
	for i := range 300 {
		r.Fields = append(r.Fields, model.Field{Name: strings.Repeat("ü", 200) + fmt.Sprint(i),
			Selector: strings.Repeat("ü", 300), Kind: model.Text})
	}
	e, err := extract.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	const (
		anew = "Compare the selectors with the page as it is now, or propose a scraper for it anew."
		note = " The page has scripts and little text: maybe it needs a browser, the tier render."
	)
	for body, end := range map[string]string{words: " and 298 more. " + anew,
		"<p>Lamp<script></script>": " and 299 more. " + anew + note} {
		got := e.Explain(context.Background(), extract.Page{URL: "https://shop.test/",
			ContentType: "text/html", Body: []byte(body)}, false)
		if len(got) > extract.MaxReason || !utf8.ValidString(got) || !strings.HasSuffix(got, end) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
