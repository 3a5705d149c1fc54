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
	// KeyBytes is how much of a text it is sorted by, so that a standing fits into a cursor.
	KeyBytes = 256
)

// Class is the kind of value that a field has, in the order of a Sort.
type Class uint8

// The classes.
const (
	Numbers Class = iota
	Texts
	Booleans
	Others
	Nones
)

// Standing is the position of a row in the order of a field.
type Standing struct {
	Class  Class
	Number float64 // for Numbers; for Booleans 1 is true; else 0
	Text   string  // for Texts: their first KeyBytes
	Place  int64
}

// Valid reports whether a row can have this standing.
func (s Standing) Valid() bool {
	if s.Class > Nones || s.Place <= 0 || s.Class != Texts && s.Text != "" ||
		len(s.Text) > KeyBytes || math.IsNaN(s.Number) || math.IsInf(s.Number, 0) {
		return false
	}
	return s.Class == Numbers || s.Number == 0 || s.Class == Booleans && s.Number == 1
}

// Compare orders standings; rows with equal values go by their places.
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

// Cut returns the found documents until they reach the given bytes; bytes 0 means no limit. places
// is how many places were asked for, and used is how many of them were read.
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

// Numbered is a document and the index of its place among those asked for.
type Numbered struct {
	Doc    json.RawMessage
	Number int
}
