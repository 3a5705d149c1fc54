package state

import "shoal.dev/shoal/pkg/ids"

// LettersSince is the first cluster version in which people are reached at an account's address.
const LettersSince = 2

// How long the link of a letter is good, in milliseconds: of one that is sent, and of one that an
// admin hands on.
const (
	LetterMillis = 30 * 60 * 1000
	HandedMillis = 24 * 60 * 60 * 1000
)

// Letter goes to one e-mail address, with a link that is good once. Who follows the link has the
// address, and sets the password of its account, or makes one. The state does not know what makes
// the link a secret.
type Letter struct {
	ID       ids.ID `cbor:"1,keyasint"`
	Email    string `cbor:"2,keyasint"`           // as the account has it, or will have it
	Account  ids.ID `cbor:"3,keyasint,omitzero"`  // zero: it makes one
	Customer string `cbor:"4,keyasint,omitempty"` // of the account
	Expires  int64  `cbor:"5,keyasint"`           // by state time
	// At is when it may be sent, or tried again; 0: it was sent, or is handed on.
	At    int64  `cbor:"6,keyasint,omitempty"`
	Tries uint32 `cbor:"7,keyasint,omitempty"` // that failed
	// SignUp says that it was asked for by who wanted an account.
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

// telling has a letter to somebody without an account as nothing: the account will be told.
func (l *Letter) telling() telling {
	if l.Account.IsZero() {
		return telling{}
	}
	return telling{l.Customer, struct {
		Account ids.ID `json:"account"`
		Expires int64  `json:"expiresAt"`
	}{l.Account, l.Expires}}
}

// Letter is nil when there is none of that id, or it was used.
func (v *View) Letter(id ids.ID) *Letter { return lettersTable.first(v, "id", id) }

// LettersTo are those to an address, in whatever case, the one that ends first before others.
func (v *View) LettersTo(email string) []*Letter {
	return lettersTable.all(v, "email_prefix", foldEmail(email))
}

// Newcomers is how many letters make accounts.
func (v *View) Newcomers() int { return lettersTable.count(v, "newcomers") }

// LettersDue visits those that wait to be sent, by when they may be, until visit returns false.
func (v *View) LettersDue(visit func(*Letter) bool) {
	lettersTable.each(v, false, visit, "due_prefix")
}

// LettersByAge visits all, the one that ends first before others, until visit returns false.
func (v *View) LettersByAge(visit func(*Letter) bool) {
	lettersTable.each(v, false, visit, "age_prefix")
}

// PutLetter adds or replaces.
func (t *Tx) PutLetter(l *Letter) { lettersTable.put(t, l) }

// RemoveLetter removes.
func (t *Tx) RemoveLetter(l *Letter) { lettersTable.remove(t, l) }
