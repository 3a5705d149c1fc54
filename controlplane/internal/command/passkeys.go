package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// AddPasskeyPayload adds a passkey to an account. If the id exists, the answer is that passkey.
// Faults: unauthorized when the account's password is no longer the checked one, passkey_taken,
// limit_reached (20 of an account).
type AddPasskeyPayload struct {
	ID         ids.ID `cbor:"1,keyasint"`
	Account    ids.ID `cbor:"2,keyasint"`
	Password   string `cbor:"3,keyasint"` // the hash that was checked
	Name       string `cbor:"4,keyasint"`
	Credential []byte `cbor:"5,keyasint"`
	PublicKey  []byte `cbor:"6,keyasint"`
	Count      uint32 `cbor:"7,keyasint,omitempty"`
	Synced     bool   `cbor:"8,keyasint,omitempty"`
}

// Declaration implements Payload.
func (AddPasskeyPayload) Declaration() Declaration {
	return Declaration{Number: 240, By: APIServer, Since: state.PasskeysSince}
}

func (AddPasskeyPayload) yields(state.Passkey) {}

// RemovePasskeyPayload removes a passkey of an account. A missing passkey is already removed.
type RemovePasskeyPayload struct {
	Account ids.ID `cbor:"1,keyasint"`
	Passkey ids.ID `cbor:"2,keyasint"`
}

// Declaration implements Payload.
func (RemovePasskeyPayload) Declaration() Declaration {
	return Declaration{Number: 241, By: APIServer, Since: state.PasskeysSince}
}

func (RemovePasskeyPayload) yields(None) {}

// UsePasskeyPayload opens a session after a passkey's answer was verified. Beyond 20 sessions per
// account the least recently used one is removed. Faults: unauthorized when the passkey is gone,
// the challenge was answered before, or the count shows a copy of it; account_disabled,
// customer_blocked.
type UsePasskeyPayload struct {
	Passkey ids.ID     `cbor:"1,keyasint"`
	Asked   int64      `cbor:"2,keyasint"` // when its challenge was made
	Count   uint32     `cbor:"3,keyasint,omitempty"`
	Hash    state.Hash `cbor:"4,keyasint"` // of the session's secret
}

// Declaration implements Payload.
func (UsePasskeyPayload) Declaration() Declaration {
	return Declaration{Number: 242, By: APIServer, Kept: true, Since: state.PasskeysSince}
}

func (UsePasskeyPayload) yields(state.Session) {}
