// Package pdp owns the plugin for product detail pages: one row a page, none when the page is about no product.
package pdp

import (
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/model"
)

// Tag names the plugin.
const Tag = model.ProductPageTag

// Read reads a page.
func Read(r *shop.Reader, p *shop.Page) []shop.Product {
	if found, ok := r.Product(p); ok {
		return []shop.Product{found}
	}
	return nil
}
