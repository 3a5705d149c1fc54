package shop

import (
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/amount"
	"shoal.dev/shoal/pkg/extract/internal/structured"
)

// productTypes are the schema.org types of products.
var productTypes = []string{"Product", "ProductGroup", "IndividualProduct", "ProductModel",
	"SomeProducts", "Vehicle", "Book"}

// maxDepth bounds how deep nested offers are followed.
const maxDepth = 3

// certain is the score from which a product's address or title makes the page about it.
const certain = 2

// stated returns the product that the structured data is about. ok is false if it states none, or
// several without a clear best one. Several of one name are variants.
func (p *Page) stated(title string) (found Product, ok bool) {
	var best []*structured.Item
	bestScore := -1
	for _, item := range p.products() {
		score := 0
		if own := p.resolve(item.Text("url")); own != "" &&
			(own == p.address || own == p.data.Canonical) {
			score += 4
		}
		if title != "" && strings.EqualFold(strings.TrimSpace(item.Text("name")), title) {
			score += certain
		}
		if item.Get("offers") != nil || item.Get("hasVariant") != nil {
			score++
		}
		switch {
		case score > bestScore:
			best, bestScore = []*structured.Item{item}, score
		case score == bestScore:
			best = append(best, item)
		}
	}
	if len(best) == 0 {
		return found, false
	}
	variants := slices.DeleteFunc(slices.Clone(best),
		func(item *structured.Item) bool { return p.nameOf(item) != p.nameOf(best[0]) })
	if len(variants) < len(best) && bestScore < certain || len(best) > 1 &&
		p.nameOf(best[0]) == "" {
		return found, false
	}
	return p.productOf(variants[0], variants[1:]...), true
}

func (p *Page) nameOf(item *structured.Item) string { return strings.ToLower(p.name(item, "name")) }

// products returns the page's items that are products, or whose mainEntity is one.
func (p *Page) products() []*structured.Item {
	var list []*structured.Item
	for _, item := range p.data.Items {
		switch {
		case item.Is(productTypes...):
			list = append(list, item)
		default:
			for _, v := range item.Get("mainEntity") {
				if v.Item != nil {
					if about := p.data.Follow(v.Item); about.Is(productTypes...) {
						list = append(list, about)
					}
				}
			}
		}
	}
	return list
}

// productOf reads an item, including the offers of its further variants.
func (p *Page) productOf(item *structured.Item, variants ...*structured.Item) Product {
	found := Product{Title: strings.TrimSpace(item.Text("name")), URL: p.resolve(item.Text("url")),
		SKU: item.Text("sku"),
		MPN: item.Text("mpn"), Category: p.name(item, "category"),
		Description: item.Text("description"),
		Brand:       p.name(item, "brand"), Condition: condition(item.Text("itemCondition"))}
	if found.Brand == "" {
		found.Brand = p.name(item, "manufacturer")
	}
	if found.ProductID = item.Text("productID"); found.ProductID == "" {
		found.ProductID = item.Text("productGroupID")
	}
	for _, name := range [...]string{"gtin13", "gtin", "gtin14", "gtin12", "gtin8", "ean", "isbn"} {
		if code := strings.ReplaceAll(item.Text(name), "-", ""); found.GTIN == "" &&
			isDigits(code) {
			found.GTIN = code
		}
	}
	for _, v := range item.Get("image") {
		if image := p.resolve(p.imageOf(v)); image != "" && len(found.Images) < maxImages {
			found.Images = append(found.Images, image)
		}
	}
	if ratings := p.entities(item, "aggregateRating"); len(ratings) > 0 {
		found.Rating, _ = firstNumber(ratings[0].Text("ratingValue"))
		if found.ReviewCount = amount.Count(
			ratings[0].Text("reviewCount")); found.ReviewCount == "" {
			found.ReviewCount = amount.Count(ratings[0].Text("ratingCount"))
		}
	}
	o := &offers{page: p, seen: map[*structured.Item]int{},
		summed: map[*structured.Item]bool{}}
	o.read(item, 0)
	for _, variant := range variants {
		o.read(variant, 0)
	}
	found.Price, found.PriceMax, found.Currency, found.ListPrice = o.least, o.most, o.currency,
		o.list
	found.Availability = o.availability
	if found.Condition == "" {
		found.Condition = o.condition
	}
	if found.URL == "" {
		found.URL = p.resolve(o.url)
	}
	if found.SKU == "" {
		found.SKU = o.sku
	}
	if found.GTIN == "" {
		found.GTIN = o.gtin
	}
	return found
}

// name returns a property's text, or the name of the item that it holds.
func (p *Page) name(item *structured.Item, property string) string {
	for _, v := range item.Get(property) {
		if v.Kind != structured.Entity {
			return strings.TrimSpace(v.Text)
		}
		if named := p.data.Follow(v.Item).Text("name"); named != "" {
			return strings.TrimSpace(named)
		}
	}
	return ""
}

func (p *Page) imageOf(v structured.Value) string {
	if v.Kind != structured.Entity {
		return v.Text
	}
	image := p.data.Follow(v.Item)
	for _, name := range [...]string{"url", "contentUrl", "@id"} {
		if link := image.Text(name); link != "" {
			return link
		}
	}
	return image.ID
}

// entities returns the items that a property holds.
func (p *Page) entities(item *structured.Item, property string) []*structured.Item {
	var list []*structured.Item
	values := item.Get(property)
	if !p.work.Spend(len(values)) {
		return nil
	}
	for _, v := range values {
		if v.Item != nil {
			list = append(list, p.data.Follow(v.Item))
		}
	}
	return list
}

