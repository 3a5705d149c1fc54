package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// IssueCodePayload makes a code for a program, on behalf of a signed-in person. It is valid for a
// minute, and once. If the hash exists, the answer is that code. Beyond 20 per account the oldest
// is removed. Faults: unauthorized when the session has ended, customer_blocked.
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

// RedeemCodePayload exchanges a code for a grant. If the code is unknown, expired or another
// program's, the answer has no id. Any use of a code uses it up, and a second use ends the grant
// made from it. Beyond 20 grants per account the least recently used one is removed.
type RedeemCodePayload struct {
	Hash     state.Hash `cbor:"1,keyasint"`
	Client   state.Hash `cbor:"2,keyasint"`
	Redirect state.Hash `cbor:"3,keyasint,omitzero"`  // zero: the program did not send it
	Verifier state.Hash `cbor:"4,keyasint"`           // the hash of the program's verifier
	Resource string     `cbor:"5,keyasint,omitempty"` // "": the code's
	Grant    ids.ID     `cbor:"6,keyasint"`
	Family   state.Hash `cbor:"7,keyasint"` // hash of the new tokens, as are the next two
	Refresh  state.Hash `cbor:"8,keyasint"`
	Access   state.Hash `cbor:"9,keyasint"`
}

// Declaration implements Payload.
func (RedeemCodePayload) Declaration() Declaration {
	return Declaration{Number: 193, By: APIServer, Kept: true, Since: state.GrantsSince}
}

func (RedeemCodePayload) yields(state.Grant) {}

// RefreshGrantPayload gives a grant new tokens for its current refresh token. The previous one gets
// the same answer for 30 s, since the first answer may have been lost. Any other token of the
// family was stolen, and ends the grant. Without new tokens the answer has no id.
type RefreshGrantPayload struct {
	Family   state.Hash `cbor:"1,keyasint"`
	Was      state.Hash `cbor:"2,keyasint"` // the refresh token that the program sent
	Client   state.Hash `cbor:"3,keyasint"`
	Refresh  state.Hash `cbor:"4,keyasint"` // the new one, derived from the one sent
	Access   state.Hash `cbor:"5,keyasint"`
	Resource string     `cbor:"6,keyasint,omitempty"` // "": the grant's
}

// Declaration implements Payload.
func (RefreshGrantPayload) Declaration() Declaration {
	return Declaration{Number: 196, By: APIServer, Kept: true, Since: state.GrantsSince}
}

func (RefreshGrantPayload) yields(state.Grant) {}

// EndGrantPayload ends a grant of a customer. A missing grant has ended.
type EndGrantPayload struct {
	Customer string `cbor:"1,keyasint"`
	Grant    ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (EndGrantPayload) Declaration() Declaration {
	return Declaration{Number: 197, By: APIServer, Since: state.GrantsSince}
}

func (EndGrantPayload) yields(None) {}
