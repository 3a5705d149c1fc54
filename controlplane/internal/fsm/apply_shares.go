package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of shares.
const (
	maxShares        = 100   // per group
	maxSharesInTotal = 2_000 // per customer
	maxSharesTo      = 1_000 // per address
	maxSharesOfTwo   = 100   // per customer and address: none fills it alone
)

func shareGroup(tx *state.Tx, p command.ShareGroupPayload) (command.None, error) {
	group := tx.Group(p.Group)
	if group == nil || group.Customer != p.Customer {
		return command.None{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	added, err := newShares(tx, group, p.Emails)
	if err == nil && len(added) > 0 {
		err = p.Cap.Allows(tx.SharesOf(p.Customer) + len(added) - 1)
	}
	if err != nil {
		return command.None{}, err
	}
	before := tx.SharesOf(p.Customer)
	for _, share := range added {
		tx.PutShare(share)
		if recipient := tx.ProfileByEmail(share.Email); recipient != nil {
			notifyShared(tx, recipient.Customer, group)
		}
	}
	notifyNear(tx, p.Customer, p.Cap, before, tx.SharesOf(p.Customer))
	return command.None{}, nil
}

// newShares makes a share for each address that has none of the group yet.
func newShares(tx *state.Tx, group *state.Group, emails []string) (added []*state.Share,
	err error) {
	for _, email := range emails {
		named := func(share *state.Share) bool { return share.IsWith(email) }
		if tx.Share(group.ID, email) != nil || slices.ContainsFunc(added, named) {
			continue
		}
		recipient := tx.ProfileByEmail(email)
		switch {
		case recipient != nil && recipient.Customer == group.Customer:
			return nil, fault.Invalid(fault.InvalidRequest, "email", "the group is its own")
		case len(tx.SharesTo(email)) >= maxSharesTo:
			return nil, fault.Invalid(fault.LimitReached, "email",
				"at most %d groups are shared with an address", maxSharesTo)
		case sharedBy(tx, group.Customer, email) >= maxSharesOfTwo:
			return nil, fault.Invalid(fault.LimitReached, "email",
				"at most %d groups of a customer are shared with an address", maxSharesOfTwo)
		}
		added = append(added, &state.Share{Group: group.ID, Email: email,
			Owner: group.Customer, CreatedAt: tx.Now})
	}
	if len(added) > 0 && len(tx.Shares(group.ID))+len(added) > maxShares {
		return nil, fault.New(fault.LimitReached,
			"a group is shared with at most %d addresses", maxShares)
	}
	if len(added) > 0 && tx.SharesOf(group.Customer)+len(added) > maxSharesInTotal {
		return nil, fault.New(fault.LimitReached,
			"the groups of a customer have at most %d shares", maxSharesInTotal)
	}
	return added, nil
}

// sharedBy counts an owner's groups that are shared with an address.
func sharedBy(tx *state.Tx, owner, email string) (count int) {
	for _, share := range tx.SharesTo(email) {
		if share.Owner == owner {
			count++
		}
	}
	return count
}

func revokeShare(tx *state.Tx, p command.RevokeSharePayload) (command.None, error) {
	group := tx.Group(p.Group)
	if group == nil || group.Customer != p.Customer {
		return command.None{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	share := tx.Share(p.Group, p.Email)
	if share == nil {
		return command.None{}, fault.Invalid(fault.NotFound, "email",
			"the group is not shared with this address")
	}
	tx.RemoveShare(share)
	noteRevoked(tx, share.RevokedID())
	return command.None{}, nil
}

// removeShares removes the shares of a group that is deleted. It does not mark them as revoked:
// nobody revoked them, and they may be many.
func removeShares(tx *state.Tx, group ids.ID) {
	for _, share := range tx.Shares(group) {
		tx.RemoveShare(share)
	}
}

// notifyShared notifies a customer of a group that it may read. Sharing again after a revocation
// causes no second notice.
func notifyShared(tx *state.Tx, recipient string, group *state.Group) {
	notify(tx, state.Notice{ID: state.NoticeID(model.GroupShared, recipient, group.ID, 0),
		Customer: recipient, Event: model.GroupShared, Subject: group.ID, Name: group.Name})
}