// holders returns the page's items and the items that they hold in a property. Each appears once,
// however often the page names it.
func (p *Page) holders(property string) []*structured.Item {
	var list []*structured.Item
	seen := map[*structured.Item]bool{}
	add := func(item *structured.Item) {
		if !seen[item] {
			seen[item] = true
			list = append(list, item)
		}
	}
	for _, item := range p.data.Items {
		add(item)
		for _, held := range p.entities(item, property) {
			add(held)
		}
	}
	return list
}

// offers sums up what a product is offered for.
type offers struct {
	page                                    *Page
	seen                                    map[*structured.Item]int // least depth + 1
	summed                                  map[*structured.Item]bool
	least, most, list, currency             string
	availability, condition, url, sku, gtin string
}

// read sums up an item's offers. An item already read at the same or a lesser depth adds nothing:
// references may be circular, and every way around would be followed.
func (o *offers) read(item *structured.Item, depth int) {
	if before := o.seen[item]; depth > maxDepth || before > 0 && before <= depth+1 {
		return
	}
	o.seen[item] = depth + 1
	for _, offer := range o.page.entities(item, "offers") {
		if !o.summed[offer] {
			o.summed[offer] = true
			o.offer(offer)
		}
		o.read(offer, depth+1) // the offers of an AggregateOffer
	}
	for _, variant := range o.page.entities(item, "hasVariant") {
		o.read(variant, depth+1)
	}
}

func (o *offers) offer(offer *structured.Item) {
	if !o.page.work.Spend(perOffer) {
		return
	}
	if o.currency == "" {
		o.currency = strings.ToUpper(offer.Text("priceCurrency"))
	}
	o.price(offer.Text("price"))
	o.price(offer.Text("lowPrice"))
	o.price(offer.Text("highPrice"))
	for _, specification := range o.page.entities(offer, "priceSpecification") {
		if o.currency == "" {
			o.currency = strings.ToUpper(specification.Text("priceCurrency"))
		}
		kind := specification.Text("priceType")
		if strings.Contains(kind, "ListPrice") || strings.Contains(kind, "Strikethrough") ||
			strings.Contains(kind, "SRP") {
			o.list = plainAmount(specification.Text("price"))
			continue
		}
		if specification.Get("referenceQuantity") == nil || o.least == "" {
			o.price(specification.Text("price"))
			o.price(specification.Text("minPrice"))
		}
	}
	if stock := availability(offer.Text("availability")); stock != "" &&
		o.availability != "IN_STOCK" {
		if o.availability == "" || stock == "IN_STOCK" {
			o.availability = stock
		}
	}
	for _, pair := range []struct {
		to   *string
		from string
	}{
		{&o.condition, condition(offer.Text("itemCondition"))}, {&o.url, offer.Text("url")},
		{&o.sku, offer.Text("sku")},
		{&o.gtin, offer.Text("gtin13")},
	} {
		if *pair.to == "" {
			*pair.to = pair.from
		}
	}
}

func (o *offers) price(text string) {
	amount := plainAmount(text)
	if amount == "" {
		return
	}
	if o.least == "" || less(amount, o.least) {
		o.least = amount
	}
	if o.most == "" || less(o.most, amount) {
		o.most = amount
	}
}

// listed returns the products of the page's ItemLists, or else all its products if there are
// several.
func (p *Page) listed() []Product {
	var list []Product
	known := map[*structured.Item]Product{} // a list may name one product many times
	add := func(item *structured.Item, address string) {
		found, is := known[item]
		if !is {
			found = p.productOf(item)
			known[item] = found
		}
		if found.URL == "" {
			found.URL = p.resolve(address)
		}
		list = append(list, found)
	}
	seen := map[*structured.Item]bool{}
	for _, holder := range p.holders("mainEntity") {
		if !holder.Is("ItemList", "OfferCatalog") {
			continue
		}
		for _, entry := range p.entities(holder, "itemListElement") {
			if seen[entry] {
				continue
			}
			seen[entry] = true
			if entry.Is(productTypes...) {
				add(entry, "")
				continue
			}
			product := entry
			if inner := p.entities(entry, "item"); len(inner) > 0 {
				product = inner[0]
			}
			add(product, firstOf(entry.Text("url"), entry.Text("item"), product.ID))
		}
	}
	if len(list) > 0 {
		return list
	}
	if products := p.products(); len(products) > 1 {
		for _, item := range products {
			add(item, "")
		}
	}
	return list
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// trail returns the category from the page's breadcrumb list, without the product itself.
func (p *Page) trail(title string) string {
	for _, holder := range p.holders("breadcrumb") {
		if !holder.Is("BreadcrumbList") {
			continue
		}
		var names []string
		for _, entry := range p.entities(holder, "itemListElement") {
			names = append(names, firstOf(entry.Text("name"), p.name(entry, "item")))
		}
		if path := path(names, title); path != "" {
			return path
		}
	}
	return ""
}

// path joins a breadcrumb, leaving out the home page and the product itself.
func path(names []string, title string) string {
	var kept []string
	for i, name := range names {
		name = strings.Trim(strings.TrimSpace(name), "/›»> ")
		home := i == 0 && len(names) > 1 &&
			(strings.EqualFold(name, "home") || strings.EqualFold(name, "startseite") ||
				strings.EqualFold(name, "accueil") || strings.EqualFold(name, "inicio"))
		if name == "" || home || strings.EqualFold(name, title) {
			continue
		}
		kept = append(kept, name)
	}
	return strings.Join(kept, " > ")
}
