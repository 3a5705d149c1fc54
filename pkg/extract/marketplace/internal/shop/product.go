package shop

import (
	"encoding/json"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/jsontext"
)

// Bounds of a row.
const (
	maxImages      = 50
	maxDescription = 20_000 // bytes
)

// Product is a row of either plugin. Values that the page does not state are empty, null in a row.
type Product struct {
	Position     int    // position in a result list, from 1; 0 on a product page
	Title        string // required: a product without a title gives no row
	URL          string // absolute
	Image        string // absolute
	Images       []string
	Price        string // current price, the lowest of several variants; a JSON number
	PriceMax     string // highest price if the variants' prices differ
	ListPrice    string // price before a reduction
	Currency     string // ISO 4217
	Availability string // IN_STOCK, OUT_OF_STOCK, PRE_ORDER, BACK_ORDER, LIMITED, DISCONTINUED
	Condition    string // NEW, USED, REFURBISHED, DAMAGED
	Brand        string
	SKU          string
	GTIN         string // 8 to 14 digits
	MPN          string
	ProductID    string // the shop's own identifier
	Category     string // a path, such as Shoes > Boots
	Description  string
	Rating       string // a JSON number on the shop's own scale
	ReviewCount  string // a JSON number
	Platform     string // see Platforms
}

// Append appends the row as JSON, with all members, always in this order.
func (p *Product) Append(dst []byte) []byte {
	dst = append(dst, '{')
	sep := func(name string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendQuote(dst, name), ':')
	}
	text := func(name, value string) {
		if sep(name); value == "" {
			dst = append(dst, "null"...)
			return
		}
		dst = jsontext.AppendString(dst, value)
	}
	number := func(name, value string) {
		if sep(name); value == "" {
			value = "null"
		}
		dst = append(dst, value...)
	}
	position := ""
	if p.Position > 0 {
		position = strconv.Itoa(p.Position)
	}
	number("position", position)
	text("title", p.Title)
	text("url", p.URL)
	number("price", p.Price)
	number("priceMax", p.PriceMax)
	number("listPrice", p.ListPrice)
	text("currency", p.Currency)
	text("availability", p.Availability)
	text("condition", p.Condition)
	text("brand", p.Brand)
	text("sku", p.SKU)
	text("gtin", p.GTIN)
	text("mpn", p.MPN)
	text("productId", p.ProductID)
	text("category", p.Category)
	number("rating", p.Rating)
	number("reviewCount", p.ReviewCount)
	text("image", p.Image)
	sep("images")
	dst = append(dst, '[')
	for i, image := range p.Images {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(dst, image)
	}
	dst = append(dst, ']')
	text("description", p.Description)
	text("platform", p.Platform)
	return append(dst, '}')
}

// fill copies what p lacks. Price, PriceMax and their currency come from one source, because
// amounts from several sources would not fit together.
func (p *Product) fill(from Product) {
	if p.Price == "" && from.Price != "" {
		p.Price, p.PriceMax = from.Price, from.PriceMax
		if from.Currency != "" {
			p.Currency = from.Currency
		}
	}
	for _, pair := range []struct {
		to   *string
		from string
	}{
		{&p.Title, from.Title}, {&p.URL, from.URL}, {&p.Image, from.Image},
		{&p.ListPrice, from.ListPrice},
		{&p.Currency, from.Currency}, {&p.Availability, from.Availability},
		{&p.Condition, from.Condition},
		{&p.Brand, from.Brand}, {&p.SKU, from.SKU}, {&p.GTIN, from.GTIN}, {&p.MPN, from.MPN},
		{&p.ProductID, from.ProductID},
		{&p.Category, from.Category}, {&p.Description, from.Description}, {&p.Rating, from.Rating},
		{&p.ReviewCount, from.ReviewCount},
	} {
		if *pair.to == "" {
			*pair.to = pair.from
		}
	}
	if len(p.Images) == 0 {
		p.Images = from.Images
	}
}

// finish normalizes a gathered product for its row.
func (p *Product) finish() {
	if p.Image == "" && len(p.Images) > 0 {
		p.Image = p.Images[0]
	}
	if len(p.Images) == 0 && p.Image != "" {
		p.Images = []string{p.Image}
	}
	p.Images = p.Images[:min(len(p.Images), maxImages)]
	if len(p.Description) > maxDescription {
		p.Description = strings.ToValidUTF8(p.Description[:maxDescription], "")
	}
	if !less(p.Price, p.PriceMax) {
		p.PriceMax = ""
	}
	if !less(p.Price, p.ListPrice) {
		p.ListPrice = ""
	}
	if n := len(p.GTIN); n < 8 || n > 14 || strings.Trim(p.GTIN, "0123456789") != "" {
		p.GTIN = ""
	}
}

