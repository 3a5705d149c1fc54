// Package search owns the plugin for result lists of shops, of a search or of a category. Each
// product is a row, in the order of the page.
package search

import (
	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop"
	"shoal.dev/shoal/pkg/model"
)

// Plugin is the plugin.
func Plugin() shop.Plugin {
	return shop.Plugin{Tag: model.ProductListTag, Read: (*shop.Reader).List}
}
