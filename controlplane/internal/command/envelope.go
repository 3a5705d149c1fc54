package command

import (
	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Envelope is a command as it stands in the log.
type Envelope struct {
	ID     ids.ID          `cbor:"1,keyasint"` // proposing the same id again changes nothing
	Number Number          `cbor:"2,keyasint"`
	Stamp  int64           `cbor:"3,keyasint"` // the leader's clock at append, Unix milliseconds
	Body   cbor.RawMessage `cbor:"4,keyasint"` // the payload
	Call   *Call           `cbor:"5,keyasint,omitempty"`
	// Actor is who had it proposed; nil: the cluster by itself. Clusters of version 1 have none.
	Actor *state.Actor `cbor:"6,keyasint,omitempty"`
}

// Call is the idempotency key under which a command stands.
type Call struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"`
	Key       string `cbor:"3,keyasint"`
	Request   uint64 `cbor:"4,keyasint"` // hash of the request
	// Ticket is the id of the ClaimCall command that claimed the key before, zero when the effect
	// claims it itself.
	Ticket ids.ID `cbor:"5,keyasint,omitempty"`
	// Body is the hash of the streamed body that the call came with, 0: it has none, or it has not
	// come yet. Clusters of version 1 have none.
	Body uint64 `cbor:"6,keyasint,omitempty"`
}
