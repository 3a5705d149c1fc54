package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const maxPasskeys = 20 // of an account

func addPasskey(tx *state.Tx, p command.AddPasskeyPayload) (state.Passkey, error) {
	if known := tx.Passkey(p.ID); known != nil {
		return *known, nil
	}
	account := tx.Account(p.Account)
	switch {
	case account == nil || account.Password != p.Password:
		return state.Passkey{}, errPasswordChanged()
	case tx.PasskeyOf(p.Credential) != nil:
		return state.Passkey{}, fault.New(fault.PasskeyTaken, "this passkey is known already")
	case len(tx.Passkeys(account.ID)) >= maxPasskeys:
		return state.Passkey{}, fault.New(fault.LimitReached, "an account has at most %d passkeys",
			maxPasskeys)
	}
	passkey := state.Passkey{ID: p.ID, Account: account.ID, Customer: account.Customer,
		Name: p.Name, Credential: p.Credential, PublicKey: p.PublicKey,
		Count: p.Count, Synced: p.Synced, CreatedAt: tx.Now}
	tx.PutPasskey(&passkey)
	return passkey, nil
}

func removePasskey(tx *state.Tx, p command.RemovePasskeyPayload) (command.None, error) {
	if passkey := tx.Passkey(p.Passkey); passkey != nil && passkey.Account == p.Account {
		dropPasskey(tx, passkey)
	}
	return command.None{}, nil
}

func usePasskey(tx *state.Tx, p command.UsePasskeyPayload) (state.Session, error) {
	passkey := tx.Passkey(p.Passkey)
	if passkey == nil {
		return state.Session{}, errPasskey()
	}
	account := tx.Account(passkey.Account)
	if err := signsIn(tx, account); err != nil {
		return state.Session{}, err
	}
	if known := tx.Session(p.Hash); known != nil {
		return *known, nil
	}
	counts := p.Count > 0 || passkey.Count > 0
	if p.Asked <= passkey.Asked || counts && p.Count <= passkey.Count {
		return state.Session{}, errPasskey()
	}
	used := *passkey
	used.Asked, used.Count, used.UsedAt = p.Asked, p.Count, tx.Now
	tx.PutPasskey(&used)
	return beginSession(tx, account, p.Hash, 0), nil
}

func errPasskey() error {
	return fault.New(fault.Unauthorized, "this passkey signs nobody in: try again, or use the "+
		"password")
}

// dropPasskeys removes all passkeys of an account.
func dropPasskeys(tx *state.Tx, account ids.ID) {
	for _, passkey := range tx.Passkeys(account) {
		dropPasskey(tx, passkey)
	}
}

func dropPasskey(tx *state.Tx, passkey *state.Passkey) {
	tx.RemovePasskey(passkey)
	noteRevoked(tx, passkey.ID)
}
