package marketplace

import (
	"bytes"
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

// A result list is not a product page, whatever products it shows.
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

// A plugin is complete: its tag is an endpoint's, and the price table has its row.
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

func rowsOf(t *testing.T, endpoint, body string) (string, error) {
	t.Helper()
	m, faults := Compile(model.Recipe{Endpoint: endpoint})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var out rows.Writer
	_, err := m.Read([]page.Page{{URL: "https://shop.test/products/one?variant=1",
		ContentType: "text/html", Body: []byte(body)}}, &out)
	return string(bytes.Join(out.Rows(), []byte("\n"))), err
}

// TestOtherProducts: data and titles of other products do not count, even if they come first.
func TestOtherProducts(t *testing.T) {
	const (
		shopify = "<link href=//cdn.shopify.com/x>"
		other   = `<b data-product='{"id":2,"title":"Two","handle":"two","vendor":"Other",` +
			`"type":"Hat","price":200,"variants":[{"sku":"TWO","price":200}]}'></b>`
		own = `<b data-product='{"id":1,"title":"One","handle":"one","price":100,` +
			`"variants":[{"price":100}]}'></b>`
		meta = `<script>var meta = {"product":{"id":1,"vendor":"Own","variants":[{"sku":"ONE"}]}};` +
			`</script>`
	)
	woo := func(price string) string {
		return `<form data-product_variations='[{"display_price":` + price +
			`,"is_in_stock":true}]'></form>`
	}
	card := func(address, title string) string {
		return `<li class=product><a class="woocommerce-LoopProduct-link" href=/` + address +
			`><h2 class=woocommerce-loop-product__title>` + title + `</h2></a></li>`
	}
	item := func(title, address, sku string) string {
		return `<script type=application/ld+json>{"@type":"Product","name":"` + title +
			`","sku":"` + sku + `","url":"` + address + `"}</script>`
	}
	cards := `<link href=/plugins/woocommerce/><ul class="products">` + card("a", "Twin") +
		card("b", "Twin") + card("c", "Single") + `</ul>` +
		item("Twin", "/x", "TWIN") + item("Single", "/y", "SINGLE")
	for _, c := range []struct {
		name, endpoint, body string
		has, lacks           []string
	}{
		{"by heading", model.ProductPageTag, shopify + "<h1>One</h1>" + other + own + meta,
			[]string{`"One"`, `"Own"`, `"ONE"`, `1.00`}, []string{"Other", "TWO", "Hat", "2.00"}},
		{"by address", model.ProductPageTag, shopify + "<h1>The one</h1>" + other + own + meta,
			[]string{`"Own"`, `1.00`}, []string{"Other", "TWO", "Hat", "2.00"}},
		{"first variations", model.ProductPageTag, "<link href=/plugins/woocommerce/><h1>One</h1>" +
			woo("5.00") + woo("4.00"), []string{"5.00"}, []string{"4.00"}},
		{"twins", model.ProductListTag, cards, []string{`"SINGLE"`}, []string{`"TWIN"`}},
	} {
		found, err := rowsOf(t, c.endpoint, c.body)
		for _, text := range c.has {
			if err != nil || !strings.Contains(found, text) {
				t.Errorf("%s: no %s in %s, %v", c.name, text, found, err)
			}
		}
		for _, text := range c.lacks {
			if strings.Contains(found, text) {
				t.Errorf("%s: %s in %s", c.name, text, found)
			}
		}
	}
}
