package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// CreateAccountPayload makes an account, and its customer where that is not there. One of the same
// id that is there is the answer. Faults: email_taken, limit_reached (100 of a customer).
type CreateAccountPayload struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Email    string `cbor:"2,keyasint"`
	Customer string `cbor:"3,keyasint"`
	Password string `cbor:"4,keyasint"` // its hash
	Admin    bool   `cbor:"5,keyasint,omitempty"`
	Entry    ids.ID `cbor:"6,keyasint"` // of the free grant
	// Renews says that an issuer tells how the account is now: one that is there becomes so. Its
	// sessions end where its password or its role is another one. It keeps its e-mail address where
	// the new one is another account's.
	Renews bool `cbor:"7,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (CreateAccountPayload) Declaration() Declaration {
	return Declaration{Number: 150, By: APIServer, Since: state.AccountsSince}
}

func (CreateAccountPayload) yields(state.Account) {}

// OpenSessionPayload begins a session of an account. Beyond 20 of an account the one goes that was
// not used for longest. Faults: unauthorized when the account's password is not the one that was
// checked any more, account_disabled, customer_blocked.
type OpenSessionPayload struct {
	Account  ids.ID     `cbor:"1,keyasint"`
	Password string     `cbor:"2,keyasint"` // the hash that was checked
	Hash     state.Hash `cbor:"3,keyasint"` // of the session's secret
	// Life is how long it lasts at most, in milliseconds; 0: as long as any.
	Life int64 `cbor:"4,keyasint,omitempty" since:"2"`
}

// Declaration implements Payload.
func (OpenSessionPayload) Declaration() Declaration {
	return Declaration{Number: 151, By: APIServer, Kept: true, Since: state.AccountsSince}
}

func (OpenSessionPayload) yields(state.Session) {}

// EndSessionsPayload ends a session of an account, or all of them. What is not there has ended.
type EndSessionsPayload struct {
	Account ids.ID     `cbor:"1,keyasint"`
	Hash    state.Hash `cbor:"2,keyasint,omitzero"` // zero: all
}

// Declaration implements Payload.
func (EndSessionsPayload) Declaration() Declaration {
	return Declaration{Number: 152, By: APIServer, Kept: true, Since: state.AccountsSince}
}

func (EndSessionsPayload) yields(None) {}

// TouchSessionsPayload notes when sessions were used. What has ended stays so, and an older time
// than the one that is known changes nothing.
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

// SetPasswordPayload gives an account another password, and ends its sessions but one. What it has
// already changes nothing. Faults: unauthorized when the account is gone, or its password is not
// the one that was checked any more.
type SetPasswordPayload struct {
	Account  ids.ID `cbor:"1,keyasint"`
	Was      string `cbor:"2,keyasint"` // the hash that was checked
	Password string `cbor:"3,keyasint"` // the new hash
	// Keep is the session that stays; zero: none.
	Keep state.Hash `cbor:"4,keyasint,omitzero"`
	// Expels removes its passkeys, too: one may be of who knew the password.
	Expels bool `cbor:"5,keyasint,omitempty"`
}

// Declaration implements Payload.
func (SetPasswordPayload) Declaration() Declaration {
	return Declaration{Number: 154, By: APIServer, Since: state.AccountsSince}
}

func (SetPasswordPayload) yields(None) {}

// DisableAccountPayload keeps an account from signing in and ends its sessions, or lets it sign in
// again. One that is disabled keeps its time. Faults: not_found.
type DisableAccountPayload struct {
	Account ids.ID `cbor:"1,keyasint"`
	Enable  bool   `cbor:"2,keyasint,omitempty"`
}

// Declaration implements Payload.
func (DisableAccountPayload) Declaration() Declaration {
	return Declaration{Number: 155, By: APIServer, Kept: true, Since: state.AccountsSince}
}

func (DisableAccountPayload) yields(None) {}

// RemoveAccountPayload removes an account and ends its sessions. Its customer stays, and what that
// has. One that is not there is removed already.
type RemoveAccountPayload struct {
	Account ids.ID `cbor:"1,keyasint"`
}

// Declaration implements Payload.
func (RemoveAccountPayload) Declaration() Declaration {
	return Declaration{Number: 156, By: APIServer, Since: state.AccountsSince}
}

func (RemoveAccountPayload) yields(None) {}
