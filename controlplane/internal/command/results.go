package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of results.
const (
	MaxResultArgs = 4 << 10 // bytes of a result's work arguments
	MaxKeyColumns = 256     // columns in one command
	MaxKeyColumn  = 1_024   // bytes of a column's name: 256 characters
)

// KeyColumn is the column of a scraper that a matching setup uses.
type KeyColumn struct {
	Scraper ids.ID `cbor:"1,keyasint"`
	Column  string `cbor:"2,keyasint"`
}

// ProtectGroupPayload says that a group has a matching setup, and which columns it uses. From then
// on, no file replaces rows of the group's scrapers that have data. Each scraper keeps its first
// column. Unknown groups, and scrapers that are not uploads of the group, are ignored. Faults:
// invalid_request beyond MaxKeyColumns or MaxKeyColumn.
type ProtectGroupPayload struct {
	Group   ids.ID      `cbor:"1,keyasint"`
	Columns []KeyColumn `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (ProtectGroupPayload) Declaration() Declaration {
	return Declaration{Number: 228, By: Ingest, Since: state.ResultsSince}
}

func (ProtectGroupPayload) yields(None) {}

// FixKeyPayload sets the key column of an upload whose scraper was protected after the upload
// began. The scraper's first key stands. It ignores an upload that is not open or has a key, or
// whose scraper is not protected.
type FixKeyPayload struct {
	Job    ids.ID `cbor:"1,keyasint"`
	Column string `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (FixKeyPayload) Declaration() Declaration {
	return Declaration{Number: 230, By: Ingest, Since: state.ResultsSince}
}

func (FixKeyPayload) yields(None) {}

// BeginResultPayload makes a run whose rows are made from a group's, by background work with the
// run's id. The run belongs to an internal scraper in the group's sibling. If either is missing, it
// is made with the given id. A run that is Matched also gives the group a matching setup. If the
// run exists, nothing changes. It ends as an upload does (EndImportPayload). Faults: not_found,
// ALREADY_RUNNING, INGEST_CAPACITY, INGEST_CAPACITY_GLOBAL, out_of_space, customer_blocked,
// invalid_request.
type BeginResultPayload struct {
	Job        ids.ID     `cbor:"1,keyasint"`
	Customer   string     `cbor:"2,keyasint"`
	Group      ids.ID     `cbor:"3,keyasint"` // the group whose rows it uses
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
