// Package pdp owns the plugin for product detail pages: one row a page, or none if the page is not
// about a product.
package pdp

import (
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/model"
)

// Plugin returns the plugin.
func Plugin() shop.Plugin {
	return shop.Plugin{Tag: model.ProductPageTag, Read: read}
}

func read(r *shop.Reader, p *shop.Page) []shop.Product {
	if found, ok := r.Product(p); ok {
		return []shop.Product{found}
	}
	return nil
}
