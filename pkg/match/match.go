// Package match finds the product of a catalogue that a row describes: by its trade number, by
// brand and model, or by its title. It reads no files and stores nothing. The same products give
// the same results, in any order.
package match

import (
	"errors"
	"fmt"
)

// Bounds of products.
const (
	MaxProducts = 2_000_000 // of a catalogue
	MaxID       = 256       // bytes of a product's id
	MaxText     = 1_000     // bytes read of a title, a brand or a model
	maxTokens   = 48        // read of a product
	maxNumbers  = 8         // trade numbers of a product
)

// Threshold is the least score of a match.
const Threshold = 0.5

// Product is what is known of a product. Any field may be empty.
type Product struct {
	Numbers []string // trade numbers: GTIN, EAN, UPC, ISBN
	Brand   string   // the maker
	Model   string   // the maker's name for it: a model or part number
	Title   string
}

// Method is how a match was found.
type Method string

// The methods, the surest first.
const (
	ByNumber Method = "gtin"        // a trade number is that of the product
	ByModel  Method = "brand_model" // the model is the product's, and its brand does not differ
	ByTitle  Method = "title"       // titles, measures and numbers are alike
)

// Match is the product found for a row.
type Match struct {
	ID     string  // in the catalogue
	Score  float64 // from Threshold to 1, in steps of 0.0001
	Method Method
}

// ErrFull is the error for a product beyond MaxProducts.
var ErrFull = fmt.Errorf("the catalogue has more than %d products", MaxProducts)

// ErrID is the error for a product whose id is empty or longer than MaxID.
var ErrID = errors.New("the id of a product is empty, or too long")

// DuplicateError says that two products have the same id.
type DuplicateError struct{ ID string }

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("two products have the id %.64q", e.ID)
}
