package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// CreateAccountPayload makes an account, and its customer if there is none. If the id exists, the
// answer is that account. Faults: email_taken, limit_reached (100 of a customer).
type CreateAccountPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Email    string `cbor:"2,keyasint"`
	Customer string `cbor:"3,keyasint"`
	Password string `cbor:"4,keyasint"` // its hash
	Admin    bool   `cbor:"5,keyasint,omitempty"`
	Entry    ids.ID `cbor:"6,keyasint"` // of the free grant
	// Renews says that an issuer reports the account's current data: an existing account is
	// updated. If its password or role changes, its sessions end. It keeps its e-mail address if
	// another account has the new one.
	Renews bool `cbor:"7,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (CreateAccountPayload) Declaration() Declaration {
	return Declaration{Number: 150, By: APIServer, Since: state.AccountsSince}
}

func (CreateAccountPayload) yields(state.Account) {}

// OpenSessionPayload opens a session of an account. Beyond 20 per account, the least recently used
// one is removed. Faults: unauthorized when the account's password is no longer the checked one,
// account_disabled, customer_blocked.
type OpenSessionPayload struct {
	Account  ids.ID     `cbor:"1,keyasint"`
	Password string     `cbor:"2,keyasint"` // the hash that was checked
	Hash     state.Hash `cbor:"3,keyasint"` // of the session's secret
	// Life is its longest life, in milliseconds; 0: the general one.
	Life int64 `cbor:"4,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (OpenSessionPayload) Declaration() Declaration {
	return Declaration{Number: 151, By: APIServer, Kept: true, Since: state.AccountsSince}
}

func (OpenSessionPayload) yields(state.Session) {}

// EndSessionsPayload ends a session of an account, or all of them. A missing session has ended.
type EndSessionsPayload struct {
	Account ids.ID     `cbor:"1,keyasint"`
	Hash    state.Hash `cbor:"2,keyasint,omitzero"` // zero: all
}

// Declaration implements Payload.
func (EndSessionsPayload) Declaration() Declaration {
	return Declaration{Number: 152, By: APIServer, Kept: true, Since: state.AccountsSince}
}

func (EndSessionsPayload) yields(None) {}

// TouchSessionsPayload records when sessions were used. It ignores ended sessions, and times older
// than the recorded one.
type TouchSessionsPayload struct {
	Sessions []SessionTouch `cbor:"1,keyasint"`
}

// SessionTouch is one use of a session.
type SessionTouch struct {
	Hash state.Hash `cbor:"1,keyasint"`
	At   int64      `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (TouchSessionsPayload) Declaration() Declaration {
	return Declaration{Number: 153, By: APIServer, Since: state.AccountsSince}
}

func (TouchSessionsPayload) yields(None) {}

// SetPasswordPayload changes an account's password, and ends its sessions except one. If the
// account already has the password, nothing changes. Faults: unauthorized when the account is gone,
// or its password is no longer the checked one.
type SetPasswordPayload struct {
	Account  ids.ID `cbor:"1,keyasint"`
	Was      string `cbor:"2,keyasint"` // the hash that was checked
	Password string `cbor:"3,keyasint"` // the new hash
	// Keep is the session that stays; zero: none.
	Keep state.Hash `cbor:"4,keyasint,omitzero"`
	// Expels also removes its passkeys, since one may belong to a person who knew the password.
	Expels bool `cbor:"5,keyasint,omitempty"`
}

// Declaration implements Payload.
func (SetPasswordPayload) Declaration() Declaration {
	return Declaration{Number: 154, By: APIServer, Since: state.AccountsSince}
}

func (SetPasswordPayload) yields(None) {}

// DisableAccountPayload disables an account and ends its sessions, or enables it again. A disabled
// account keeps its DisabledAt. Faults: not_found.
type DisableAccountPayload struct {
	Account ids.ID `cbor:"1,keyasint"`
	Enable  bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DisableAccountPayload) Declaration() Declaration {
	return Declaration{Number: 155, By: APIServer, Kept: true, Since: state.AccountsSince}
}

func (DisableAccountPayload) yields(None) {}

// RemoveAccountPayload removes an account and ends its sessions. Its customer stays, with
// everything it owns. A missing account is already removed.
type RemoveAccountPayload struct {
	Account ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (RemoveAccountPayload) Declaration() Declaration {
	return Declaration{Number: 156, By: APIServer, Since: state.AccountsSince}
}

func (RemoveAccountPayload) yields(None) {}
