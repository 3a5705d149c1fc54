package extract

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"

	"shoal.dev/shoal/pkg/model"
)

// productPage is the page that the project's published figures measure: 28,514 bytes, 690 start
// tags, 736 attributes.
func productPage(t testing.TB) []byte {
	t.Helper()
	page, err := os.ReadFile("../../bench/page/product-page.html")
	if err != nil {
		t.Fatal(err)
	}
	return page
}

var benchFields = []string{"title TEXT h1.title", "price TEXT main .price", "sku TEXT div.sku",
	"stock TEXT div.stock",
	"canonical @href link[rel=canonical]"}

func benchmarkExtract(b *testing.B, r model.Recipe, rows int) {
	page := Page{URL: "http://shop.test/p/1", ContentType: "text/html; charset=utf-8",
		Body: productPage(b)}
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

// BenchmarkFields reads the page's five fields in two ways: by streaming, which stops once it has
// them, and with goquery, with precompiled selectors. The "whole" variants add a sixth field that
// is not on the page. The "last" variants add a field in the last card, behind 39 similar ones, so
// that the position of every tag matters.
func BenchmarkFields(b *testing.B) {
	single := recipe(model.SingleProduct, benchFields...)
	whole := recipe(model.SingleProduct, append(slices.Clone(benchFields), "gone TEXT div.gone")...)
	last := recipe(model.SingleProduct,
		append(slices.Clone(benchFields), "last TEXT aside .card:nth-child(39) .price")...)
	b.Run("streaming", func(b *testing.B) { benchmarkExtract(b, single, 1) })
	b.Run("goquery", func(b *testing.B) { benchmarkGoquery(b, single) })
	b.Run("streaming-whole", func(b *testing.B) { benchmarkExtract(b, whole, 1) })
	b.Run("goquery-whole", func(b *testing.B) { benchmarkGoquery(b, whole) })
	b.Run("streaming-last", func(b *testing.B) { benchmarkExtract(b, last, 1) })
	b.Run("goquery-last", func(b *testing.B) { benchmarkGoquery(b, last) })
}

// BenchmarkMultiple builds a document of the page.
func BenchmarkMultiple(b *testing.B) {
	benchmarkExtract(b, recipe(model.MultipleProducts, "name TEXT .card .n", "price TEXT .price",
		"url @href a"), 40)
}

func benchmarkGoquery(b *testing.B, r model.Recipe) {
	page := productPage(b)
	matchers := make([]goquery.Matcher, len(r.Fields))
	for i, f := range r.Fields {
		matcher, err := cascadia.Compile(f.Selector)
		if err != nil {
			b.Fatal(err)
		}
		matchers[i] = goquery.SingleMatcher(matcher)
	}
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		doc, err := goquery.NewDocumentFromReader(bytes.NewReader(page))
		if err != nil {
			b.Fatal(err)
		}
		row := make(map[string]any, len(matchers))
		for i, f := range r.Fields {
			if found := doc.FindMatcher(matchers[i]); found.Length() == 0 {
				row[f.Name] = nil
			} else if f.Kind == model.Attr {
				row[f.Name], _ = found.Attr(f.Attr)
			} else {
				row[f.Name] = strings.Join(strings.Fields(found.Text()), " ")
			}
		}
		if _, err := json.Marshal(row); err != nil || row["sku"] != "SKU-00012345" {
			b.Fatal(row, err)
		}
	}
}
