// Package search owns the plugin for a shop's result lists, of a search or of a category. Each
// product is a row, in the page's order.
package search

import (
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/model"
)

// Plugin returns the plugin.
func Plugin() shop.Plugin {
	return shop.Plugin{Tag: model.ProductListTag, Read: (*shop.Reader).List}
}
