package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// BeginReExtractPayload makes a run of the kept bodies of another run, read by a recipe. An item of
// background work of the run's id reads them. It needs no money. In all else it is as an upload: it
// has no list and no entry, and its rows are seen when it is whole. One whose run is there changes
// nothing. Faults: scraper_not_found, scraper_already_running, INGEST_CAPACITY,
// INGEST_CAPACITY_GLOBAL, out_of_space, customer_blocked.
type BeginReExtractPayload struct {
	Job      ids.ID       `cbor:"1,keyasint"`
	Customer string       `cbor:"2,keyasint"`
	Scraper  ids.ID       `cbor:"3,keyasint"`
	From     ids.ID       `cbor:"4,keyasint"` // the run whose bodies are read
	Links    uint32       `cbor:"5,keyasint"` // of that run
	Recipe   model.Recipe `cbor:"6,keyasint"`
}

// Declaration implements Payload.
func (BeginReExtractPayload) Declaration() Declaration {
	return Declaration{Number: 250, By: APIServer, Kept: true, Since: state.ImportsSince}
}

func (BeginReExtractPayload) yields(Launched) {}

// ReExtracted is what came of the pages of a run that are read anew.
type ReExtracted struct {
	Success   uint32 `cbor:"1,keyasint,omitempty"` // as state.Job has them
	Errors    uint32 `cbor:"2,keyasint,omitempty"`
	Items     uint64 `cbor:"3,keyasint,omitempty"`
	Pages     uint64 `cbor:"4,keyasint,omitempty"`
	Delivered uint64 `cbor:"5,keyasint,omitempty"`
}

// AdvanceReExtractPayload says how far a run of kept bodies is, if that is news and it is open.
type AdvanceReExtractPayload struct {
	Job  ids.ID      `cbor:"1,keyasint"`
	Done ReExtracted `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (AdvanceReExtractPayload) Declaration() Declaration {
	return Declaration{Number: 251, By: Ingest, Since: state.ImportsSince}
}

func (AdvanceReExtractPayload) yields(None) {}

// EndReExtractPayload ends a run of kept bodies: all of its pages are stored and it is sealed, or
// Message says why it never will be. The first word stands; one about a run that is not open
// changes nothing.
type EndReExtractPayload struct {
	Job     ids.ID      `cbor:"1,keyasint"`
	Done    ReExtracted `cbor:"2,keyasint"`
	Message string      `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndReExtractPayload) Declaration() Declaration {
	return Declaration{Number: 252, By: Ingest, Since: state.ImportsSince}
}

func (EndReExtractPayload) yields(None) {}
