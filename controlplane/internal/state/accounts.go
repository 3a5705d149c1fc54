package state

import (
	"shoal.dev/shoal/pkg/ids"
)

// AccountsSince is the first cluster version in which people sign in by account.
const AccountsSince = 2

// Account is a person who signs in here, as a customer.
type Account struct {
	ID        ids.ID `cbor:"1,keyasint"`
	Email     string `cbor:"2,keyasint"` // unique, ignoring case
	Customer  string `cbor:"3,keyasint"`
	Password  string `cbor:"4,keyasint"` // argon2id hash, see apiserver/internal/accounts
	Admin     bool   `cbor:"5,keyasint,omitempty"`
	CreatedAt int64  `cbor:"6,keyasint"`
	// DisabledAt is when the account was disabled; 0: it can sign in.
	DisabledAt int64 `cbor:"7,keyasint,omitempty"`
	// PasswordAt is when the password was last changed; 0: never.
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

// Account returns the account with an id, or nil.
func (v *View) Account(id ids.ID) *Account { return accountsTable.first(v, "id", id) }

// AccountByEmail returns the account with an address, ignoring case; nil: there is none.
func (v *View) AccountByEmail(email string) *Account {
	return accountsTable.first(v, "email", foldEmail(email))
}

// AccountsOf lists a customer's accounts.
func (v *View) AccountsOf(customer string) []*Account {
	return accountsTable.all(v, "customer_prefix", customer)
}

// EachAccount visits all accounts in the order of their addresses, until visit returns false.
func (v *View) EachAccount(visit func(*Account) bool) {
	accountsTable.each(v, false, visit, "email_prefix")
}

// PutAccount adds or replaces an account.
func (t *Tx) PutAccount(a *Account) { accountsTable.put(t, a) }

// RemoveAccount removes an account. The caller ends its sessions.
func (t *Tx) RemoveAccount(a *Account) { accountsTable.remove(t, a) }

// The longest life of a session, in milliseconds: since its creation, and since its last use.
const (
	SessionMillis     = 30 * 24 * 60 * 60 * 1000
	SessionIdleMillis = 7 * 24 * 60 * 60 * 1000
)

// Session is a browser that is signed in. Only the hash of its secret is stored.
type Session struct {
	Hash      Hash   `cbor:"1,keyasint"`
	Account   ids.ID `cbor:"2,keyasint"`
	CreatedAt int64  `cbor:"3,keyasint"`
	UsedAt    int64  `cbor:"4,keyasint"` // to the minute
	// Life is the session's longest life in milliseconds; 0: SessionMillis.
	Life int64 `cbor:"5,keyasint,omitempty" since:"2"`
}

// Ended reports whether the session has ended at a time in Unix milliseconds.
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

// Session returns the session with a secret's hash; nil: there is none, or it has ended.
func (v *View) Session(hash Hash) *Session { return sessionsTable.first(v, "id", hash) }

// Sessions lists the sessions of an account, the least recently used first.
func (v *View) Sessions(account ids.ID) []*Session {
	return sessionsTable.all(v, "account_prefix", account)
}

// SessionsByUse visits all sessions, the least recently used first, until visit returns false.
func (v *View) SessionsByUse(visit func(*Session) bool) {
	sessionsTable.each(v, false, visit, "used_prefix")
}

// PutSession adds or replaces a session.
func (t *Tx) PutSession(s *Session) { sessionsTable.put(t, s) }

// RemoveSession removes a session.
func (t *Tx) RemoveSession(s *Session) { sessionsTable.remove(t, s) }
