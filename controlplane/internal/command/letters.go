package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// PutLetterPayload sends a letter to an address, with a link that sets its account's password, or
// makes an account. The answer never says whether a letter is sent. None is sent if the account
// cannot sign in, or three letters to the address are open. Nor is one if the address has no
// account, and SignUp is not set or nobody may sign up. At most 10,000 open letters make accounts.
// Faults: unavailable.
type PutLetterPayload struct {
	ID    ids.ID `cbor:"1,keyasint"`
	Email string `cbor:"2,keyasint"`
	// Known says that the account has signed in with the asking browser. Then its oldest letter is
	// removed to make room.
	Known bool `cbor:"3,keyasint,omitempty"`
	// SignUp says that the person wants an account.
	SignUp bool `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutLetterPayload) Declaration() Declaration {
	return Declaration{Number: 157, By: APIServer, Kept: true, Since: state.LettersSince}
}

func (PutLetterPayload) yields(None) {}

// UseLetterPayload sets the password of a letter's account, and ends its sessions and letters. Or
// it makes the account, with a customer of its own whose id is the account's. Repeating it changes
// nothing. Faults: unauthorized when the letter is gone or expired, or it makes an account and
// nobody may sign up.
type UseLetterPayload struct {
	Letter   ids.ID `cbor:"1,keyasint"`
	Account  ids.ID `cbor:"2,keyasint"`          // a new id if the letter makes one
	Password string `cbor:"3,keyasint"`          // the new hash
	Entry    ids.ID `cbor:"4,keyasint,omitzero"` // of a new customer's free grant
}

// Declaration implements Payload.
func (UseLetterPayload) Declaration() Declaration {
	return Declaration{Number: 176, By: APIServer, Since: state.LettersSince}
}

func (UseLetterPayload) yields(None) {}

// HandLetterPayload makes a letter that an admin passes on, whose link is valid for 24 hours. It
// replaces all letters of the account. If the id exists, the answer is that letter. Faults:
// not_found, account_disabled.
type HandLetterPayload struct {
	ID      ids.ID `cbor:"1,keyasint"`
	Account ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (HandLetterPayload) Declaration() Declaration {
	return Declaration{Number: 177, By: APIServer, Kept: true, Since: state.LettersSince}
}

func (HandLetterPayload) yields(state.Letter) {}
