package command

import "shoal.dev/shoal/pkg/ids"

// DropAuditPayload says that the archive has the entries of the audit trail that a generation has
// numbered From to Upto, durably. It takes them out of the state. It changes nothing unless From is
// the generation's first entry there.
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

// NoteSignInPayload has the audit trail tell of a sign-in by the actor of the command. Those that
// fail are summed by minute and address, and told when the minute is over.
type NoteSignInPayload struct {
	Failed bool `cbor:"1,keyasint,omitempty"`
	// Action is what an entry of its own is called: sign-in, sign-out and their like, 1 to 64
	// bytes; of no use when it Failed.
	Action string `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (NoteSignInPayload) Declaration() Declaration {
	return Declaration{Number: 131, By: APIServer, Kept: true, Since: 2}
}

func (NoteSignInPayload) yields(None) {}
