package state

import (
	"crypto/sha256"

	"shoal.dev/shoal/pkg/ids"
)

// SharesSince is the first cluster version in which groups are shared.
const SharesSince = 2

// Share lets whoever signed up with an e-mail address read a group (specification 4.6). Nobody has
// to have the address yet.
type Share struct {
	Group     ids.ID `cbor:"1,keyasint"`
	Email     string `cbor:"2,keyasint"` // of the recipient, as the owner wrote it first
	Owner     string `cbor:"3,keyasint"` // the group's customer
	CreatedAt int64  `cbor:"4,keyasint"` // Unix milliseconds
}

// IsWith says whether the share is with an address, in whatever case.
func (s *Share) IsWith(email string) bool { return foldEmail(s.Email) == foldEmail(email) }

// RevokedID stands for the share among what was revoked: the begin of the SHA-256 of its key.
func (s *Share) RevokedID() ids.ID {
	sum := sha256.Sum256(key(s.Group, foldEmail(s.Email)))
	return ids.ID(sum[:len(ids.ID{})])
}

var sharesTable = define(SharesSince, "shares",
	index("id", true, func(s *Share) []any { return []any{s.Group, foldEmail(s.Email)} }),
	index("email", true, func(s *Share) []any { return []any{foldEmail(s.Email), s.Group} }),
	index("owner", true, func(s *Share) []any {
		return []any{s.Owner, s.Group, foldEmail(s.Email)}
	}),
).told((*Share).telling).always()

// Share is nil when the group is not shared with the address, in whatever case.
func (v *View) Share(group ids.ID, email string) *Share {
	return sharesTable.first(v, "id", group, foldEmail(email))
}

// Shares lists those of a group, by address.
func (v *View) Shares(group ids.ID) []*Share { return sharesTable.all(v, "id_prefix", group) }

// SharesTo lists those with an address, in whatever case, by group.
func (v *View) SharesTo(email string) []*Share {
	return sharesTable.all(v, "email_prefix", foldEmail(email))
}

// SharesOf counts those of all groups of a customer.
func (v *View) SharesOf(owner string) (count int) {
	sharesTable.each(v, false, func(*Share) bool { count++; return true }, "owner_prefix", owner)
	return count
}

// Shared says whether a customer has signed up with an address that a group is shared with.
func (v *View) Shared(group ids.ID, customer string) bool {
	profile := v.Profile(customer)
	return profile != nil && profile.Email != "" && v.Share(group, profile.Email) != nil
}

// PutShare adds or replaces.
func (t *Tx) PutShare(s *Share) { sharesTable.put(t, s) }

// RemoveShare removes.
func (t *Tx) RemoveShare(s *Share) { sharesTable.remove(t, s) }
