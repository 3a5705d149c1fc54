package command

import (
	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// Envelope is a command as the log stores it.
type Envelope struct {
	ID     ids.ID          `cbor:"1,keyasint"` // proposing the same id again changes nothing
	Number Number          `cbor:"2,keyasint"`
	Stamp  int64           `cbor:"3,keyasint"` // the leader's clock at append, Unix milliseconds
	Body   cbor.RawMessage `cbor:"4,keyasint"` // the payload
	Call   *Call           `cbor:"5,keyasint,omitempty"`
	// Actor is who caused it; nil: the cluster itself. Version 1 has no actors.
	Actor *state.Actor `cbor:"6,keyasint,omitempty"`
}

// Call is the idempotency key of a command.
type Call struct {
	Customer  string `cbor:"1,keyasint"`
	Operation string `cbor:"2,keyasint"`
	Key       string `cbor:"3,keyasint"`
	Request   uint64 `cbor:"4,keyasint"` // hash of the request
	// Ticket is the id of the ClaimCall command that claimed the key before, zero when this command
	// claims it itself.
	Ticket ids.ID `cbor:"5,keyasint,omitempty"`
	// Body is the hash of the call's streamed body, 0: it has none, or it has not arrived. Version
	// 1 has no bodies.
	Body uint64 `cbor:"6,keyasint,omitempty"`
	// AnswerOnly says that the command may only return the key's first result. Version 1 has no
	// such calls.
	AnswerOnly bool `cbor:"7,keyasint,omitempty"`
}
