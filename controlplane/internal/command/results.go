package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of results.
const (
	MaxResultArgs = 4 << 10 // bytes of what a result's work is told
	MaxKeyColumns = 256     // columns that one command tells
	MaxKeyColumn  = 1_024   // bytes of the name of one: 256 characters
)

// KeyColumn is the column of a scraper's rows that a matching setup uses.
type KeyColumn struct {
	Scraper ids.ID `cbor:"1,keyasint"`
	Column  string `cbor:"2,keyasint"`
}

// ProtectGroupPayload says that a group has a matching setup, and which columns it uses. From then
// on no file of the group's scrapers that have data replaces rows. Of each scraper the first column
// stands. A group that there is not, and scrapers that are none of its uploads, are passed over.
// Faults: invalid_request beyond MaxKeyColumns or MaxKeyColumn.
type ProtectGroupPayload struct {
	Group   ids.ID      `cbor:"1,keyasint"`
	Columns []KeyColumn `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (ProtectGroupPayload) Declaration() Declaration {
	return Declaration{Number: 228, By: Ingest, Since: state.ResultsSince}
}

func (ProtectGroupPayload) yields(None) {}

// FixKeyPayload says by which column an upload's rows are added, whose scraper was protected after
// it began. The scraper's first word stands. An upload that is not open or has a key, and one whose
// scraper is not protected, stay as they are.
type FixKeyPayload struct {
	Job    ids.ID `cbor:"1,keyasint"`
	Column string `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (FixKeyPayload) Declaration() Declaration {
	return Declaration{Number: 230, By: Ingest, Since: state.ResultsSince}
}

func (FixKeyPayload) yields(None) {}

// BeginResultPayload makes a run whose rows are made of a group's, by an item of background work of
// a kind that has the run's id. The run is of an internal scraper in the group's sibling. Either is
// made with the ids given if it is not there. A run that is Matched gives the group a matching
// setup, in the same step. One whose run is there changes nothing. It ends as an upload does
// (EndImportPayload). Faults: not_found, ALREADY_RUNNING, INGEST_CAPACITY, INGEST_CAPACITY_GLOBAL,
// out_of_space, customer_blocked, invalid_request.
type BeginResultPayload struct {
	Job        ids.ID     `cbor:"1,keyasint"`
	Customer   string     `cbor:"2,keyasint"`
	Group      ids.ID     `cbor:"3,keyasint"` // whose rows it is made of
	Made       state.Made `cbor:"4,keyasint"`
	Kind       string     `cbor:"5,keyasint"` // of the work
	NewGroup   ids.ID     `cbor:"6,keyasint"`
	NewScraper ids.ID     `cbor:"7,keyasint"`
	Args       []byte     `cbor:"8,keyasint,omitempty"` // of the work
}

// Declaration implements Payload.
func (BeginResultPayload) Declaration() Declaration {
	return Declaration{Number: 229, By: APIServer, Kept: true, Since: state.ResultsSince}
}

func (BeginResultPayload) yields(BegunResult) {}

// BegunResult answers BeginResultPayload.
type BegunResult struct {
	Job     ids.ID `cbor:"1,keyasint"`
	Group   ids.ID `cbor:"2,keyasint"` // the sibling
	Scraper ids.ID `cbor:"3,keyasint"`
}
