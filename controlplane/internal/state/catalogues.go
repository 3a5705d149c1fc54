package state

import "shoal.dev/shoal/pkg/ids"

// CataloguesSince is the first cluster version with a catalogue of products.
const CataloguesSince = 2

// CatalogueState is the state of a catalogue's file.
type CatalogueState string

// The states of a catalogue.
const (
	CatalogueReading CatalogueState = "READING" // background work checks the file
	CatalogueReady   CatalogueState = "READY"   // rows are matched with this one
	CatalogueFailed  CatalogueState = "FAILED"  // the file cannot be used
)

// Values implements the API's enums.
func (CatalogueState) Values() []string {
	return []string{string(CatalogueReading), string(CatalogueReady), string(CatalogueFailed)}
}

// Catalogue is a file of products that an admin uploaded. There is at most one in each state. Times
// are in Unix milliseconds.
type Catalogue struct {
	ID       ids.ID         `cbor:"1,keyasint"` // also the id of the file in the blob store
	Format   string         `cbor:"2,keyasint"`
	Bytes    int64          `cbor:"3,keyasint"`
	By       string         `cbor:"4,keyasint"` // the admin's subject
	State    CatalogueState `cbor:"5,keyasint"`
	Begun    int64          `cbor:"6,keyasint"`
	Ended    int64          `cbor:"7,keyasint,omitempty"` // when it became READY or FAILED
	Products uint64         `cbor:"8,keyasint,omitempty"`
	Message  string         `cbor:"9,keyasint,omitempty"` // why it failed
}

var cataloguesTable = define(CataloguesSince, "catalogues",
	index("id", true, func(c *Catalogue) []any { return []any{c.ID} }),
	index("state", true, func(c *Catalogue) []any { return []any{string(c.State)} }),
).told((*Catalogue).telling).always()

func (c *Catalogue) telling() telling {
	return telling{"", struct {
		Format   string         `json:"format"`
		Bytes    int64          `json:"bytes"`
		State    CatalogueState `json:"state"`
		Products uint64         `json:"products,omitempty"`
	}{c.Format, c.Bytes, c.State, c.Products}}
}

// Catalogue returns the catalogue with an id, or nil.
func (v *View) Catalogue(id ids.ID) *Catalogue { return cataloguesTable.first(v, "id", id) }

// CatalogueIn returns the catalogue in a state; nil: there is none.
func (v *View) CatalogueIn(in CatalogueState) *Catalogue {
	return cataloguesTable.first(v, "state", string(in))
}

// PutCatalogue adds or replaces a catalogue.
func (t *Tx) PutCatalogue(c *Catalogue) { cataloguesTable.put(t, c) }

// RemoveCatalogue removes a catalogue.
func (t *Tx) RemoveCatalogue(c *Catalogue) { cataloguesTable.remove(t, c) }
