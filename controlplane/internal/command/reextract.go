package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// BeginReExtractPayload makes a run from the kept bodies of another run, read by a recipe.
// Background work of the run's id reads them. It needs no money. Otherwise it is like an upload: it
// has no list and no entry, and its rows are visible once it is complete. If the run exists,
// nothing changes. Faults: scraper_not_found, scraper_already_running, INGEST_CAPACITY,
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

// ReExtracted counts the outcomes of a run whose pages are extracted again.
type ReExtracted struct {
	Success   uint32 `cbor:"1,keyasint,omitempty"` // as in state.Job
	Errors    uint32 `cbor:"2,keyasint,omitempty"`
	Items     uint64 `cbor:"3,keyasint,omitempty"`
	Pages     uint64 `cbor:"4,keyasint,omitempty"`
	Delivered uint64 `cbor:"5,keyasint,omitempty"`
}

// AdvanceReExtractPayload updates the counts of an open run of kept bodies.
type AdvanceReExtractPayload struct {
	Job  ids.ID      `cbor:"1,keyasint"`
	Done ReExtracted `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (AdvanceReExtractPayload) Declaration() Declaration {
	return Declaration{Number: 251, By: Ingest, Since: state.ImportsSince}
}

func (AdvanceReExtractPayload) yields(None) {}

// EndReExtractPayload ends a run of kept bodies: all its pages are stored and it is sealed, or
// Message says why it failed. The first outcome stands. A run that is not open is ignored.
type EndReExtractPayload struct {
	Job     ids.ID      `cbor:"1,keyasint"`
	Done    ReExtracted `cbor:"2,keyasint"`
	Message string      `cbor:"3,keyasint,omitempty"`
	Odd     string      `cbor:"4,keyasint,omitempty"` // as in CloseRunPayload
	// Unjudged is as in CloseRunPayload, too.
	Unjudged string `cbor:"5,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndReExtractPayload) Declaration() Declaration {
	return Declaration{Number: 252, By: Ingest, Since: state.ImportsSince}
}

func (EndReExtractPayload) yields(None) {}
