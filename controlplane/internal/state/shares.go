package state

import (
	"crypto/sha256"

	"shoal.dev/shoal/pkg/ids"
)

// SharesSince is the first cluster version in which groups are shared.
const SharesSince = 2

// Share lets whoever signs up with an e-mail address read a group (specification 4.6). The address
// may be nobody's yet.
type Share struct {
	Group     ids.ID `cbor:"1,keyasint"`
	Email     string `cbor:"2,keyasint"` // of the recipient, as the owner first wrote it
	Owner     string `cbor:"3,keyasint"` // the group's customer
	CreatedAt int64  `cbor:"4,keyasint"` // Unix milliseconds
}

// IsWith reports whether the share is with an address, ignoring case.
func (s *Share) IsWith(email string) bool { return foldEmail(s.Email) == foldEmail(email) }

// RevokedID is the share's id in Revoked: the first bytes of the SHA-256 of its key.
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

// Share returns a group's share with an address, ignoring case, or nil.
func (v *View) Share(group ids.ID, email string) *Share {
	return sharesTable.first(v, "id", group, foldEmail(email))
}

// Shares lists a group's shares, by address.
func (v *View) Shares(group ids.ID) []*Share { return sharesTable.all(v, "id_prefix", group) }

// SharesTo lists the shares with an address, ignoring case, by group.
func (v *View) SharesTo(email string) []*Share {
	return sharesTable.all(v, "email_prefix", foldEmail(email))
}

// Shared reports whether a group is shared with the address that a customer signed up with.
func (v *View) Shared(group ids.ID, customer string) bool {
	profile := v.Profile(customer)
	return profile != nil && profile.Email != "" && v.Share(group, profile.Email) != nil
}

// PutShare adds or replaces a share.
func (t *Tx) PutShare(s *Share) {
	known := t.Share(s.Group, s.Email)
	sharesTable.put(t, s)
	if known == nil {
		t.countIn(s.Owner, Owned{Shares: 1})
	}
}

// RemoveShare removes a share.
func (t *Tx) RemoveShare(s *Share) {
	sharesTable.remove(t, s)
	t.countIn(s.Owner, Owned{Shares: -1})
}
