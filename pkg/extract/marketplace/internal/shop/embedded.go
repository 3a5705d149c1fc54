package shop

import (
	"encoding/json"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/structured"
)

func noData(*Page) Product { return Product{} }

// blobs returns the page's embedded values whose name contains name, ignoring case.
func (p *Page) blobs(name string) []structured.Blob {
	var found []structured.Blob
	for _, blob := range p.data.Framework {
		if strings.Contains(strings.ToLower(blob.Name), strings.ToLower(name)) {
			found = append(found, blob)
		}
	}
	return found
}

// into decodes JSON and keeps the digits of numbers; false if the JSON does not fit value.
func into(data string, value any) bool {
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	return d.Decode(value) == nil
}

// loose is a text or a number, because shops write either.
type loose string

// UnmarshalJSON implements json.Unmarshaler. Values of other kinds become "".
func (l *loose) UnmarshalJSON(data []byte) error {
	var text string
	switch {
	case json.Unmarshal(data, &text) == nil:
		*l = loose(strings.TrimSpace(text))
	case len(data) > 0 && (data[0] == '-' || data[0] >= '0' && data[0] <= '9'):
		*l = loose(data)
	}
	return nil
}

// shopifyProduct is a product as Shopify's themes embed it, with amounts in hundredths.
type shopifyProduct struct {
	ID          loose       `json:"id"`
	Title       string      `json:"title"`
	Handle      string      `json:"handle"`
	Vendor      string      `json:"vendor"`
	Type        string      `json:"type"`
	Available   *bool       `json:"available"`
	Price       json.Number `json:"price"`
	PriceMin    json.Number `json:"price_min"`
	PriceMax    json.Number `json:"price_max"`
	CompareAt   json.Number `json:"compare_at_price"`
	Images      []any       `json:"images"`
	Description string      `json:"description"`
	Variants    []struct {
		SKU     loose       `json:"sku"`
		Barcode loose       `json:"barcode"`
		Price   json.Number `json:"price"`
	} `json:"variants"`
}

// shopifyData reads the whole product that a theme embeds, and the one in the page's analytics.
// Cards of other products may embed such data, too.
func shopifyData(p *Page) Product {
	var all []*shopifyProduct
	own := -1
	for _, blob := range append(p.blobs("product"), p.blobs("meta")...) {
		var holder struct {
			Product *shopifyProduct `json:"product"`
		}
		var found shopifyProduct
		switch {
		case into(blob.JSON, &holder) && holder.Product != nil:
			found = *holder.Product
		case !into(blob.JSON, &found) || len(found.Variants) == 0:
			continue
		}
		if own < 0 && p.isAbout(found.Title, found.Handle) {
			own = len(all)
		}
		all = append(all, &found)
	}
	var found Product
	if len(all) > 0 {
		about := all[max(own, 0)]
		found = shopify(p, about)
		for _, other := range all {
			if other != about && other.ID != "" && other.ID == about.ID {
				found.fill(shopify(p, other))
			}
		}
	}
	if sign := p.data.MetaValue("og:price:currency",
		"product:price:currency"); found.Currency == "" {
		found.Currency = sign
	}
	return found
}

// isAbout says whether the page's heading or address names the product.
func (p *Page) isAbout(title, handle string) bool {
	if title != "" && strings.EqualFold(strings.TrimSpace(title), p.heading) {
		return true
	}
	address := p.address
	if end := strings.IndexAny(address, "?#"); end >= 0 {
		address = address[:end]
	}
	return handle != "" && strings.HasSuffix(strings.TrimRight(address, "/"), "/"+handle)
}

func shopify(p *Page, from *shopifyProduct) Product {
	found := Product{ProductID: string(from.ID), Title: from.Title, Brand: from.Vendor,
		Category: from.Type,
		Price:    cents(from.PriceMin), PriceMax: cents(from.PriceMax),
		ListPrice: cents(from.CompareAt)}
	if found.Price == "" {
		found.Price = cents(from.Price)
	}
	if from.Available != nil {
		found.Availability = map[bool]string{true: "IN_STOCK",
			false: "OUT_OF_STOCK"}[*from.Available]
	}
	for _, image := range from.Images {
		if link, ok := image.(string); ok {
			if link = p.resolve(link); link != "" && len(found.Images) < maxImages {
				found.Images = append(found.Images, link)
			}
		}
	}
	for i, v := range from.Variants {
		amount := cents(v.Price)
		if found.Price == "" || less(amount, found.Price) {
			found.Price = amount
		}
		if found.PriceMax == "" || less(found.PriceMax, amount) {
			found.PriceMax = amount
		}
		if i == 0 {
			found.SKU, found.GTIN = string(v.SKU), string(v.Barcode)
		}
	}
	return found
}

// wooData reads the variations of a product, if it has any. Later forms on the page belong to other
// products.
func wooData(p *Page) Product {
	var found Product
	for _, blob := range p.blobs("product_variations") {
		var variations []struct {
			Price   loose `json:"display_price"`
			Regular loose `json:"display_regular_price"`
			InStock bool  `json:"is_in_stock"`
		}
		if !into(blob.JSON, &variations) || found.Price != "" {
			continue
		}
		for _, v := range variations {
			amount := plainAmount(string(v.Price))
			if found.Price == "" || less(amount, found.Price) {
				found.Price, found.ListPrice = amount, plainAmount(string(v.Regular))
			}
			if found.PriceMax == "" || less(found.PriceMax, amount) {
				found.PriceMax = amount
			}
			if v.InStock {
				found.Availability = "IN_STOCK"
			} else if found.Availability == "" {
				found.Availability = "OUT_OF_STOCK"
			}
		}
	}
	return found
}

// prestaData reads the product that the theme embeds for its scripts.
func prestaData(p *Page) Product {
	for _, blob := range p.blobs("product") {
		var from struct {
			ID        loose  `json:"id_product"`
			Name      string `json:"name"`
			Price     loose  `json:"price_amount"`
			Before    loose  `json:"price_without_reduction"`
			Reference loose  `json:"reference"`
			EAN       loose  `json:"ean13"`
			Category  string `json:"category_name"`
			Maker     string `json:"manufacturer_name"`
			Quantity  *int64 `json:"quantity"`
			Backorder loose  `json:"allow_oosp"`
		}
		if !into(blob.JSON, &from) || from.ID == "" || from.Name == "" {
			continue
		}
		found := Product{ProductID: string(from.ID), Title: from.Name,
			Price: plainAmount(string(from.Price)), SKU: string(from.Reference),
			ListPrice: plainAmount(string(from.Before)), GTIN: string(from.EAN),
			Category: from.Category, Brand: from.Maker}
		if from.Quantity != nil {
			found.Availability = "IN_STOCK"
			if *from.Quantity <= 0 {
				found.Availability = "OUT_OF_STOCK"
				if from.Backorder == "1" {
					found.Availability = "BACK_ORDER"
				}
			}
		}
		return found
	}
	return Product{}
}
