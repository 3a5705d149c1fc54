package shop

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/tree"
)

// Reader reads pages of all known systems. It is safe for concurrent use.
type Reader struct {
	products map[string]reading
	cards    map[string]reading
	lists    map[string][]*selector
	breads   []place
	heading  []place
}

// reading is a compiled places map.
type reading map[string][]place

// place is one alternative. Without a selector, it stands for the element itself.
type place struct {
	css  *selector
	attr string
}

// NewReader compiles the tables of all known systems.
func NewReader() *Reader {
	r := &Reader{products: map[string]reading{}, cards: map[string]reading{},
		lists: map[string][]*selector{},
		breads: compile(".breadcrumb li | .breadcrumbs li | nav[aria-label=breadcrumb] a | " +
			".woocommerce-breadcrumb a | .breadcrumb a"),
		heading: compile("h1")}
	for _, known := range platforms {
		r.products[known.name], r.cards[known.name] = known.product.compile(), known.card.compile()
		for _, css := range known.cards {
			r.lists[known.name] = append(r.lists[known.name], mustCompile(css))
		}
	}
	return r
}

func (p places) compile() reading {
	compiled := reading{}
	for field, alternatives := range p {
		compiled[field] = compile(alternatives)
	}
	return compiled
}

func compile(alternatives string) []place {
	var list []place
	for alternative := range strings.SplitSeq(alternatives, " | ") {
		css, attr, _ := strings.Cut(alternative, "@")
		found := place{attr: attr}
		if css != "&" {
			found.css = mustCompile(css)
		}
		list = append(list, found)
	}
	return list
}

// value returns the place's value in the matched element n.
func (pl place) value(p *Page, n *html.Node) string {
	switch pl.attr {
	case "":
		return p.text(n)
	case "image":
		return p.image(n)
	}
	return strings.TrimSpace(tree.Attr(n, pl.attr))
}

// first returns the first value that is not empty, in the order of the alternatives.
func (p *Page) first(n *html.Node, list []place) string {
	for _, alternative := range list {
		if alternative.css == nil {
			if v := alternative.value(p, n); v != "" {
				return v
			}
			continue
		}
		for _, match := range p.query(n, alternative.css) {
			if v := alternative.value(p, match); v != "" && p.counts(match) {
				return v
			}
		}
	}
	return ""
}

// all returns up to most distinct values of the first alternative that has any.
func (p *Page) all(n *html.Node, list []place, most int) []string {
	for _, alternative := range list {
		var values []string
		for _, match := range p.query(n, alternative.css) {
			if v := alternative.value(p, match); v != "" && !slices.Contains(values, v) &&
				len(values) < most && p.counts(match) {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			return values
		}
	}
	return nil
}

// read reads a product from an element, using the places of its fields.
func (p *Page) read(n *html.Node, at reading) Product {
	get := func(field string) string { return p.first(n, at[field]) }
	var found Product
	found.Title, found.Brand, found.MPN, found.ProductID = get("title"), label(get("brand")),
		label(get("mpn")), get("productId")
	found.SKU, found.GTIN = label(get("sku")), label(get("gtin"))
	found.Description = get("description")
	found.URL, found.Image = p.resolve(get("url")), get("image")
	for _, image := range p.all(n, at["images"], maxImages) {
		if image = p.resolve(image); image != "" {
			found.Images = append(found.Images, image)
		}
	}
	found.setAmounts(get("price"), get("listPrice"), get("currency"))
	found.Availability, found.Condition = availability(get("availability")),
		condition(get("condition"))
	found.Rating, found.ReviewCount = stars(get("rating")), amount.Count(get("reviewCount"))
	found.Category = strings.Join(p.all(n, at["category"], 10), " > ")
	return found
}

// setAmounts reads the prices. currency is a code, or a text that contains a currency sign.
func (p *Product) setAmounts(now, before, currency string) {
	var listed Product
	in := amount.Reader{}.WithCurrency(currency)
	listed.setPrice(in, before)
	p.ListPrice = listed.Price
	if p.Price = plainAmount(now); !isPlain(now) {
		p.setPrice(in, now)
	}
	if isPlain(before) {
		p.ListPrice = plainAmount(before)
	}
	if p.Currency == "" {
		p.Currency = listed.Currency
	}
	if p.Currency == "" {
		p.Currency = in.Currency(currency)
	}
	if len(currency) == 3 && currency == strings.ToUpper(currency) {
		p.Currency = currency
	}
}

// isPlain says that an amount is in machine form.
func isPlain(text string) bool {
	whole, fraction, dot := strings.Cut(text, ".")
	return isDigits(whole) && (!dot || isDigits(fraction)) && len(fraction) != 3
}

// label strips the label that some themes put before a value, as in SKU: 123.
func label(value string) string {
	if head, rest, ok := strings.Cut(value, ":"); ok && len(head) <= 20 &&
		!strings.ContainsAny(head, "0123456789/") {
		value = strings.TrimSpace(rest)
	}
	if strings.EqualFold(value, "n/a") {
		return ""
	}
	return value
}

// stars returns a rating: "Rated 4.5 out of 5" gives 4.5, and a percentage is scaled to five stars.
func stars(text string) string {
	number, rest := firstNumber(text)
	if number == "" {
		return ""
	}
	if strings.HasPrefix(strings.TrimSpace(rest), "%") {
		percent, err := strconv.ParseFloat(number, 64)
		if err != nil || percent > 100 {
			return ""
		}
		return strconv.FormatFloat(percent/20, 'f', -1, 64)
	}
	return number
}

// firstNumber returns the first number of a text as JSON, and the text after it. A dot or a comma
// may precede the fraction.
func firstNumber(text string) (number, rest string) {
	start := strings.IndexAny(text, "0123456789")
	if start < 0 {
		return "", ""
	}
	end := start
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' ||
		(text[end] == '.' || text[end] == ',') && !strings.ContainsAny(text[start:end], ".,")) {
		end++
	}
	whole, fraction, _ := strings.Cut(strings.Replace(text[start:end], ",", ".", 1), ".")
	if !isDigits(whole) || len(fraction) > 15 {
		return "", ""
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction == "" {
		return whole, text[end:]
	}
	return whole + "." + fraction, text[end:]
}
