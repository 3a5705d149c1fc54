package state

import "shoal.dev/shoal/pkg/ids"

// ResultsSince is the first cluster version in which rows are made of other rows, and uploads are
// protected.
const ResultsSince = 2

// Made says how the rows of a group are made of those of another one, its sibling (decision 68).
type Made string

// The ways. They are stored, so their names stay. Each is the end of a sibling's name, too.
const (
	Enriched Made = "enriched"
	Matched  Made = "matched"
)

// Protection is what is known of a scraper whose files add to each other (specification 4.9).
type Protection struct {
	// Matched is the column that the matching setup uses, "" while none is known. The first word
	// stands.
	Matched string `cbor:"1,keyasint,omitempty"`
	// Key is the column that tells rows apart, "" until the first protected upload.
	Key string `cbor:"2,keyasint,omitempty"`
	// Run is the run that its rows are of, once they are kept by key; zero: they are not yet.
	Run ids.ID `cbor:"3,keyasint,omitzero"`
}

// Protects says whether a new file of a scraper replaces no rows. Once its data was there while its
// group had a matching setup, that holds for good (decision 67).
func (v *View) Protects(s *Scraper) bool {
	if s == nil || !s.Filled {
		return false
	}
	group := v.Group(s.Group)
	return s.Protection != nil || group != nil && group.Setup != 0
}

// Internal says whether the service alone stores rows of a scraper.
func (v *View) Internal(s *Scraper) bool {
	group := v.Group(s.Group)
	return group != nil && !group.Of.IsZero()
}
