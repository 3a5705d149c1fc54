package command

import "shoal.dev/shoal/pkg/ids"

// DropAuditPayload says that the archive durably has a generation's audit entries numbered From to
// Upto. It removes them from the state. It changes nothing unless From is the generation's first
// entry there.
type DropAuditPayload struct {
	Generation ids.ID `cbor:"1,keyasint"`
	From       uint64 `cbor:"2,keyasint"`
	Upto       uint64 `cbor:"3,keyasint"`
}

// Declaration implements Payload.
func (DropAuditPayload) Declaration() Declaration {
	return Declaration{Number: 130, By: Leader, Since: 2}
}

func (DropAuditPayload) yields(None) {}

// NoteSignInPayload records a sign-in by the command's actor in the audit trail. Failures are
// counted by minute and address, and recorded when the minute has passed.
type NoteSignInPayload struct {
	Failed bool `cbor:"1,keyasint,omitempty"`
	// Action names the entry: sign-in, sign-out and the like, 1 to 64 bytes. It is unused when
	// Failed.
	Action string `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (NoteSignInPayload) Declaration() Declaration {
	return Declaration{Number: 131, By: APIServer, Kept: true, Since: 2}
}

func (NoteSignInPayload) yields(None) {}