// less compares amounts. It is false if either is missing.
func less(a, b string) bool {
	left, errLeft := strconv.ParseFloat(a, 64)
	right, errRight := strconv.ParseFloat(b, 64)
	return errLeft == nil && errRight == nil && left < right
}

// setPrice reads an amount as people write it, and its currency if the text names one.
func (p *Product) setPrice(in amount.Reader, text string) {
	read, ok := in.Parse(text)
	if !ok {
		return
	}
	p.Price = read.Amount
	if read.Currency != "" {
		p.Currency = read.Currency
	}
}

// plainAmount reads an amount in machine form, with a dot before a fraction of any length. It falls
// back to parsing it as people write it.
func plainAmount(text string) string {
	text = strings.TrimSpace(text)
	if whole, fraction, _ := strings.Cut(text, "."); isDigits(whole) &&
		(isDigits(fraction) || !strings.Contains(text, ".")) {
		trimmed := strings.TrimLeft(text, "0")
		if trimmed == "" || trimmed[0] == '.' {
			trimmed = "0" + trimmed
		}
		return trimmed
	}
	read, _ := amount.Parse(text)
	return read.Amount
}

func isDigits(s string) bool {
	return s != "" && len(s) <= 15 && strings.Trim(s, "0123456789") == ""
}

// cents converts an amount that a shop keeps in hundredths.
func cents(n json.Number) string {
	text := n.String()
	if !isDigits(text) {
		return ""
	}
	for len(text) < 3 {
		text = "0" + text
	}
	return text[:len(text)-2] + "." + text[len(text)-2:]
}

// availabilities lists the words of schema.org and of shops in lower case, without spaces. Longer
// words come first.
var availabilities = []struct{ word, value string }{
	{"outofstock", "OUT_OF_STOCK"}, {"notavailable", "OUT_OF_STOCK"},
	{"unavailable", "OUT_OF_STOCK"}, {"soldout", "OUT_OF_STOCK"},
	{"notinstock", "OUT_OF_STOCK"}, {"nichtverfügbar", "OUT_OF_STOCK"},
	{"nichtlieferbar", "OUT_OF_STOCK"},
	{"nichtaufflager", "OUT_OF_STOCK"}, {"ausverkauft", "OUT_OF_STOCK"},
	{"vergriffen", "OUT_OF_STOCK"}, {"épuisé", "OUT_OF_STOCK"},
	{"rupturedestock", "OUT_OF_STOCK"}, {"agotado", "OUT_OF_STOCK"}, {"esaurito", "OUT_OF_STOCK"},
	{"uitverkocht", "OUT_OF_STOCK"},
	{"backorder", "BACK_ORDER"}, {"preorder", "PRE_ORDER"}, {"presale", "PRE_ORDER"},
	{"vorbestell", "PRE_ORDER"},
	{"discontinued", "DISCONTINUED"}, {"limitedavailability", "LIMITED"},
	{"onlyfewleft", "LIMITED"},
	{"instoreonly", "IN_STOCK"}, {"onlineonly", "IN_STOCK"}, {"instock", "IN_STOCK"},
	{"available", "IN_STOCK"},
	{"verfügbar", "IN_STOCK"}, {"lieferbar", "IN_STOCK"}, {"auflager", "IN_STOCK"},
	{"enstock", "IN_STOCK"},
	{"disponible", "IN_STOCK"}, {"disponibile", "IN_STOCK"}, {"opvoorraad", "IN_STOCK"},
	{"inventory", "IN_STOCK"},
}

// availability reads what a page says about stock, or returns "" if it recognizes nothing.
func availability(text string) string {
	return known(text, availabilities)
}

var conditions = []struct{ word, value string }{
	{"refurbished", "REFURBISHED"}, {"damaged", "DAMAGED"}, {"used", "USED"}, {"new", "NEW"},
}

func condition(text string) string { return known(text, conditions) }

// gaps removes separators, which words are written with or without.
var gaps = strings.NewReplacer(" ", "", "-", "", "_", "", "\u00a0", "")

func known(text string, words []struct{ word, value string }) string {
	text = gaps.Replace(strings.ToLower(text))
	for _, w := range words {
		if strings.Contains(text, w.word) {
			return w.value
		}
	}
	return ""
}
