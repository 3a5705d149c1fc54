package state

import (
	"crypto/sha256"

	"shoal.dev/shoal/pkg/ids"
)

// PasskeysSince is the first cluster version in which people sign in by passkeys.
const PasskeysSince = 2

// Passkey lets a person sign in without the account's password (Web Authentication, Level 3). It
// has the public half alone.
type Passkey struct {
	ID         ids.ID `cbor:"1,keyasint"`
	Account    ids.ID `cbor:"2,keyasint"`
	Customer   string `cbor:"3,keyasint"` // of the account
	Name       string `cbor:"4,keyasint"` // as the person calls it
	Credential []byte `cbor:"5,keyasint"` // its id, as the authenticator chose it
	PublicKey  []byte `cbor:"6,keyasint"` // a COSE key (RFC 9052, section 7)
	// Count is how often it has signed, as it says itself; 0: it does not count.
	Count uint32 `cbor:"7,keyasint,omitempty"`
	// Synced says that its owner may have it on several devices.
	Synced    bool  `cbor:"8,keyasint,omitempty"`
	CreatedAt int64 `cbor:"9,keyasint"`
	UsedAt    int64 `cbor:"10,keyasint,omitempty"` // 0: never
	// Asked is when the newest challenge was made that it has answered. An older one is good no
	// more, so that each is answered once.
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

// Passkey is nil when there is none of that id.
func (v *View) Passkey(id ids.ID) *Passkey { return passkeysTable.first(v, "id", id) }

// PasskeyOf is the one that an authenticator knows by a credential's id; nil: none.
func (v *View) PasskeyOf(credential []byte) *Passkey {
	return passkeysTable.first(v, "credential", Hash(sha256.Sum256(credential)))
}

// Passkeys are those of an account, the oldest first.
func (v *View) Passkeys(account ids.ID) []*Passkey {
	return passkeysTable.all(v, "account_prefix", account)
}

// PutPasskey adds or replaces.
func (t *Tx) PutPasskey(p *Passkey) { passkeysTable.put(t, p) }

// RemovePasskey removes.
func (t *Tx) RemovePasskey(p *Passkey) { passkeysTable.remove(t, p) }
