package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// Extract measures page → rows: each engine on the pages that it is for, without fetching any.
type Extract struct {
	Time time.Duration `help:"Of each case." default:"1s"`
}

// Help says what the figures are.
func (*Extract) Help() string {
	return `One goroutine extracts rows from pages in memory: the page that the project's figures are about, and pages of the synthetic
web of 10, 28, 100 and 300 KB. Time is processor time, that of the garbage collector included.

Where all fields stand in a page's beginning, extraction stops reading there; "a field is missing" makes it read all.

Example: shoal bench extract --time 3s`
}

// pages of a case: enough that no page is what the processor's caches hold.
const extractPages = 64

// extraction is one case.
type extraction struct {
	name   string
	recipe model.Recipe
	pages  []extract.Page
}

// Measure measures all cases.
func (m *Extract) Measure(ctx context.Context, on *Bench, report *Report) error {
	if err := positive(map[string]time.Duration{"time": m.Time}); err != nil {
		return err
	}
	cases, err := extractions()
	if err != nil {
		return err
	}
	table := report.table("Page → rows, one goroutine:", "case", "page, KB", "CPU a page, µs", "MB/s", "rows a page",
		"allocations a page", "KB allocated a page")
	for _, c := range cases {
		extractor, err := extract.Compile(c.recipe)
		if err != nil {
			report.note("%s: this build has no such engine: %v", c.name, err)
			continue
		}
		on.Say("extract: %s", c.name)
		if err := m.measure(ctx, c, extractor, table); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (m *Extract) measure(ctx context.Context, c extraction, extractor *extract.Extractor, table *Table) error {
	var pages, rows, bytes int
	read := func(until func(pages int) bool) error {
		for pages = 0; !until(pages); pages++ {
			p := c.pages[pages%len(c.pages)]
			got, err := extractor.Extract(p)
			if err != nil || len(got.Rows) == 0 {
				return fmt.Errorf("%s: %d rows, %w", p.URL, len(got.Rows), err)
			}
			rows, bytes = rows+len(got.Rows), bytes+len(p.Body)
		}
		return nil
	}
	if err := read(func(pages int) bool { return pages == len(c.pages) }); err != nil { // to warm up
		return err
	}
	rows, bytes = 0, 0
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, err := ownCPU()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(m.Time)
	err = read(func(pages int) bool {
		return pages > 0 && pages%16 == 0 && (time.Now().After(deadline) || ctx.Err() != nil)
	})
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return err
	}
	now, err := ownCPU()
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	spent, n := now-cpu, float64(pages)
	table.add(c.name, float64(bytes)/n/1000, micros(spent)/n, float64(bytes)/1e6/spent.Seconds(), float64(rows)/n,
		float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n/1000)
	return nil
}

// extractions are the cases.
func extractions() ([]extraction, error) {
	var cases []extraction
	var failed error
	add := func(name string, recipe model.Recipe, config synthweb.Config) {
		pages, err := pagesOf(config)
		if err != nil && failed == nil {
			failed = err
		}
		cases = append(cases, extraction{name, recipe, pages})
	}
	single := func(fields []model.Field) model.Recipe {
		return model.Recipe{Type: model.SingleProduct, Fields: fields}
	}
	only := func(class synthweb.Class, size int) synthweb.Config {
		return synthweb.Config{Hosts: 8, PagesPerHost: extractPages / 8, PageBytes: []int{size}, ItemsPerPage: 24,
			Mix: synthweb.Mix{{Class: class, Weight: 1}}}
	}
	add("CSS, five fields of the page", single(page.Fields(false)), page.Web(extractPages))
	add("CSS, and a field is missing", single(page.Fields(true)), page.Web(extractPages))
	for _, size := range []int{10_000, 28_000, 100_000, 300_000} {
		add(fmt.Sprintf("CSS, product, %d KB", size/1000), single(withoutOptional(synthweb.ProductFields())),
			only(synthweb.Product, size))
		add(fmt.Sprintf("CSS, product, %d KB, a field is missing", size/1000),
			single(append(withoutOptional(synthweb.ProductFields()), page.Fields(true)[5])), only(synthweb.Product, size))
	}
	add("CSS, listing, a row an item", model.Recipe{Type: model.MultipleProducts, Fields: synthweb.ItemFields()},
		only(synthweb.Listing, 28_000))
	add("CSS, article, 100 KB", single(synthweb.ArticleFields()), only(synthweb.Article, 100_000))
	add("XPath, five fields of the page", single(xpathFields()), page.Web(extractPages))
	add("JSONPath, 28 KB of JSON", single(synthweb.APIFields()), only(synthweb.API, 28_000))
	add("JSON-LD, product, 28 KB", model.Recipe{Type: model.ApplicationLDJSON}, only(synthweb.LinkedData, 28_000))
	return cases, failed
}

// xpathFields are the five fields in the other language.
func xpathFields() []model.Field {
	fields := slices.Clone(page.Fields(false))
	for i, selector := range []string{"//h1[@class='title']", "//main//*[contains(@class,'price')]", "//div[@class='sku']",
		"//div[contains(@class,'stock')]", "//link[@rel='canonical']"} {
		fields[i].Selector = selector
	}
	return fields
}

// withoutOptional leaves the fields that every product page has.
func withoutOptional(fields []model.Field) []model.Field {
	return slices.DeleteFunc(fields, func(f model.Field) bool { return f.Name == "was" || f.Name == "offer" })
}

// pagesOf are the pages of a web that are there at once.
func pagesOf(config synthweb.Config) ([]extract.Page, error) {
	w, err := synthweb.New(config)
	if err != nil {
		return nil, err
	}
	var pages []extract.Page
	for address := range w.URLs(extractPages) {
		body, contentType, err := w.Body(address)
		if err != nil {
			return nil, err
		}
		pages = append(pages, extract.Page{URL: address, ContentType: contentType, Body: body})
	}
	return pages, nil
}
