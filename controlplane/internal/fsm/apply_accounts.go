package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of accounts and sessions.
const (
	maxAccounts = 100 // of a customer
	maxSessions = 20  // of an account
)

func createAccount(tx *state.Tx, p command.CreateAccountPayload) (state.Account, error) {
	if known := tx.Account(p.ID); known != nil && p.Renews {
		return renewAccount(tx, known, &p), nil
	} else if known != nil {
		return *known, nil
	}
	if tx.AccountByEmail(p.Email) != nil {
		return state.Account{}, fault.Invalid(fault.EmailTaken, "email",
			"another account has this address")
	}
	if tx.Customer(p.Customer).Removed() {
		return state.Account{}, errRemoved()
	}
	if len(tx.AccountsOf(p.Customer)) >= maxAccounts {
		return state.Account{}, fault.New(fault.LimitReached, "a customer has at most %d accounts",
			maxAccounts)
	}
	open := command.OpenCustomerPayload{Customer: p.Customer, Entry: p.Entry}
	if _, err := openCustomer(tx, open); err != nil {
		return state.Account{}, err
	}
	account := state.Account{ID: p.ID, Email: p.Email, Customer: p.Customer, Password: p.Password,
		Admin: p.Admin, CreatedAt: tx.Now}
	tx.PutAccount(&account)
	dropLetters(tx, account.Email) // letters that would make the account
	return account, nil
}

// renewAccount updates an account with its issuer's data. A disabled account stays disabled.
func renewAccount(tx *state.Tx, known *state.Account,
	p *command.CreateAccountPayload) state.Account {
	next := *known
	if p.Email != known.Email && tx.AccountByEmail(p.Email) == nil {
		next.Email = p.Email
	}
	if next.Password, next.Admin = p.Password, p.Admin; next.Password != known.Password ||
		next.Admin != known.Admin {
		signOut(tx, known.ID, state.Hash{})
		dropPasskeys(tx, known.ID)
	}
	if next != *known {
		dropLetters(tx, known.Email)
		dropLetters(tx, next.Email)
		tx.PutAccount(&next)
	}
	return next
}

func openSession(tx *state.Tx, p command.OpenSessionPayload) (state.Session, error) {
	account := tx.Account(p.Account)
	if account == nil || account.Password != p.Password {
		return state.Session{}, errPasswordChanged()
	}
	if err := signsIn(tx, account); err != nil {
		return state.Session{}, err
	}
	if known := tx.Session(p.Hash); known != nil {
		return *known, nil
	}
	return beginSession(tx, account, p.Hash, p.Life), nil
}

func errPasswordChanged() error { return fault.New(fault.Unauthorized, "the password was changed") }

// signsIn returns the reason why an account cannot sign in, or nil.
func signsIn(tx *state.Tx, account *state.Account) error {
	if account.DisabledAt != 0 {
		return fault.New(fault.AccountDisabled, "the operator of the service has disabled this "+
			"account")
	}
	if tx.Customer(account.Customer).Blocked() {
		return fault.New(fault.CustomerBlocked, "the operator of the service has blocked this "+
			"customer")
	}
	return nil
}

// beginSession opens a session of an account. If there are too many, it removes the least recently
// used one.
func beginSession(tx *state.Tx, account *state.Account, hash state.Hash,
	life int64) state.Session {
	for open := tx.Sessions(account.ID); len(open) >= maxSessions; open = open[1:] {
		tx.RemoveSession(open[0])
	}
	session := state.Session{Hash: hash, Account: account.ID, CreatedAt: tx.Now, UsedAt: tx.Now,
		Life: life}
	tx.PutSession(&session)
	tx.AuditEvent("sign-in")
	return session
}

func endSessions(tx *state.Tx, p command.EndSessionsPayload) (command.None, error) {
	ended := false
	if p.Hash == (state.Hash{}) {
		endGrants(tx, p.Account)
	}
	for _, session := range tx.Sessions(p.Account) {
		if p.Hash == (state.Hash{}) || session.Hash == p.Hash {
			tx.RemoveSession(session)
			ended = true
		}
	}
	if ended {
		tx.AuditEvent("sign-out")
	}
	return command.None{}, nil
}

func setPassword(tx *state.Tx, p command.SetPasswordPayload) (command.None, error) {
	account := tx.Account(p.Account)
	switch {
	case account == nil:
		return command.None{}, fault.New(fault.Unauthorized, "the account is not there any more")
	case account.Password == p.Password:
		return command.None{}, nil
	case account.Password != p.Was:
		return command.None{}, errPasswordChanged()
	}
	next := *account
	next.Password, next.PasswordAt = p.Password, tx.Now
	tx.PutAccount(&next)
	signOut(tx, account.ID, p.Keep)
	dropLetters(tx, account.Email)
	if p.Expels {
		dropPasskeys(tx, account.ID)
	}
	return command.None{}, nil
}

// signOut ends the sessions of an account except keep (zero: all), and ends its grants.
func signOut(tx *state.Tx, account ids.ID, keep state.Hash) {
	endGrants(tx, account)
	for _, session := range tx.Sessions(account) {
		if session.Hash != keep {
			tx.RemoveSession(session)
		}
	}
}

func disableAccount(tx *state.Tx, p command.DisableAccountPayload) (command.None, error) {
	account := tx.Account(p.Account)
	if account == nil {
		return command.None{}, fault.Invalid(fault.NotFound, "id", "no account has this id")
	}
	if p.Enable == (account.DisabledAt == 0) {
		return command.None{}, nil
	}
	next := *account
	if next.DisabledAt = tx.Now; p.Enable {
		next.DisabledAt = 0
	}
	tx.PutAccount(&next)
	signOut(tx, account.ID, state.Hash{})
	dropLetters(tx, account.Email)
	return command.None{}, nil
}

func removeAccount(tx *state.Tx, p command.RemoveAccountPayload) (command.None, error) {
	if account := tx.Account(p.Account); account != nil {
		signOut(tx, account.ID, state.Hash{})
		dropLetters(tx, account.Email)
		dropPasskeys(tx, account.ID)
		dropAccount(tx, account)
	}
	return command.None{}, nil
}

// dropAccount removes an account for good. The caller ends its sessions, letters and passkeys.
func dropAccount(tx *state.Tx, account *state.Account) {
	tx.RemoveAccount(account)
	noteRevoked(tx, account.ID)
}

func touchSessions(tx *state.Tx, p command.TouchSessionsPayload) (command.None, error) {
	for _, touch := range p.Sessions {
		session := tx.Session(touch.Hash)
		if session == nil || session.UsedAt >= touch.At {
			continue
		}
		touched := *session
		touched.UsedAt = touch.At
		tx.PutSession(&touched)
	}
	return command.None{}, nil
}

// expireSessions removes sessions idle for too long, a bounded number at a time. A session used
// until its end is removed within SessionIdleMillis after it.
func expireSessions(tx *state.Tx) {
	var ended []*state.Session
	tx.SessionsByUse(func(s *state.Session) bool {
		if s.UsedAt+state.SessionIdleMillis > tx.Now || len(ended) == maxExpiredPerTick {
			return false
		}
		ended = append(ended, s)
		return true
	})
	for _, s := range ended {
		tx.RemoveSession(s)
	}
}
