package extract

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// productPage is a page like those that the project's figures are about: a navigation, a product whose description is
// long, a table, a grid of related products; some 28 kB with some 700 elements.
func productPage() []byte {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Product 1</title>` +
		`<meta name="description" content="desc 1"><link rel="canonical" href="/p/1"></head>` +
		`<body><div id="wrap" class="page"><nav><ul>`)
	for i := range 40 {
		fmt.Fprintf(&b, `<li class="nav-item"><a href="/c/%d" title="cat %d">Category %d</a></li>`, i, i, i)
	}
	b.WriteString(`</ul></nav><main class="product"><h1 class="title">Product name 1</h1>` +
		`<span class="price" data-cur="USD">645.99</span><div class="sku">SKU-1</div><div class="stock in">In stock</div>` +
		`<div class="desc">`)
	for range 40 {
		b.WriteString("<p>" + strings.Repeat("Lorem ipsum dolor sit amet, <b>consectetur</b> elit &amp; sed do. ", 4) + "</p>")
	}
	b.WriteString(`</div><table class="specs">`)
	for i := range 30 {
		fmt.Fprintf(&b, `<tr><th>Spec %d</th><td>Value %d</td></tr>`, i, i)
	}
	b.WriteString(`</table><aside>`)
	for i := range 40 {
		fmt.Fprintf(&b, `<div class="card"><a href="/p/%d"><img src="/i/%d.jpg" alt="x"><span class="n">Related %d</span>`+
			`<span class="price">%d.50</span></a></div>`, i, i, i, i)
	}
	b.WriteString(`</aside></main><script>var x={a:1};for(var i=0;i<10;i++){x.a+=i<3?1:2}</script></div></body></html>`)
	return []byte(b.String())
}

var benchFields = []string{"title TEXT h1.title", "price TEXT main .price", "sku TEXT div.sku", "stock TEXT div.stock",
	"canonical @href link[rel=canonical]"}

func benchmarkExtract(b *testing.B, r model.Recipe, rows int) {
	page := Page{URL: "http://shop.test/p/1", ContentType: "text/html; charset=utf-8", Body: productPage()}
	e := mustCompile(b, r)
	b.SetBytes(int64(len(page.Body)))
	b.ReportAllocs()
	for b.Loop() {
		got, err := e.Extract(page)
		if err != nil || len(got.Rows) != rows {
			b.Fatalf("%d rows, %v", len(got.Rows), err)
		}
	}
}

func BenchmarkSingle(b *testing.B) {
	benchmarkExtract(b, recipe(model.SingleProduct, benchFields...), 1)
}

// BenchmarkSingleMissing has a field that is not on the page, so that all of it must be read.
func BenchmarkSingleMissing(b *testing.B) {
	benchmarkExtract(b, recipe(model.SingleProduct, append(benchFields, "gone TEXT div.gone")...), 1)
}

func BenchmarkMultiple(b *testing.B) {
	benchmarkExtract(b, recipe(model.MultipleProducts, "name TEXT .card .n", "price TEXT .price", "url @href a"), 40)
}

// BenchmarkOracle is the same page by x/net/html and cascadia, compiling the selectors each time.
func BenchmarkOracle(b *testing.B) {
	page := string(productPage())
	r := recipe(model.SingleProduct, benchFields...)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if rows := oracleRows(b, r, page); len(rows) != 1 {
			b.Fatal(rows)
		}
	}
}
