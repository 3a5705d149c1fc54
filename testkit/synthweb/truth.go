package synthweb

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// Row is the required content of a row, by field name: a string, nil for a missing TEXT or ATTR, a
// bool for EXISTS.
type Row map[string]any

// ProductFields are the fields of product pages, for a scraper of type SINGLE_PRODUCT.
func ProductFields() []model.Field {
	return []model.Field{
		{Name: "title", Selector: "h1.title", Kind: model.Text},
		{Name: "price", Selector: "main .price", Kind: model.Text},
		{Name: "was", Selector: "main .was", Kind: model.Text},
		{Name: "sku", Selector: "div.sku", Kind: model.Text},
		{Name: "stock", Selector: "div.stock", Kind: model.Text},
		{Name: "offer", Selector: ".offer", Kind: model.Exists},
		{Name: "canonical", Selector: "link[rel=canonical]", Kind: model.Attr, Attr: "href"},
	}
}

// ItemFields are the fields of listing pages, for a scraper of type MULTIPLE_PRODUCTS.
func ItemFields() []model.Field {
	return []model.Field{
		{Name: "title", Selector: ".title", Kind: model.Text},
		{Name: "price", Selector: ".price", Kind: model.Text},
		{Name: "was", Selector: ".was", Kind: model.Text},
		{Name: "sku", Selector: ".sku", Kind: model.Text},
		{Name: "stock", Selector: ".stock", Kind: model.Text},
		{Name: "offer", Selector: ".offer", Kind: model.Exists},
		{Name: "link", Selector: "a.link", Kind: model.Attr, Attr: "href"},
	}
}

// ArticleFields are the fields of articles, for a scraper of type SINGLE_PRODUCT.
func ArticleFields() []model.Field {
	return []model.Field{
		{Name: "title", Selector: "h1.title", Kind: model.Text},
		{Name: "author", Selector: ".byline .author", Kind: model.Text},
		{Name: "published", Selector: "time", Kind: model.Attr, Attr: "datetime"},
		{Name: "canonical", Selector: "link[rel=canonical]", Kind: model.Attr, Attr: "href"},
	}
}

// APIFields are the fields of JSON pages, for a scraper of type SINGLE_PRODUCT.
func APIFields() []model.Field {
	return []model.Field{
		{Name: "title", Selector: "$.title", Kind: model.Text},
		{Name: "price", Selector: "$.price", Kind: model.Text},
		{Name: "was", Selector: "$.was", Kind: model.Text},
		{Name: "sku", Selector: "$.sku", Kind: model.Text},
		{Name: "stock", Selector: "$.stock", Kind: model.Text},
		{Name: "offer", Selector: "$.was", Kind: model.Exists},
		{Name: "canonical", Selector: "$.url", Kind: model.Text},
	}
}

// NextSelector selects a listing's link to its next page.
const NextSelector = "a[rel=next]"

// Truth is what a correct run that starts at an address finds.
type Truth struct {
	URL   string
	Class Class
	Slow  bool // the site is one of the SlowHosts
	// Pages are the pages of the run's unit chain in order: one, except for listings. Rows have the
	// ProductFields, on listings the ItemFields, on articles the ArticleFields, and on JSON the
	// APIFields.
	Pages []Page
	// RepeatsLast says what pagination by ?page=N finds after the last of Pages. True: that page
	// again, byte for byte. False: a page without rows. A chain whose last page is an error ends
	// with it.
	RepeatsLast bool
}

// Page is the truth of one page.
type Page struct {
	URL     string        // as listed, or as in the link to it
	Hops    []string      // where redirects lead, in order
	Outcome model.Outcome // Delivered or Errored
	Rows    []Row
	// Changes: the rows' stock says which fetch produced them (FetchOf); Rows are those of the
	// first.
	Changes bool
	// Fails is how many requests fail before one succeeds.
	Fails  int
	Codes  []fault.Code // of an error; any of them is right
	Status int          // of an http_status error
}

// FinalURL is where the page was found: the last hop, or its own address.
func (p Page) FinalURL() string {
	if len(p.Hops) > 0 {
		return p.Hops[len(p.Hops)-1]
	}
	return p.URL
}

