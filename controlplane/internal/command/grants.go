package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// IssueCodePayload makes a code for a program, in the name of who has signed in. It is good for a
// minute and once. One of the same hash that is there is the answer. Beyond 20 of an account the
// oldest one goes. Faults: unauthorized when the session has ended, customer_blocked.
type IssueCodePayload struct {
	Hash     state.Hash  `cbor:"1,keyasint"`
	Session  state.Hash  `cbor:"2,keyasint"`
	Client   state.Hash  `cbor:"3,keyasint"` // of the program's id
	Name     string      `cbor:"4,keyasint"`
	Redirect state.Hash  `cbor:"5,keyasint"` // of the address that the code is sent to
	Verifier state.Hash  `cbor:"6,keyasint"` // the challenge (RFC 7636, S256)
	Scope    model.Scope `cbor:"7,keyasint"`
	Resource string      `cbor:"8,keyasint"`
}

// Declaration implements Payload.
func (IssueCodePayload) Declaration() Declaration {
	return Declaration{Number: 192, By: APIServer, Since: state.GrantsSince}
}

func (IssueCodePayload) yields(state.GrantCode) {}

// RedeemCodePayload makes a grant of a code. The answer has no id where it makes none. That is so
// when there is no such code, its minute is over, or it is not this program's. Whoever shows a code
// uses it up, and a second one ends the grant that it became. Beyond 20 of an account the grant
// goes that was not used for longest.
type RedeemCodePayload struct {
	Hash     state.Hash `cbor:"1,keyasint"`
	Client   state.Hash `cbor:"2,keyasint"`
	Redirect state.Hash `cbor:"3,keyasint,omitzero"`  // zero: the program does not say
	Verifier state.Hash `cbor:"4,keyasint"`           // the hash of what the program has shown
	Resource string     `cbor:"5,keyasint,omitempty"` // "": that of the code
	Grant    ids.ID     `cbor:"6,keyasint"`
	Family   state.Hash `cbor:"7,keyasint"` // of the new tokens, as are these
	Refresh  state.Hash `cbor:"8,keyasint"`
	Access   state.Hash `cbor:"9,keyasint"`
}

// Declaration implements Payload.
func (RedeemCodePayload) Declaration() Declaration {
	return Declaration{Number: 193, By: APIServer, Kept: true, Since: state.GrantsSince}
}

func (RedeemCodePayload) yields(state.Grant) {}

// RefreshGrantPayload gives a grant other tokens for the refresh token that is good. The one before
// it gets the same answer for 30 s, as the first may have been lost. Any other one of the family
// ends the grant: somebody has stolen it. The answer has no id where there are no tokens.
type RefreshGrantPayload struct {
	Family   state.Hash `cbor:"1,keyasint"`
	Was      state.Hash `cbor:"2,keyasint"` // the refresh token that was shown
	Client   state.Hash `cbor:"3,keyasint"`
	Refresh  state.Hash `cbor:"4,keyasint"` // the new one, which follows from the one that was shown
	Access   state.Hash `cbor:"5,keyasint"`
	Resource string     `cbor:"6,keyasint,omitempty"` // "": the grant's
}

// Declaration implements Payload.
func (RefreshGrantPayload) Declaration() Declaration {
	return Declaration{Number: 196, By: APIServer, Kept: true, Since: state.GrantsSince}
}

func (RefreshGrantPayload) yields(state.Grant) {}

// EndGrantPayload ends a grant of a customer. One that is not there has ended.
type EndGrantPayload struct {
	Customer string `cbor:"1,keyasint"`
	Grant    ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (EndGrantPayload) Declaration() Declaration {
	return Declaration{Number: 197, By: APIServer, Since: state.GrantsSince}
}

func (EndGrantPayload) yields(None) {}
