package state

import (
	"shoal.dev/shoal/pkg/ids"
)

// AccountsSince is the first cluster version in which people sign in by account.
const AccountsSince = 2

// Account is a person who signs in here, as a customer.
type Account struct {
	ID        ids.ID `cbor:"1,keyasint"`
	Email     string `cbor:"2,keyasint"` // no other account has it, in whatever case
	Customer  string `cbor:"3,keyasint"`
	Password  string `cbor:"4,keyasint"` // its argon2id hash, as apiserver/internal/accounts writes it
	Admin     bool   `cbor:"5,keyasint,omitempty"`
	CreatedAt int64  `cbor:"6,keyasint"`
	// DisabledAt is since when it does not sign in, 0: it does.
	DisabledAt int64 `cbor:"7,keyasint,omitempty"`
	// PasswordAt is when the password was changed, 0: it is the first.
	PasswordAt int64 `cbor:"8,keyasint,omitempty"`
}

var accountsTable = define(AccountsSince, "accounts",
	index("id", true, func(a *Account) []any { return []any{a.ID} }),
	index("email", true, func(a *Account) []any { return []any{foldEmail(a.Email)} }),
	index("customer", true, func(a *Account) []any { return []any{a.Customer, a.ID} }),
).told((*Account).telling).always()

func (a *Account) telling() telling {
	return telling{a.Customer, struct {
		Admin      bool  `json:"admin"`
		CreatedAt  int64 `json:"createdAt"`
		DisabledAt int64 `json:"disabledAt,omitempty"`
		PasswordAt int64 `json:"passwordAt,omitempty"`
	}{a.Admin, a.CreatedAt, a.DisabledAt, a.PasswordAt}}
}

// Account is nil when there is none of that id.
func (v *View) Account(id ids.ID) *Account { return accountsTable.first(v, "id", id) }

// AccountByEmail is nil when nobody has the address, in whatever case.
func (v *View) AccountByEmail(email string) *Account {
	return accountsTable.first(v, "email", foldEmail(email))
}

// AccountsOf lists those of a customer.
func (v *View) AccountsOf(customer string) []*Account {
	return accountsTable.all(v, "customer_prefix", customer)
}

// EachAccount visits all by their e-mail addresses, until visit returns false.
func (v *View) EachAccount(visit func(*Account) bool) {
	accountsTable.each(v, false, visit, "email_prefix")
}

// PutAccount adds or replaces.
func (t *Tx) PutAccount(a *Account) { accountsTable.put(t, a) }

// RemoveAccount removes an account. Its sessions are the caller's to end.
func (t *Tx) RemoveAccount(a *Account) { accountsTable.remove(t, a) }

// How long a session lasts, in milliseconds: from its beginning, and from its last use.
const (
	SessionMillis     = 30 * 24 * 60 * 60 * 1000
	SessionIdleMillis = 7 * 24 * 60 * 60 * 1000
)

// Session is a browser that signed in; only the hash of its secret is known.
type Session struct {
	Hash      Hash   `cbor:"1,keyasint"`
	Account   ids.ID `cbor:"2,keyasint"`
	CreatedAt int64  `cbor:"3,keyasint"`
	UsedAt    int64  `cbor:"4,keyasint"` // to the minute
	// Life is how long it lasts at most, in milliseconds; 0: SessionMillis.
	Life int64 `cbor:"5,keyasint,omitempty" since:"2"`
}

// Ended says whether it is refused at a time in Unix milliseconds.
func (s *Session) Ended(now int64) bool {
	life := int64(SessionMillis)
	if s.Life > 0 {
		life = min(life, s.Life)
	}
	return now >= s.CreatedAt+life || now >= s.UsedAt+SessionIdleMillis
}

var sessionsTable = define(AccountsSince, "sessions",
	index("id", true, func(s *Session) []any { return []any{s.Hash} }),
	index("account", true, func(s *Session) []any {
		return []any{s.Account, s.UsedAt, s.Hash}
	}),
	index("used", true, func(s *Session) []any { return []any{s.UsedAt, s.Hash} }),
).untold() // the commands tell of sign-ins and sign-outs

// Session is nil when there is none, or it was ended.
func (v *View) Session(hash Hash) *Session { return sessionsTable.first(v, "id", hash) }

// Sessions are those of an account, the one that was not used for longest first.
func (v *View) Sessions(account ids.ID) []*Session {
	return sessionsTable.all(v, "account_prefix", account)
}

// SessionsByUse visits all, the one that was not used for longest first, until visit returns false.
func (v *View) SessionsByUse(visit func(*Session) bool) {
	sessionsTable.each(v, false, visit, "used_prefix")
}

// PutSession adds or replaces.
func (t *Tx) PutSession(s *Session) { sessionsTable.put(t, s) }

// RemoveSession removes.
func (t *Tx) RemoveSession(s *Session) { sessionsTable.remove(t, s) }
