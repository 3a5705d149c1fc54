// Package search owns the plugin for result lists of shops, of a search or of a category: one row for each product, in the
// order of the page.
package search

import (
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/model"
)

// Tag names the plugin.
const Tag = model.ProductListTag

// Read reads a page.
func Read(r *shop.Reader, p *shop.Page) []shop.Product { return r.List(p) }
