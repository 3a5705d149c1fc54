package measure

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// extractions returns the cases: each engine on its kind of pages.
func extractions() ([]extraction, error) {
	cases := slices.Concat(cssExtractions(), languageExtractions(), typeExtractions())
	var all []extraction
	for _, c := range cases {
		pages, err := pagesOf(c.web)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if c.change != nil {
			for i := range pages {
				pages[i].Body = c.change(pages[i].Body)
			}
		}
		all = append(all, extraction{c.name, c.recipe, c.parser, pages})
	}
	return all, nil
}

// extractionOf is a case whose pages are not made yet.
type extractionOf struct {
	name   string
	recipe model.Recipe
	parser extract.Parser
	web    synthweb.Config
	change func(body []byte) []byte // applied to each page; nil: none
}

func single(fields []model.Field) model.Recipe {
	return model.Recipe{Type: model.SingleProduct, Fields: fields}
}

// pagesLike is a web of pages of one class.
func pagesLike(class synthweb.Class, size int) synthweb.Config {
	return synthweb.Config{Hosts: 8, PagesPerHost: extractPages / 8, PageBytes: []int{size},
		ItemsPerPage: 24,
		Mix:          synthweb.Mix{{Class: class, Weight: 1}}}
}

func cssExtractions() []extractionOf {
	cases := []extractionOf{
		{"CSS, five fields of the page", single(page.Fields(false)), extract.Streaming,
			page.Web(extractPages), nil},
		{"CSS, and a field is missing", single(page.Fields(true)), extract.Streaming,
			page.Web(extractPages), nil},
		{"CSS, five fields, by goquery", single(page.Fields(false)), extract.Tree,
			page.Web(extractPages), misnested},
	}
	for _, size := range []int{10_000, 28_000, 100_000, 300_000} {
		fields := withoutOptional(synthweb.ProductFields())
		name, web := fmt.Sprintf("CSS, product, %d KB", size/1000),
			pagesLike(synthweb.Product, size)
		cases = append(cases, extractionOf{name, single(fields), extract.Streaming, web, nil},
			extractionOf{name + ", a field is missing",
				single(append(fields, page.Fields(true)[5])), extract.Streaming, web, nil})
	}
	return append(cases,
		extractionOf{"CSS, listing, a row an item",
			model.Recipe{Type: model.MultipleProducts, Fields: synthweb.ItemFields()},
			extract.Streaming, pagesLike(synthweb.Listing, 28_000), nil},
		extractionOf{"CSS, article, 100 KB", single(synthweb.ArticleFields()), extract.Streaming,
			pagesLike(synthweb.Article, 100_000), nil})
}

// misnested puts HTML where SVG does not allow it. That ends the SVG, which streaming leaves to the
// tree parser.
func misnested(body []byte) []byte {
	return bytes.Replace(body, []byte("<main"), []byte("<svg><p>moved</p></svg><main"), 1)
}

func languageExtractions() []extractionOf {
	return []extractionOf{
		{"XPath, five fields of the page", single(xpathFields()), extract.Streaming,
			page.Web(extractPages), nil},
		{"JSONPath, 28 KB of JSON", single(synthweb.APIFields()), extract.NoParser,
			pagesLike(synthweb.API, 28_000), nil},
		{"JSON-LD, product, 28 KB", model.Recipe{Type: model.ApplicationLDJSON}, extract.NoParser,
			pagesLike(synthweb.LinkedData, 28_000), nil},
		{"microdata, product, 28 KB", model.Recipe{Type: model.ApplicationLDJSON, HiddenData: true},
			extract.NoParser,
			pagesLike(synthweb.Product, 28_000), marked},
	}
}

// xpathFields are the five fields in XPath.
func xpathFields() []model.Field {
	fields := slices.Clone(page.Fields(false))
	for i, selector := range []string{"//h1[@class='title']", "//main//*[contains(@class,'price')]",
		"//div[@class='sku']",
		"//div[contains(@class,'stock')]", "//link[@rel='canonical']"} {
		fields[i].Selector = selector
	}
	return fields
}

// marked adds microdata to a product page.
func marked(body []byte) []byte {
	for _, mark := range [][2]string{
		{"<main", `<main itemscope itemtype="https://schema.org/Product"`},
		{`class="title"`, `class="title" itemprop="name"`},
		{`<p><span class="price"`,
			`<p itemprop="offers" itemscope itemtype="https://schema.org/Offer"><span class="price" itemprop="price"`},
		{`class="currency"`, `class="currency" itemprop="priceCurrency"`},
		{`class="sku"`, `class="sku" itemprop="sku"`},
	} {
		body = bytes.Replace(body, []byte(mark[0]), []byte(mark[1]), 1)
	}
	return body
}

func typeExtractions() []extractionOf {
	schema := []byte(`{"type":"object","properties":{"name":{"type":"string"},"price":{"type":"number"},"sku":{"type":"string"}},` +
		`"required":["name"]}`)
	stated, products, lists := pagesLike(synthweb.LinkedData, 28_000),
		pagesLike(synthweb.Product, 28_000), pagesLike(synthweb.Listing, 28_000)
	return []extractionOf{
		{"AI_CONF, three properties that the page states",
			model.Recipe{Type: model.AIConf, Schema: schema}, extract.NoParser, stated, nil},
		{"detection, product, 28 KB", model.Recipe{Type: model.Detection}, extract.NoParser,
			products, nil},
		{"detection, listing", model.Recipe{Type: model.Detection}, extract.NoParser, lists, nil},
		{"contacts, 28 KB", model.Recipe{Endpoint: model.WebsiteContacts}, extract.NoParser,
			products, reachable},
		{"marketplace, product, 28 KB",
			model.Recipe{Type: model.Marketplace, Endpoint: model.ProductPageTag}, extract.NoParser,
			stated, nil},
	}
}

// reachable adds an e-mail address to a page.
func reachable(body []byte) []byte {
	return bytes.Replace(body, []byte("<footer>"),
		[]byte(`<footer><a href="mailto:orders@shop-00000.example">Write to us</a>`), 1)
}

// withoutOptional returns the fields that every product page has.
func withoutOptional(fields []model.Field) []model.Field {
	return slices.DeleteFunc(fields,
		func(f model.Field) bool { return f.Name == "was" || f.Name == "offer" })
}

// pagesOf returns the pages of a web, each as first answered.
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
		pages = append(pages, extract.Page{URL: address, Asked: address, ContentType: contentType,
			Body: body,
			At:   time.Unix(1_800_000_000, 0)})
	}
	return pages, nil
}
