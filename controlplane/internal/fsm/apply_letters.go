package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of letters.
const (
	// maxLetters bounds the open letters to one address. Asking for more locks nobody out, since
	// the address's owner has all of them.
	maxLetters   = 3
	maxNewcomers = 10_000 // letters that make accounts
	maxAddress   = 254    // bytes of an address
)

func putLetter(tx *state.Tx, p command.PutLetterPayload) (command.None, error) {
	letter := state.Letter{ID: p.ID, Email: p.Email, Expires: tx.Now + state.LetterMillis,
		At: tx.Now, SignUp: p.SignUp}
	if account := tx.AccountByEmail(p.Email); account != nil {
		if account.DisabledAt != 0 || tx.Customer(account.Customer).Blocked() {
			return command.None{}, nil
		}
		letter.Email, letter.Account, letter.Customer = account.Email, account.ID, account.Customer
	} else if !p.SignUp || !tx.Settings().SignUp || len(p.Email) > maxAddress ||
		tx.Newcomers() >= maxNewcomers {
		return command.None{}, nil
	}
	if tx.Letter(p.ID) == nil && makeRoom(tx, letter.Email, p.Known) {
		tx.PutLetter(&letter)
	}
	return command.None{}, nil
}

// makeRoom reports whether an address may get one more letter. It removes the oldest ones for it
// only if oldestGo is set.
func makeRoom(tx *state.Tx, email string, oldestGo bool) bool {
	var open []*state.Letter
	for _, letter := range tx.LettersTo(email) {
		if letter.Expires > tx.Now {
			open = append(open, letter)
		}
	}
	if len(open) >= maxLetters && !oldestGo {
		return false
	}
	for ; len(open) >= maxLetters; open = open[1:] {
		tx.RemoveLetter(open[0])
	}
	return true
}

func handLetter(tx *state.Tx, p command.HandLetterPayload) (state.Letter, error) {
	if known := tx.Letter(p.ID); known != nil {
		return *known, nil
	}
	account := tx.Account(p.Account)
	switch {
	case account == nil:
		return state.Letter{}, fault.Invalid(fault.NotFound, "id", "no account has this id")
	case account.DisabledAt != 0:
		return state.Letter{}, fault.New(fault.AccountDisabled, "the account is disabled: enable it "+
			"before it gets a new password")
	}
	dropLetters(tx, account.Email)
	letter := state.Letter{ID: p.ID, Email: account.Email, Account: account.ID,
		Customer: account.Customer, Expires: tx.Now + state.HandedMillis}
	tx.PutLetter(&letter)
	return letter, nil
}

func errLetter() error {
	return fault.New(fault.Unauthorized, "the link is not good any more")
}

func useLetter(tx *state.Tx, p command.UseLetterPayload) (command.None, error) {
	letter, account := tx.Letter(p.Letter), tx.Account(p.Account)
	switch {
	case account != nil && account.Password == p.Password:
		return command.None{}, nil // a repeat
	case letter == nil || letter.Expires <= tx.Now:
		return command.None{}, errLetter()
	case letter.Account.IsZero() && tx.Settings().SignUp:
		_, err := createAccount(tx, command.CreateAccountPayload{ID: p.Account,
			Email: letter.Email, Customer: p.Account.String(), Password: p.Password,
			Entry: p.Entry})
		return command.None{}, err
	case account == nil || letter.Account != account.ID:
		return command.None{}, errLetter()
	}
	next := *account
	next.Password, next.PasswordAt = p.Password, tx.Now
	tx.PutAccount(&next)
	signOut(tx, account.ID, state.Hash{})
	dropLetters(tx, account.Email)
	dropPasskeys(tx, account.ID) // one may belong to a person who knew the password
	return command.None{}, nil
}

// dropLetters removes all letters to an address.
func dropLetters(tx *state.Tx, email string) {
	for _, letter := range tx.LettersTo(email) {
		tx.RemoveLetter(letter)
	}
}

// recordLetter records the outcome of a due letter: it was sent, or is tried again after a time.
// tried counts an attempt. If the link expires before the next attempt, the letter is not sent.
func recordLetter(tx *state.Tx, known *state.Letter, after int64, tried bool) {
	letter := *known
	if letter.At == 0 {
		return
	}
	if letter.At = 0; after > 0 {
		if tried {
			letter.Tries++
		}
		if at := tx.Now + max(after, gatherMillis); at < letter.Expires {
			letter.At = at
		}
	}
	tx.PutLetter(&letter)
}

// expireLetters removes expired letters, a bounded number at a time.
func expireLetters(tx *state.Tx) {
	var old []*state.Letter
	tx.LettersByAge(func(l *state.Letter) bool {
		if l.Expires > tx.Now || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, l)
		return true
	})
	for _, l := range old {
		tx.RemoveLetter(l)
	}
}
