package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// maxAdmin bounds the subject of an admin, in bytes.
const maxAdmin = 256

// BeginCataloguePayload has background work of the same id look at a file of products, which is
// durably in the blob store under that id. The file that was being looked at until now is given up.
// One whose id is there changes nothing. Faults: out_of_space, invalid_request.
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

// EndCataloguePayload says that a catalogue is whole, or with Message why it never will be. A whole
// one takes the place of the one before in this step. The first word stands; one about a file that
// is looked at no more changes nothing.
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

// AdminOf is the subject of an admin with at most as many bytes as records keep.
func AdminOf(subject string) string { return subject[:min(len(subject), maxAdmin)] }
