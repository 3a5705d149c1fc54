package shop

import (
	"context"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/pattern"
)

// TestCostlyPages: the work of a system's selectors is paid for, whatever the page contains.
func TestCostlyPages(t *testing.T) {
	repeat := strings.Repeat
	product := func(r *Reader, p *Page) { r.Product(p) }
	list := func(r *Reader, p *Page) { r.List(p) }
	shared := `<script type=application/ld+json>{"@type":"Offer","@id":"#o","offers":[` +
		repeat("{},", 20_000) + `{}]}</script><script type=application/ld+json>[` +
		repeat(`{"@type":"Product","name":"x","offers":{"@id":"#o"}},`, 1_000) + `{}]</script>`
	for _, c := range []struct {
		name, body string
		read       func(*Reader, *Page)
		costly     bool
	}{
		{"a list", repeat("<div class='product-card a b c'><p><a href=/x>x</a>"+
			"<b class=price>1</b></p></div>", 100), list, false},
		{"a long attribute", `<div class="` + repeat("x ", 1<<19) + `">` +
			repeat("<b class=price-item--sale></b>", 10_000), product, true},
		{"nested cards", repeat("<div class=product-card>", 480) + repeat("<b></b>", 50_000), list,
			true},
		{"white space", repeat("<div class=product__price>", 480) + repeat(" ", 4<<20), product,
			true},
		{"offers that are shared", shared, list, true},
	} {
		p, err := Open(context.Background(), page.Page{URL: "https://shop.test/",
			ContentType: "text/html", Body: []byte("<link href=//cdn.shopify.com/x>" + c.body)})
		if err != nil {
			t.Fatal(err)
		}
		p.work = pattern.NewBudget(context.Background(), maxWork/10)
		c.read(NewReader(), p)
		if costly := fault.CodeOf(p.Err()) == fault.PageTooCostly; costly != c.costly {
			t.Errorf("%s: %v, %d steps left", c.name, p.Err(), p.work.Left())
		}
	}
}
