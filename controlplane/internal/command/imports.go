package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of uploads.
const (
	// MaxOpenImports bounds a customer's open uploads. MaxImports also counts those whose replaced
	// rows are being removed.
	MaxOpenImports = 20
	MaxImports     = 1_000
	MaxAllImports  = 1_000 // open uploads of all customers
	MaxHidden      = 256   // runs that one upload may replace
	MaxUploadBytes = 200_000_000
	maxMessage     = 500 // bytes of an error message
)

// BeginImportPayload makes a run from the rows of a file, which is durably in the blob store under
// the run's id. Background work of that id imports it. With NewScraper it also makes the run's
// scraper. If the run exists, nothing changes. Faults: KEY_COLUMN_REQUIRED of a protected scraper
// without Key, invalid_request of one that is too long, scraper_not_found, ALREADY_RUNNING,
// NAME_TAKEN, INGEST_CAPACITY, INGEST_CAPACITY_GLOBAL, out_of_space, customer_blocked,
// GROUP_NOT_FOUND, limit_reached, plan_limit_reached.
type BeginImportPayload struct {
	Job        ids.ID             `cbor:"1,keyasint"`
	Customer   string             `cbor:"2,keyasint"`
	Scraper    ids.ID             `cbor:"3,keyasint"`
	NewScraper *PutScraperPayload `cbor:"4,keyasint,omitempty"`
	Format     string             `cbor:"5,keyasint"`
	Bytes      int64              `cbor:"6,keyasint"`
	// Heavy says that only a few such uploads may be imported at a time.
	Heavy bool `cbor:"7,keyasint,omitempty"`
	// Key is the column that identifies a protected scraper's rows. Only the first protected upload
	// sets it; then it is fixed. Asked is the column that the call named.
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
	// Key is the column by which its rows are merged, "": they replace the existing ones.
	Key string `cbor:"3,keyasint,omitempty"`
}

// AdvanceImportPayload updates the number of stored rows of an open upload.
type AdvanceImportPayload struct {
	Job   ids.ID `cbor:"1,keyasint"`
	Items uint64 `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (AdvanceImportPayload) Declaration() Declaration {
	return Declaration{Number: 224, By: Ingest, Since: state.ImportsSince}
}

func (AdvanceImportPayload) yields(None) {}

// EndImportPayload ends an upload: all its rows are stored and it is sealed, or Message says why it
// failed. The first outcome stands. An upload that is not open is ignored.
type EndImportPayload struct {
	Job   ids.ID `cbor:"1,keyasint"`
	Items uint64 `cbor:"2,keyasint,omitempty"` // rows
	// Hides lists the scraper's runs whose rows it replaces, at most MaxHidden. No read shows them
	// from now on.
	Hides   []ids.ID `cbor:"3,keyasint,omitempty"`
	Message string   `cbor:"4,keyasint,omitempty"`
	// Key is the column by which its rows were merged. If the upload has got another key meanwhile,
	// the rows are wrong and nothing changes.
	Key string `cbor:"5,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndImportPayload) Declaration() Declaration {
	return Declaration{Number: 225, By: Ingest, Since: state.ImportsSince}
}

func (EndImportPayload) yields(None) {}

// ForgetImportsPayload says that the row store has removed all rows that these uploads hide. It
// ignores other uploads, and open ones.
type ForgetImportsPayload struct {
	Jobs []ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (ForgetImportsPayload) Declaration() Declaration {
	return Declaration{Number: 226, By: Ingest, Since: state.ImportsSince}
}

func (ForgetImportsPayload) yields(None) {}

// PutUploadLimitsPayload bounds the size of a customer's files, in bytes; 0: the general bound.
// Faults: not_found, invalid_request below 0 or beyond MaxUploadBytes.
type PutUploadLimitsPayload struct {
	Customer string `cbor:"1,keyasint"`
	Bytes    int64  `cbor:"2,keyasint,omitempty"`
	Sheet    int64  `cbor:"3,keyasint,omitempty"` // for a spreadsheet
}

// Declaration implements Payload.
func (PutUploadLimitsPayload) Declaration() Declaration {
	return Declaration{Number: 227, By: APIServer, Kept: true, Since: state.ImportsSince}
}

func (PutUploadLimitsPayload) yields(state.Customer) {}

// MessageOfImport cuts an error message to the bytes that a run keeps.
func MessageOfImport(text string) string { return text[:min(len(text), maxMessage)] }

// MaxOpenRuns bounds a customer's runs that are not closed.
const MaxOpenRuns = 1_000

// RoomForImport refuses an upload beyond the bounds per customer, or of all customers.
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
