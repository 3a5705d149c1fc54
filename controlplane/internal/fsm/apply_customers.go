package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds per customer, so that no customer can fill the replicated state.
const (
	maxKeys     = 1_000
	maxGroups   = 10_000
	maxOpenRuns = command.MaxOpenRuns
)

func openCustomer(tx *state.Tx, p command.OpenCustomerPayload) (state.Customer, error) {
	if known := tx.Customer(p.Customer); known != nil {
		return *known, nil
	}
	customer := state.Customer{Ref: p.Customer, CreatedAt: tx.Now}
	tx.PutCustomer(&customer)
	grant := int64(0)
	if cluster := tx.Cluster(); cluster != nil {
		grant = cluster.FreeGrant
	}
	threshold := int64(state.LowBalanceMicros)
	if set := tx.Settings().Threshold; set != nil {
		threshold = *set
	}
	tx.PutWallet(&state.Wallet{Customer: p.Customer, Threshold: threshold})
	books := openBooks(tx)
	wallet := books.wallet(p.Customer)
	move(&books.system.FreeIssued, &wallet.Free, grant)
	entry := &state.Entry{ID: p.Entry, Customer: p.Customer, Type: state.EntryFreeGrant,
		FreeDelta: grant,
		CreatedAt: tx.Now, Created: tx.Index}
	books.seal(wallet, entry, state.EntryApplied)
	tx.PutEntry(entry)
	books.save()
	return customer, nil
}

func blockCustomer(tx *state.Tx, p command.BlockCustomerPayload) (state.Customer, error) {
	return setBlock(tx, p.Customer, tx.Now, p.By)
}

func unblockCustomer(tx *state.Tx, p command.UnblockCustomerPayload) (state.Customer, error) {
	return setBlock(tx, p.Customer, 0, "")
}

// setBlock blocks a customer, or unblocks it if at is 0. An existing block keeps its time and its
// admin.
func setBlock(tx *state.Tx, ref string, at int64, by string) (state.Customer, error) {
	known := tx.Customer(ref)
	if known == nil || known.Removed() {
		return state.Customer{}, fault.Invalid(fault.NotFound, "ref",
			"no customer has this reference")
	}
	if known.Blocked() == (at != 0) {
		return *known, nil
	}
	next := *known
	next.BlockedAt, next.BlockedBy = at, by
	tx.PutCustomer(&next)
	return next, nil
}

func mintKey(tx *state.Tx, p command.MintKeyPayload) (state.Key, error) {
	if tx.Customer(p.Customer) == nil {
		return state.Key{}, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	if tx.Customer(p.Customer).Removed() {
		return state.Key{}, errRemoved()
	}
	if tx.Customer(p.Customer).Blocked() && tx.ClusterVersion() >= 2 {
		return state.Key{}, fault.New(fault.CustomerBlocked, "the customer is blocked")
	}
	if len(tx.Keys(p.Customer)) >= maxKeys {
		return state.Key{}, fault.New(fault.LimitReached, "a customer has at most %d keys", maxKeys)
	}
	if tx.KeyByPrefix(p.Prefix) != nil {
		return state.Key{}, fault.New(fault.Unavailable, "the key's prefix is taken; try again")
	}
	key := state.Key{ID: p.ID, Customer: p.Customer, Prefix: p.Prefix, Hash: p.Hash, Name: p.Name,
		Scope:     p.Scope,
		CreatedAt: tx.Now, ExpiresAt: p.ExpiresAt}
	tx.PutKey(&key)
	notifyKey(tx, &key)
	return key, nil
}

func revokeKey(tx *state.Tx, p command.RevokeKeyPayload) (state.Key, error) {
	key := tx.Key(p.ID)
	if key == nil || key.Customer != p.Customer {
		return state.Key{}, fault.Invalid(fault.KeyNotFound, "id", "no key has this id")
	}
	tx.RemoveKey(key)
	noteRevoked(tx, key.ID)
	return *key, nil
}

func touchKeys(tx *state.Tx, p command.TouchKeysPayload) (command.None, error) {
	for _, touch := range p.Keys {
		key := tx.Key(touch.ID)
		if key == nil || key.LastUsedAt >= touch.At {
			continue
		}
		touched := *key
		touched.LastUsedAt, touched.LastAddress = touch.At, touch.Address
		tx.PutKey(&touched)
	}
	return command.None{}, nil
}

func adjustWallet(tx *state.Tx, p command.AdjustWalletPayload) (state.Entry, error) {
	books := openBooks(tx)
	wallet := books.wallet(p.Customer)
	if wallet == nil {
		return state.Entry{}, fault.Invalid(fault.NotFound, "ref", "no customer has this reference")
	}
	if err := books.adjust(wallet, p.Amount); err != nil {
		return state.Entry{}, err
	}
	wallet.ToppedUp = wallet.ToppedUp || p.Amount > 0
	entry := state.Entry{ID: p.Entry, Customer: p.Customer, Type: state.EntryAdjustment,
		Amount: p.Amount, Note: p.Note,
		CreatedAt: tx.Now, Created: tx.Index}
	books.seal(wallet, &entry, state.EntryApplied)
	tx.PutEntry(&entry)
	books.save()
	return entry, nil
}
