package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// PutLetterPayload has a letter sent to an address, with a link that sets the password of the
// account which has it, or makes one. Whoever asks is answered the same when nothing comes of it.
// That is so when the account does not sign in, or three letters to the address are open. It is so
// when no account has the address, and SignUp is not set or nobody may sign up. At most 10,000
// letters are open which make accounts. Faults: unavailable.
type PutLetterPayload struct {
	ID    ids.ID `cbor:"1,keyasint"`
	Email string `cbor:"2,keyasint"`
	// Known says that a browser asks that the account has signed in with: its oldest letter makes
	// room then.
	Known bool `cbor:"3,keyasint,omitempty"`
	// SignUp says that who asks wants an account.
	SignUp bool `cbor:"4,keyasint,omitempty"`
}

// Declaration implements Payload.
func (PutLetterPayload) Declaration() Declaration {
	return Declaration{Number: 157, By: APIServer, Kept: true, Since: state.LettersSince}
}

func (PutLetterPayload) yields(None) {}

// UseLetterPayload gives the account of a letter another password, and ends its sessions and its
// letters. Or it makes the account, with a customer of its own under the account's id. What is so
// already stays. Faults: unauthorized when the letter is not there any more, its time is over, or
// it makes an account and nobody may sign up.
type UseLetterPayload struct {
	Letter   ids.ID `cbor:"1,keyasint"`
	Account  ids.ID `cbor:"2,keyasint"`          // a new id where the letter makes one
	Password string `cbor:"3,keyasint"`          // the new hash
	Entry    ids.ID `cbor:"4,keyasint,omitzero"` // of the free grant of who is new
}

// Declaration implements Payload.
func (UseLetterPayload) Declaration() Declaration {
	return Declaration{Number: 176, By: APIServer, Since: state.LettersSince}
}

func (UseLetterPayload) yields(None) {}

// HandLetterPayload makes a letter that an admin hands on: its link is good for 24 hours. It takes
// the place of all letters of the account. One of the same id that is there is the answer. Faults:
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
