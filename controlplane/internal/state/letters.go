package state

import "shoal.dev/shoal/pkg/ids"

// LettersSince is the first cluster version that sends mail to accounts' addresses.
const LettersSince = 2

// How long a letter's link is valid, in milliseconds: for one that is sent, and for one that an
// admin passes on.
const (
	LetterMillis = 30 * 60 * 1000
	HandedMillis = 24 * 60 * 60 * 1000
)

// Letter is a mail to one address, with a link that works once. Following the link proves the
// address, and sets the account's password or makes an account. The state does not hold the link's
// secret.
type Letter struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Email    string `cbor:"2,keyasint"`           // as in the account, or in the one to be made
	Account  ids.ID `cbor:"3,keyasint,omitzero"`  // zero: the link makes one
	Customer string `cbor:"4,keyasint,omitempty"` // of the account
	Expires  int64  `cbor:"5,keyasint"`           // by state time
	// At is when it may be sent, or tried again; 0: it was sent, or an admin passes it on.
	At    int64  `cbor:"6,keyasint,omitempty"`
	Tries uint32 `cbor:"7,keyasint,omitempty"` // failed attempts
	// SignUp says that a person who wanted an account asked for it.
	SignUp bool `cbor:"8,keyasint,omitempty"`
}

var lettersTable = define(LettersSince, "letters",
	index("id", true, func(l *Letter) []any { return []any{l.ID} }),
	index("email", true, func(l *Letter) []any {
		return []any{foldEmail(l.Email), l.Expires, l.ID}
	}),
	index("due", true, func(l *Letter) []any {
		if l.At == 0 {
			return nil
		}
		return []any{l.At, l.ID}
	}),
	index("newcomers", true, func(l *Letter) []any {
		if !l.Account.IsZero() {
			return nil
		}
		return []any{l.ID}
	}),
	index("age", true, func(l *Letter) []any { return []any{l.Expires, l.ID} }),
).told((*Letter).telling).always().leaving()

// telling hides a letter to a person without an account: the account will be told.
func (l *Letter) telling() telling {
	if l.Account.IsZero() {
		return telling{}
	}
	return telling{l.Customer, struct {
		Account ids.ID `json:"account"`
		Expires int64  `json:"expiresAt"`
	}{l.Account, l.Expires}}
}

// Letter returns the letter with an id; nil: there is none, or it was used.
func (v *View) Letter(id ids.ID) *Letter { return lettersTable.first(v, "id", id) }

// LettersTo lists the letters to an address, ignoring case, the first to expire first.
func (v *View) LettersTo(email string) []*Letter {
	return lettersTable.all(v, "email_prefix", foldEmail(email))
}

// Newcomers counts the letters that make accounts.
func (v *View) Newcomers() int { return lettersTable.count(v, "newcomers") }

// LettersDue visits the letters that wait to be sent, by due time, until visit returns false.
func (v *View) LettersDue(visit func(*Letter) bool) {
	lettersTable.each(v, false, visit, "due_prefix")
}

// LettersByAge visits all letters, the first to expire first, until visit returns false.
func (v *View) LettersByAge(visit func(*Letter) bool) {
	lettersTable.each(v, false, visit, "age_prefix")
}

// PutLetter adds or replaces a letter.
func (t *Tx) PutLetter(l *Letter) { lettersTable.put(t, l) }

// RemoveLetter removes a letter.
func (t *Tx) RemoveLetter(l *Letter) { lettersTable.remove(t, l) }