// Truth returns what a run from an address must find, with the plain tier and obeying robots.txt.
// The run needs more attempts than Config.Fails and more patience than SlowLatency and DripTime.
// Addresses that are not a page of the web are true 404s; those of other hosts are errors.
func (w *Web) Truth(address string) (Truth, error) {
	p, err := w.pageAt(address)
	if err != nil {
		return Truth{}, err
	}
	host := int(p.host)
	truth := Truth{URL: address, Class: p.class, Slow: w.slow(host), RepeatsLast: w.repeatsLast(p)}
	if !p.class.isListing() {
		truth.Pages = []Page{w.pageTruth(p, address)}
		return truth, nil
	}
	last := int32(w.chainPages(host, int(p.n)))
	if p.class == BrokenListing {
		last++
	}
	for first := p.turn; p.turn == first || p.turn <= last; p.turn++ {
		at := address
		if p.turn > first {
			at = w.url(p)
		}
		truth.Pages = append(truth.Pages, w.pageTruth(p, at))
	}
	return truth, nil
}

// pageAt returns the page for an address of this web.
func (w *Web) pageAt(address string) (page, error) {
	u, err := url.Parse(address)
	if err != nil {
		return page{}, fmt.Errorf("synthweb: %w", err)
	}
	host, ok := w.hosts[u.Hostname()]
	if !ok || u.Scheme+"://" != w.scheme() {
		return page{}, fmt.Errorf("synthweb: %q is not of this web", address)
	}
	return w.parse(host, u.RequestURI()), nil
}

// pageTruth is the truth of a single page.
func (w *Web) pageTruth(p page, address string) Page {
	p = p.shown()
	t := Page{URL: address, Outcome: model.Delivered, Changes: p.class.isChanging()}
	switch p.class {
	case Reset, Truncated:
		return t.errored(fault.PageConnect, fault.PageProtocol)
	case Stall:
		return t.errored(fault.PageTimeout)
	case NotHTML:
		return t.errored(fault.PageNotHTML)
	case RedirectLoop:
		return t.errored(fault.PageRedirects)
	case Private:
		if w.robots(int(p.host)) == RobotsDisallow {
			return t.errored(fault.PageRobots)
		}
	case robotsTxt, sitemap:
		return t.errored(fault.PageNotHTML)
	case Flaky, Busy:
		t.Fails = w.config.Fails
	case Redirect, hop:
		for next, ok := w.next(p); ok; next, ok = w.next(p) {
			p = next
			t.Hops = append(t.Hops, w.url(p))
		}
	}
	if status := w.status(p, t.Fails+1); status != 200 {
		t = t.errored(fault.PageStatus)
		t.Status = status
		return t
	}
	t.Rows = w.rows(p)
	if len(t.Rows) == 0 {
		return t.errored(fault.PageNoRows)
	}
	return t
}

func (p Page) errored(codes ...fault.Code) Page {
	p.Outcome, p.Codes = model.Errored, codes
	return p
}

// rows returns the rows of a page that answers 200, as of its first fetch.
func (w *Web) rows(p page) []Row {
	host, n := int(p.host), int(p.n)
	switch {
	case p.class == templated:
		return []Row{w.templateRow(p)}
	case p.class.isListing():
		if int(p.turn) > w.chainPages(host, n) && w.repeatsLast(p) {
			p.turn = int32(w.chainPages(host, n))
		}
		var rows []Row
		from, to := w.itemRange(p)
		for i := from; i < to; i++ {
			g := w.goodsOf(host, n, i+1)
			if p.class.isChanging() {
				g.stock = fetchStock(1)
			}
			row := g.row()
			row["link"] = w.url(w.itemPage(p, i))
			rows = append(rows, row)
		}
		return rows
	case p.class == Empty || p.class == front:
		return nil
	case p.class == Article:
		return []Row{w.articleRow(p)}
	}
	row := w.goodsAt(p, 1).row()
	row["canonical"] = w.url(p)
	return []Row{row}
}

func (g goods) row() Row {
	row := Row{"title": g.title, "price": g.price, "was": nil, "sku": g.sku, "stock": g.stock,
		"offer": g.offer}
	if g.offer {
		row["was"] = g.was
	}
	return row
}

// templateRow is TemplateRow with the address's number in it.
func (w *Web) templateRow(p page) Row {
	number := fmt.Appendf(nil, "%05d", w.number(p))
	row := maps.Clone(w.config.TemplateRow)
	for name, value := range row {
		if text, ok := value.(string); ok {
			row[name] = string(bytes.ReplaceAll([]byte(text), []byte(templateNumber), number))
		}
	}
	return row
}
