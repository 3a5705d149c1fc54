// Package match owns which product of a catalogue a row is: by its trade number, by brand and
// model, or by what its title says. It reads no files and stores nothing. The same products give
// the same answers, in whatever order they come.
package match

import (
	"errors"
	"fmt"
)

// Bounds of products.
const (
	MaxProducts = 2_000_000 // of a catalogue
	MaxID       = 256       // bytes of a product's id
	MaxText     = 1_000     // bytes that are read of a title, a brand or a model
	maxTokens   = 48        // that are read of a product
	maxNumbers  = 8         // trade numbers of a product
)

// Threshold is the least score of a match.
const Threshold = 0.5

// Product is what is known of a product. All of it may be missing.
type Product struct {
	Numbers []string // trade numbers: GTIN, EAN, UPC, ISBN
	Brand   string   // who makes it
	Model   string   // what the maker calls it: a model or a part number
	Title   string
}

// Method is what a match goes by.
type Method string

// The methods, the surest first.
const (
	ByNumber Method = "gtin"        // a trade number is that of the product
	ByModel  Method = "brand_model" // the model is the product's, and its brand no other
	ByTitle  Method = "title"       // titles, measures and numbers are alike
)

// Match is the product that a row is.
type Match struct {
	ID     string  // of the catalogue
	Score  float64 // from Threshold to 1, in steps of 0.0001
	Method Method
}

// ErrFull is the error of a product beyond MaxProducts.
var ErrFull = fmt.Errorf("the catalogue has more than %d products", MaxProducts)

// ErrID is the error of a product whose id is empty or longer than MaxID.
var ErrID = errors.New("the id of a product is empty, or too long")

// DuplicateError is that two products have one id.
type DuplicateError struct{ ID string }

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("two products have the id %.64q", e.ID)
}
