package state

import "shoal.dev/shoal/pkg/ids"

// ResultsSince is the first cluster version in which groups have rows made from other groups' rows,
// and uploads are protected.
const ResultsSince = 2

// Made says how a sibling group's rows are made from another group's (decision 68).
type Made string

// The ways. They are stored, so their names must stay. A sibling's name ends with its way.
const (
	Enriched Made = "enriched"
	Matched  Made = "matched"
)

// Protection describes a scraper whose files are merged with each other (specification 4.9).
type Protection struct {
	// Matched is the column that the matching setup uses, "" while unknown. Once set it stays.
	Matched string `cbor:"1,keyasint,omitempty"`
	// Key is the column that identifies a row, "" until the first protected upload.
	Key string `cbor:"2,keyasint,omitempty"`
	// Run is the run whose rows are stored by key; zero: they are not yet.
	Run ids.ID `cbor:"3,keyasint,omitzero"`
}

// Protects reports whether a new file of a scraper must not replace rows. It holds for good once
// the scraper had data while its group had a matching setup (decision 67).
func (v *View) Protects(s *Scraper) bool {
	if s == nil || !s.Filled {
		return false
	}
	group := v.Group(s.Group)
	return s.Protection != nil || group != nil && group.Setup != 0
}

// Internal reports whether only the service stores a scraper's rows.
func (v *View) Internal(s *Scraper) bool {
	group := v.Group(s.Group)
	return group != nil && !group.Of.IsZero()
}
