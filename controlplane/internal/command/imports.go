package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of uploads.
const (
	// MaxOpenImports and MaxImports are how many uploads a customer has that are open, and together
	// with those whose replaced rows are being removed.
	MaxOpenImports = 20
	MaxImports     = 1_000
	MaxAllImports  = 1_000 // open ones of all customers
	MaxHidden      = 256   // runs that one upload replaces at once
	MaxUploadBytes = 200_000_000
	maxMessage     = 500 // bytes of why one failed
)

// BeginImportPayload makes a run of the rows of a file, which is durably in the blob store under
// the run's id. An item of background work of that id imports it. With NewScraper the run's scraper
// is made in the same step. One whose run is there changes nothing. Faults: KEY_COLUMN_REQUIRED of
// a protected scraper without Key, invalid_request of one that is too long, scraper_not_found,
// ALREADY_RUNNING, NAME_TAKEN, INGEST_CAPACITY, INGEST_CAPACITY_GLOBAL, out_of_space,
// customer_blocked, GROUP_NOT_FOUND, limit_reached, plan_limit_reached.
type BeginImportPayload struct {
	Job        ids.ID             `cbor:"1,keyasint"`
	Customer   string             `cbor:"2,keyasint"`
	Scraper    ids.ID             `cbor:"3,keyasint"`
	NewScraper *PutScraperPayload `cbor:"4,keyasint,omitempty"`
	Format     string             `cbor:"5,keyasint"`
	Bytes      int64              `cbor:"6,keyasint"`
	// Heavy says that few such uploads are imported at a time.
	Heavy bool `cbor:"7,keyasint,omitempty"`
	// Key is the column by which a protected scraper's rows are told apart. It counts for its first
	// protected upload alone: then it is fixed. Asked is what the call named.
	Key   string `cbor:"8,keyasint,omitempty"`
	Asked string `cbor:"9,keyasint,omitempty"`
}

// Declaration implements Payload.
func (BeginImportPayload) Declaration() Declaration {
	return Declaration{Number: 223, By: APIServer, Kept: true, Since: state.ImportsSince}
}

func (BeginImportPayload) yields(BegunImport) {}

// BegunImport answers BeginImportPayload.
type BegunImport struct {
	Job     ids.ID `cbor:"1,keyasint"`
	Scraper ids.ID `cbor:"2,keyasint"`
	// Key is the column by which its rows are added, "": they replace those that are there.
	Key string `cbor:"3,keyasint,omitempty"`
}

// AdvanceImportPayload says how many rows of an upload are stored, if that is news and it is open.
type AdvanceImportPayload struct {
	Job   ids.ID `cbor:"1,keyasint"`
	Items uint64 `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (AdvanceImportPayload) Declaration() Declaration {
	return Declaration{Number: 224, By: Ingest, Since: state.ImportsSince}
}

func (AdvanceImportPayload) yields(None) {}

// EndImportPayload ends an upload: all of its rows are stored and it is sealed, or Message says why
// it never will be. The first word stands; one about an upload that is not open changes nothing.
type EndImportPayload struct {
	Job   ids.ID `cbor:"1,keyasint"`
	Items uint64 `cbor:"2,keyasint,omitempty"` // rows
	// Hides are the scraper's runs whose rows it replaces, at most MaxHidden: no read shows them
	// from now on.
	Hides   []ids.ID `cbor:"3,keyasint,omitempty"`
	Message string   `cbor:"4,keyasint,omitempty"`
	// Key is the column by which its rows were added. Rows of an upload that got another one
	// meanwhile are not those that are to be shown: nothing changes.
	Key string `cbor:"5,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndImportPayload) Declaration() Declaration {
	return Declaration{Number: 225, By: Ingest, Since: state.ImportsSince}
}

func (EndImportPayload) yields(None) {}

// ForgetImportsPayload says that the row store has no row any more that these uploads hide. Others,
// and those that are open, stay.
type ForgetImportsPayload struct {
	Jobs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetImportsPayload) Declaration() Declaration {
	return Declaration{Number: 226, By: Ingest, Since: state.ImportsSince}
}

func (ForgetImportsPayload) yields(None) {}

// PutUploadLimitsPayload sets the most that files of a customer may have, in bytes; 0: as much as
// of anybody. Faults: not_found, invalid_request below 0 or beyond MaxUploadBytes.
type PutUploadLimitsPayload struct {
	Customer string `cbor:"1,keyasint"`
	Bytes    int64  `cbor:"2,keyasint,omitempty"`
	Sheet    int64  `cbor:"3,keyasint,omitempty"` // of a spreadsheet
}

// Declaration implements Payload.
func (PutUploadLimitsPayload) Declaration() Declaration {
	return Declaration{Number: 227, By: APIServer, Kept: true, Since: state.ImportsSince}
}

func (PutUploadLimitsPayload) yields(state.Customer) {}

// MessageOfImport is why an upload failed, with at most as many bytes as a run keeps.
func MessageOfImport(text string) string { return text[:min(len(text), maxMessage)] }

// MaxOpenRuns is how many runs of a customer are not closed.
const MaxOpenRuns = 1_000

// RoomForImport refuses an upload as one too many of the customer's, or of all customers'.
func RoomForImport(v *state.View, customer string) error {
	all, open := v.Imports(customer), 0
	for _, i := range all {
		if i.Ended == 0 {
			open++
		}
	}
	switch {
	case open >= MaxOpenImports || len(all) >= MaxImports ||
		len(v.OpenJobsOfCustomer(customer)) >= MaxOpenRuns:
		return fault.New(fault.IngestCapacity,
			"%d uploads of the customer are under way; try again when one has ended", open)
	case v.OpenImports() >= MaxAllImports:
		return fault.New(fault.IngestCapacityGlobal,
			"the service has no room for more uploads at the moment; try again later")
	}
	return nil
}
