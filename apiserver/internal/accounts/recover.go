package accounts

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"shoal.dev/shoal/apiserver/internal/forwarded"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Asking is a person who requests a letter, to set a new password or to make an account.
type Asking struct {
	Email   string
	SignUp  bool       // to make an account
	Address netip.Addr // of the person
	Device  string     // the device text that the browser has kept, "" for none
}

// letters limits the requests from one network, for any address, or from a known device. The state
// limits how many letters go to one address, so that no flood fills a mailbox.
var letters = cache.Limit{Count: 10, Per: 15 * time.Minute}

// SendsLetters says whether this service sends letters.
func (s *Service) SendsLetters() bool { return s.Mails && s.Links.Public != "" }

// newAccounts limits the accounts that people make for themselves from one network.
var newAccounts = cache.Limit{Count: 5, Per: 24 * time.Hour}

// usesOfLink limits attempts with one link, as their hashes are served first.
var usesOfLink = cache.Limit{Count: 10, Per: 15 * time.Minute}

// SignsUp says whether people may make accounts for themselves.
func (s *Service) SignsUp() bool { return s.SendsLetters() && s.Client.View().Settings().SignUp }

// SendLetter has a letter sent to an address. Neither the answer nor its timing shows whether an
// account has the address. Faults: rate_limited (retry says for how long), unavailable.
func (s *Service) SendLetter(ctx context.Context, f Asking) (retry time.Duration, err error) {
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the state: %w", err)
	}
	event := Event{Outcome: Asked, Email: f.Email, Address: f.Address}
	from, known := "from "+forwarded.Holder(f.Address), false
	if account := view.AccountByEmail(f.Email); account != nil {
		if name, of := s.knows(f.Device, account.ID); of {
			from, known = "device "+name, true
		}
	}
	if retry := s.take(ctx, bucket{"letters " + from, letters}); retry > 0 {
		event.Outcome = TooOften
		s.note(ctx, event)
		return retry, fault.New(fault.RateLimited, "too many letters were asked for: try again "+
			"in %s", wait(retry))
	}
	if _, err := client.Do(ctx, s.Client, client.PutLetter{ID: s.IDs.New(), Email: f.Email,
		Known: known, SignUp: f.SignUp}, nil); err != nil {
		return 0, err
	}
	s.note(ctx, event)
	return 0, nil
}

var errLink = fault.New(fault.Unauthorized, "this link is not good any more. Each is good once, "+
	"for a while. Ask for another one")

// Follow is the letter of a valid link. Faults: unauthorized for an invalid link, unavailable.
func (s *Service) Follow(ctx context.Context, link string) (client.Letter, error) {
	id, good := s.Links.read(link)
	if !good {
		return client.Letter{}, errLink
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return client.Letter{}, fmt.Errorf("read the state: %w", err)
	}
	letter := view.Letter(id)
	if letter == nil || letter.Expires <= s.Clock.Now().UnixMilli() ||
		letter.Account.IsZero() && !view.Settings().SignUp {
		return client.Letter{}, errLink
	}
	return *letter, nil
}

// Used is the result of a link.
type Used struct {
	Device string // signs in despite the guesses of strangers
	Made   bool   // the account was created
}

// UseLink sets a new password for the account of a link and ends its sessions, or it creates the
// account. Faults: invalid_request, unauthorized if the link is invalid, rate_limited (retry says
// for how long), unavailable.
func (s *Service) UseLink(ctx context.Context, link, password string, from netip.Addr) (used Used,
	retry time.Duration, err error) {
	letter, err := s.Follow(ctx, link)
	if err != nil {
		return Used{}, 0, err
	}
	if err := checkPassword("newPassword", letter.Email, password); err != nil {
		return Used{}, 0, err
	}
	event := Event{Outcome: Recovered, Email: letter.Email, Customer: letter.Customer,
		Address: from}
	many, retry := "attempts with this link", s.take(ctx, bucket{"link " + letter.ID.String(),
		usesOfLink})
	if retry == 0 && letter.Account.IsZero() {
		many, retry = "accounts were made from your network", s.take(ctx, bucket{
			"accounts from " + forwarded.Holder(from), newAccounts})
	}
	if retry > 0 {
		event.Outcome = TooOften
		s.note(ctx, event)
		return Used{}, retry, fault.New(fault.RateLimited, "too many %s: try again in %s", many,
			wait(retry))
	}
	hash, err := s.hashes.make(ctx, password)
	if err != nil {
		return Used{}, 0, err
	}
	account := s.Client.View().Account(letter.Account)
	use := client.UseLetter{Letter: letter.ID, Account: letter.Account, Password: hash}
	if used.Made = letter.Account.IsZero(); used.Made {
		use.Account, use.Entry = s.IDs.New(), s.IDs.New()
		account = &client.Account{ID: use.Account, Customer: use.Account.String()}
		event.Outcome, event.Customer = SignedUp, account.Customer
	} else if account == nil {
		return Used{}, 0, errLink
	}
	_, err = client.Do(as(ctx, account), s.Client, use, nil)
	switch code := fault.CodeOf(err); {
	case err != nil && (code == fault.Unauthorized || code == fault.EmailTaken):
		return Used{}, 0, errLink // somebody else used it first
	case err != nil:
		return Used{}, 0, err
	}
	s.note(ctx, event)
	used.Device = s.newDevice(account.ID)
	return used, 0, nil
}

// HandLink makes a link for an account, which an admin passes on. expires is in Unix milliseconds.
// Faults: not_found, account_disabled, unavailable.
func (s *Service) HandLink(ctx context.Context, account ids.ID) (link string, expires int64,
	err error) {
	letter, err := client.Do(ctx, s.Client, client.HandLetter{ID: s.IDs.New(), Account: account},
		nil)
	if err != nil {
		return "", 0, err
	}
	return s.Links.To(letter.ID), letter.Expires, nil
}

// SetPassword sets a new password for an account on behalf of an admin, and ends its sessions.
// Faults: invalid_request, not_found, unavailable.
func (s *Service) SetPassword(ctx context.Context, id ids.ID, password string) error {
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	account := view.Account(id)
	if account == nil {
		return fault.Invalid(fault.NotFound, "id", "no account has this id")
	}
	if err := checkPassword("password", account.Email, password); err != nil {
		return err
	}
	hash, err := s.hashes.make(ctx, password)
	if err != nil {
		return err
	}
	_, err = client.Do(ctx, s.Client, client.SetPassword{Account: id, Was: account.Password,
		Password: hash, Expels: true}, nil)
	if fault.CodeOf(err) == fault.Unauthorized {
		return fault.New(fault.Unavailable, "the password was changed meanwhile: try again")
	}
	return err
}
