package state

import "shoal.dev/shoal/pkg/ids"

// ExportsSince is the first cluster version in which exports are kept.
const ExportsSince = 2

// ExportState is the state of a kept export.
type ExportState string

// The states of a kept export.
const (
	ExportWaiting ExportState = "WAITING" // background work writes it
	ExportReady   ExportState = "READY"   // its file is in the blob store
	ExportFailed  ExportState = "FAILED"  // no file will be written
)

// Values implements the API's enums.
func (ExportState) Values() []string {
	return []string{string(ExportWaiting), string(ExportReady), string(ExportFailed)}
}

// Export is a file of rows, written in the background and kept for a while. Times are in Unix
// milliseconds.
type Export struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"` // who asked for it
	// Key is the API key that asked; zero: a signed-in person. Once it is revoked the file is not
	// written.
	Key ids.ID `cbor:"3,keyasint,omitempty"`
	// Request says which rows to write in which format. Only the API interprets it.
	Request []byte `cbor:"4,keyasint"`
	// Owner is the customer whose rows they are. Groups are the groups that hold them.
	Owner     string      `cbor:"5,keyasint"`
	Groups    []ids.ID    `cbor:"6,keyasint"`
	State     ExportState `cbor:"7,keyasint"`
	CreatedAt int64       `cbor:"8,keyasint"`
	EndedAt   int64       `cbor:"9,keyasint,omitempty"`  // when it became READY or FAILED
	ExpiresAt int64       `cbor:"10,keyasint"`           // when the record and the file are removed
	Blob      ids.ID      `cbor:"11,keyasint,omitempty"` // names the file in the blob store
	Bytes     int64       `cbor:"12,keyasint,omitempty"`
	Rows      int64       `cbor:"13,keyasint,omitempty"`
	Digest    []byte      `cbor:"14,keyasint,omitempty"` // SHA-256 of the file
	// Code and Detail say why it failed.
	Code   string `cbor:"15,keyasint,omitempty"`
	Detail string `cbor:"16,keyasint,omitempty"`
}

var exportsTable = define(ExportsSince, "exports",
	index("id", true, func(e *Export) []any { return []any{e.ID} }),
	index("customer", true, func(e *Export) []any { return []any{e.Customer, e.ID} }),
	index("expires", true, func(e *Export) []any { return []any{e.ExpiresAt, e.ID} }),
).told((*Export).telling)

// Export returns the export with an id, or nil.
func (v *View) Export(id ids.ID) *Export { return exportsTable.first(v, "id", id) }

// Exports lists a customer's kept exports, the oldest first.
func (v *View) Exports(customer string) []*Export {
	return exportsTable.all(v, "customer_prefix", customer)
}

// ExportsByExpiry visits kept exports in the order of expiry, until visit returns false.
func (v *View) ExportsByExpiry(visit func(*Export) bool) {
	exportsTable.each(v, false, visit, "expires_prefix")
}

// PutExport adds or replaces an export.
func (t *Tx) PutExport(e *Export) { exportsTable.put(t, e) }

// RemoveExport removes an export.
func (t *Tx) RemoveExport(e *Export) { exportsTable.remove(t, e) }
