package state

import (
	"crypto/sha256"

	"shoal.dev/shoal/pkg/ids"
)

// PasskeysSince is the first cluster version with passkeys.
const PasskeysSince = 2

// Passkey lets a person sign in without the account's password (Web Authentication, Level 3). Only
// its public key is stored.
type Passkey struct {
	ID         ids.ID `cbor:"1,keyasint"`
	Account    ids.ID `cbor:"2,keyasint"`
	Customer   string `cbor:"3,keyasint"` // of the account
	Name       string `cbor:"4,keyasint"` // chosen by the person
	Credential []byte `cbor:"5,keyasint"` // its id, chosen by the authenticator
	PublicKey  []byte `cbor:"6,keyasint"` // a COSE key (RFC 9052, section 7)
	// Count is the authenticator's count of signatures; 0: it does not count.
	Count uint32 `cbor:"7,keyasint,omitempty"`
	// Synced says that it may exist on several devices of its owner.
	Synced    bool  `cbor:"8,keyasint,omitempty"`
	CreatedAt int64 `cbor:"9,keyasint"`
	UsedAt    int64 `cbor:"10,keyasint,omitempty"` // 0: never
	// Asked is when the newest answered challenge was made. Older challenges are invalid, so that
	// each is answered once.
	Asked int64 `cbor:"11,keyasint,omitempty"`
}

var passkeysTable = define(PasskeysSince, "passkeys",
	index("id", true, func(p *Passkey) []any { return []any{p.ID} }),
	index("account", true, func(p *Passkey) []any { return []any{p.Account, p.ID} }),
	index("credential", true, func(p *Passkey) []any {
		return []any{Hash(sha256.Sum256(p.Credential))}
	}),
).told((*Passkey).telling).always()

func (p *Passkey) telling() telling {
	return telling{p.Customer, struct {
		Account   ids.ID `json:"account"`
		Name      string `json:"name"`
		CreatedAt int64  `json:"createdAt"`
	}{p.Account, p.Name, p.CreatedAt}}
}

// Passkey returns the passkey with an id, or nil.
func (v *View) Passkey(id ids.ID) *Passkey { return passkeysTable.first(v, "id", id) }

// PasskeyOf returns the passkey with a credential's id, or nil.
func (v *View) PasskeyOf(credential []byte) *Passkey {
	return passkeysTable.first(v, "credential", Hash(sha256.Sum256(credential)))
}

// Passkeys lists an account's passkeys, the oldest first.
func (v *View) Passkeys(account ids.ID) []*Passkey {
	return passkeysTable.all(v, "account_prefix", account)
}

// PutPasskey adds or replaces a passkey.
func (t *Tx) PutPasskey(p *Passkey) { passkeysTable.put(t, p) }

// RemovePasskey removes a passkey.
func (t *Tx) RemovePasskey(p *Passkey) { passkeysTable.remove(t, p) }
