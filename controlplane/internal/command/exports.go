package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of kept exports.
const (
	MaxExports       = 20       // per customer
	MaxExportBytes   = 8 << 30  // of all files of a customer
	MaxExportRequest = 48 << 10 // bytes of a request
	MaxExportGroups  = 1_000    // that hold the rows of an export
	maxExportText    = 500      // bytes of an error message
)

// AskExportPayload makes background work of the same id write rows to a file, which is kept for a
// while. If the id exists, nothing changes. Faults: limit_reached, out_of_space, invalid_request,
// customer_blocked.
type AskExportPayload struct {
	ID       ids.ID   `cbor:"1,keyasint"`
	Customer string   `cbor:"2,keyasint"`
	Key      ids.ID   `cbor:"3,keyasint,omitempty"`
	Request  []byte   `cbor:"4,keyasint"`
	Owner    string   `cbor:"5,keyasint"`
	Groups   []ids.ID `cbor:"6,keyasint"`
	Kept     int64    `cbor:"7,keyasint"` // milliseconds
}

// Declaration implements Payload.
func (AskExportPayload) Declaration() Declaration {
	return Declaration{Number: 206, By: APIServer, Kept: true, Since: state.ExportsSince}
}

func (AskExportPayload) yields(state.Export) {}

// EndExportPayload says that an export's file is durably in the blob store, or, with a Code, that
// it failed. The first outcome stands. It answers the export afterwards. A file beyond the
// customer's bytes makes the export fail. Faults: not_found.
type EndExportPayload struct {
	ID     ids.ID `cbor:"1,keyasint"`
	Blob   ids.ID `cbor:"2,keyasint,omitempty"`
	Bytes  int64  `cbor:"3,keyasint,omitempty"`
	Rows   int64  `cbor:"4,keyasint,omitempty"`
	Digest []byte `cbor:"5,keyasint,omitempty"` // SHA-256
	Code   string `cbor:"6,keyasint,omitempty"`
	Detail string `cbor:"7,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndExportPayload) Declaration() Declaration {
	return Declaration{Number: 207, By: APIServer, Since: state.ExportsSince}
}

func (EndExportPayload) yields(state.Export) {}

// Shortened cuts a text to the bytes that an export keeps.
func Shortened(text string) string { return text[:min(len(text), maxExportText)] }

// DropExportPayload removes an export of a customer, with its background work. Faults: not_found.
type DropExportPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Customer string `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (DropExportPayload) Declaration() Declaration {
	return Declaration{Number: 208, By: APIServer, Kept: true, Since: state.ExportsSince}
}

func (DropExportPayload) yields(None) {}
