package suite

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// SearchPrice is the price of a page of search results, in micros.
const SearchPrice = 1500

// shopPage is a product page of a shop system: all addresses of a web show it with their number.
const shopPage = `<!doctype html><html><head><title>Oak chair 12345</title><link rel="canonical" href="http://goods.example/chair-12345">
<link rel="stylesheet" href="//cdn.shopify.com/s/files/theme.css"><script>Shopify.theme = {"id":1}</script>
<script type="application/ld+json">{"@context":"https://schema.org","@type":"Product","name":"Oak chair 12345","sku":"OC-12345",
"brand":{"@type":"Brand","name":"Ashby"},"image":"https://goods.example/chair.jpg",
"offers":{"@type":"Offer","price":"149.90","priceCurrency":"EUR","availability":"https://schema.org/InStock"}}</script></head>
<body><h1 class="product__title">Oak chair 12345</h1><p>A chair that lasts.</p></body></html>`

// ShopWeb is a web of such pages, and of what MARKETPLACE reads from them.
func ShopWeb(hosts, pages int, latency time.Duration) synthweb.Config {
	return synthweb.Config{Seed: 5, Hosts: hosts, PagesPerHost: pages, Template: []byte(shopPage),
		MaxLatency: latency,
		TemplateRow: synthweb.Row{"position": nil, "title": "Oak chair 12345",
			"url": "http://goods.example/chair-12345", "price": 149.9,
			"priceMax": nil, "listPrice": nil, "currency": "EUR", "availability": "IN_STOCK",
			"condition": nil, "brand": "Ashby",
			"sku": "OC-12345", "gtin": nil, "mpn": nil, "productId": nil, "category": nil,
			"rating": nil, "reviewCount": nil,
			"image":  "https://goods.example/chair.jpg",
			"images": []any{"https://goods.example/chair.jpg"}, "description": nil,
			"platform": "shopify"}}
}

// LaunchShops launches a list run that the plugin for product pages reads.
func LaunchShops(t *testing.T, who Client, urls []string) (run Launched, group string) {
	t.Helper()
	group = Must(who.PutGroup(t.Context(), "shops "+NewKey()))(t)
	run = Must(who.Tagged(t.Context(), group, "shops", model.ProductPageTag, urls))(t)
	if run.LinksQueued != len(urls) || run.Tag != model.ProductPageTag {
		t.Fatalf("launch of %d addresses answers %+v", len(urls), run)
	}
	return run, group
}

// Searches is a test's own search engine, and its answers.
type Searches struct {
	queries []string
	truth   map[string]synthweb.Truth // by address of the first page
}

// searchPages is the number of pages per query.
const searchPages = 2

// NewSearches makes the engine's web and its known queries.
func NewSearches(queries int, latency time.Duration) (*Searches, synthweb.Config) {
	s := &Searches{truth: map[string]synthweb.Truth{}}
	config := synthweb.Config{Suffix: "test", Names: []string{"engine"}, PagesPerHost: 1,
		Texts: map[string]string{}, MaxLatency: latency}
	for n := range queries {
		query := fmt.Sprintf("oak chair %d & more", n)
		s.queries = append(s.queries, query)
		first := "http://engine.test/find?q=" + url.QueryEscape(query)
		truth := synthweb.Truth{URL: first}
		for page := 1; page <= searchPages; page++ {
			at := first
			if page > 1 {
				at += fmt.Sprintf("&p=%d", page)
			}
			body, rows := "", []synthweb.Row{}
			for position := 1; position <= 3; position++ {
				title, target := fmt.Sprintf("Chair %d.%d.%d", n, page, position),
					fmt.Sprintf("https://chairs.example/%d/%d/%d", n, page, position)
				body += fmt.Sprintf(`<div class="hit"><a class="t" href="/go?url=%s">%s</a></div>`,
					url.QueryEscape(target), title)
				rows = append(rows,
					synthweb.Row{"position": float64(position), "title": title, "url": target,
						"snippet": nil, "kind": "organic",
						"query": query, "page": float64(page)})
			}
			config.Texts[strings.TrimPrefix(at, "http://")] = "<html><body>" + body +
				"</body></html>"
			truth.Pages = append(truth.Pages,
				synthweb.Page{URL: at, Outcome: model.Delivered, Rows: rows})
		}
		s.truth[first] = truth
	}
	return s, config
}

// Engines writes the file of --search-engines.
func (s *Searches) Engines(t *testing.T) string {
	t.Helper()
	engines := []model.SearchEngine{{Name: "own", URL: "http://engine.test/find?q={query}",
		PageParam: "p", Results: []model.Field{
			{Name: "title", Selector: "a.t", Kind: model.Text},
			{Name: "url", Selector: "a.t", Kind: model.Attr, Attr: "href"}}}}
	text := Must(json.Marshal(engines))(t)
	path := filepath.Join(t.TempDir(), "engines.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Launch launches a scraper that searches for all queries.
func (s *Searches) Launch(t *testing.T, who Client) (run Launched, scraper string) {
	t.Helper()
	group := Must(who.PutGroup(t.Context(), "searches "+NewKey()))(t)
	most := searchPages
	scraper = Must(who.PutScraper(t.Context(),
		Scraper{GroupRef: group,
			Scraper: model.Scraper{Name: "searches", Type: model.SearchEngineSearch,
				SourceConfig: model.SourceConfig{Queries: s.queries,
					Pagination: &model.Pagination{Type: model.URLPageParam, Max: &most}}}}))(t)
	return Must(who.RunScraper(t.Context(), scraper))(t), scraper
}

// Expected describes the run for the recount.
func (s *Searches) Expected(web *synthweb.Web) recount.Run {
	most := searchPages
	endpoint, _ := model.EndpointOf(model.SearchTag)
	run := recount.Run{Web: web, Price: SearchPrice, Charge: endpoint.Charge, Free: FreeGrant,
		Pagination: model.Pagination{Type: model.NextLink, Max: &most},
		Truth:      func(address string) (synthweb.Truth, error) { return s.truth[address], nil }}
	for _, query := range s.queries {
		run.URLs = append(run.URLs, "http://engine.test/find?q="+url.QueryEscape(query))
	}
	return run
}
