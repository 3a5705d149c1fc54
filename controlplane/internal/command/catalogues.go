package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// maxAdmin bounds an admin's subject, in bytes.
const maxAdmin = 256

// BeginCataloguePayload makes background work of the same id check a file of products, which is
// durably in the blob store under that id. The file being checked until now is given up. If the id
// exists, nothing changes. Faults: out_of_space, invalid_request.
type BeginCataloguePayload struct {
	ID     ids.ID `cbor:"1,keyasint"`
	Format string `cbor:"2,keyasint"`
	Bytes  int64  `cbor:"3,keyasint"`
	By     string `cbor:"4,keyasint"` // the admin's subject
}

// Declaration implements Payload.
func (BeginCataloguePayload) Declaration() Declaration {
	return Declaration{Number: 258, By: APIServer, Since: state.CataloguesSince}
}

func (BeginCataloguePayload) yields(state.Catalogue) {}

// EndCataloguePayload says that a catalogue's file is valid, or with Message why it is not. A valid
// catalogue replaces the previous one in this step. The first outcome stands. It is ignored if the
// file is no longer being checked.
type EndCataloguePayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Products uint64 `cbor:"2,keyasint,omitempty"`
	Message  string `cbor:"3,keyasint,omitempty"`
}

// Declaration implements Payload.
func (EndCataloguePayload) Declaration() Declaration {
	return Declaration{Number: 259, By: Ingest, Since: state.CataloguesSince}
}

func (EndCataloguePayload) yields(None) {}

// AdminOf cuts an admin's subject to the bytes that records keep.
func AdminOf(subject string) string { return subject[:min(len(subject), maxAdmin)] }
