package marketplace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		recipe model.Recipe
		field  string
	}{
		{model.Recipe{}, ""}, {model.Recipe{Endpoint: "/plugin/marketplace/search"}, ""},
		{model.Recipe{Endpoint: "/plugin/other"}, "config.endpointTag"},
		{model.Recipe{Fields: []model.Field{{Name: "a"}}}, "itemsConfig"},
	} {
		_, faults := Compile(c.recipe)
		if c.field == "" && len(faults) > 0 || c.field != "" &&
			(len(faults) != 1 || faults[0].Field != c.field) {
			t.Errorf("%+v: %v", c.recipe, faults)
		}
	}
}

func TestOtherMedia(t *testing.T) {
	m, _ := Compile(model.Recipe{})
	var out rows.Writer
	for _, p := range []page.Page{{URL: "https://shop.test/", ContentType: "application/pdf",
		Body: []byte("%PDF")},
		{URL: "https://shop.test/", Body: []byte(`{"a":1}`)}} {
		if _, err := m.Read([]page.Page{p}, &out); fault.CodeOf(err) != fault.PageNotHTML {
			t.Errorf("%q: %v", p.ContentType, err)
		}
	}
}

// A result list is no product page, whatever stands on it of products.
func TestListsAreNoProducts(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("search", "testdata", "*.html"))
	if err != nil || len(pages) < 7 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	m, _ := Compile(model.Recipe{})
	for _, path := range pages {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out rows.Writer
		if _, err := m.Read([]page.Page{{URL: "https://shop.test/list", ContentType: "text/html",
			Body: body}}, &out); err != nil || len(out.Rows()) > 0 {
			t.Errorf("%s: %q, %v", path, out.Rows(), err)
		}
	}
}

// A plugin is whole: its tag is an endpoint's, and the price table has its row.
func TestPlugins(t *testing.T) {
	for _, tag := range Tags() {
		endpoint, known := model.EndpointOf(tag)
		if !known || !strings.HasPrefix(tag, "/plugin/marketplace/") {
			t.Errorf("%q is no plugin's tag", tag)
		}
		if row, priced := price.Standard().Row(endpoint.Charge.Row); !priced ||
			row.Kind != price.Plugin {
			t.Errorf("%s is charged as %+v, its price is %+v", tag, endpoint.Charge, row)
		}
	}
	if Tags()[0] != model.ProductPageTag {
		t.Errorf("the default is %s", Tags()[0])
	}
}
