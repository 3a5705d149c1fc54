package rowstore

import (
	"cmp"
	"encoding/json"
	"math"

	"shoal.dev/shoal/pkg/filter"
)

// Bounds of reads in the order of a field.
const (
	MaxOrdered = 50_000 // rows that Order finds at once
	MaxAt      = 1_000  // places that At reads at once
	// KeyBytes of a text are what it is sorted by: a standing fits into a cursor.
	KeyBytes = 256
)

// Class is what kind of value a field has, in the order of a Sort.
type Class uint8

// The classes.
const (
	Numbers Class = iota
	Texts
	Booleans
	Others
	Nones
)

// Standing is where a row stands in the order of a field.
type Standing struct {
	Class  Class
	Number float64 // of Numbers; of Booleans 1 for true; else 0
	Text   string  // of Texts: their first KeyBytes
	Place  int64
}

// Valid says whether a row can stand there.
func (s Standing) Valid() bool {
	if s.Class > Nones || s.Place <= 0 || s.Class != Texts && s.Text != "" ||
		len(s.Text) > KeyBytes || math.IsNaN(s.Number) || math.IsInf(s.Number, 0) {
		return false
	}
	return s.Class == Numbers || s.Number == 0 || s.Class == Booleans && s.Number == 1
}

// Compare orders standings: rows with equal values by their places.
func (s Sort) Compare(a, b Standing) int {
	values := cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Text, b.Text))
	if s.Descending {
		values = -values
	}
	return cmp.Or(cmp.Compare(a.Class, b.Class), values, cmp.Compare(a.Place, b.Place))
}

// OrderQuery asks for the next rows in the order of a field.
type OrderQuery struct {
	Scopes []Scope // of different groups
	Filter filter.Node
	Sort   Sort
	After  *Standing // of the last row read; nil to begin
	Upto   int64     // the last place that may be seen: Horizon at the beginning
	Limit  int       // 1 to MaxOrdered
}

// Cut is what of found documents bytes leave. Each comes with its number among the places that were
// asked for. used is how many of them that read.
func Cut(found []Numbered, places, bytes int) (docs []json.RawMessage, used int) {
	docs = make([]json.RawMessage, 0, len(found))
	size := 0
	for _, f := range found {
		docs, size = append(docs, f.Doc), size+len(f.Doc)
		if bytes > 0 && size >= bytes {
			return docs, f.Number + 1
		}
	}
	return docs, places
}

// Numbered is a document, and which of the places it lies at.
type Numbered struct {
	Doc    json.RawMessage
	Number int
}
