package accounts

import (
	"context"
	"fmt"
	"net/netip"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// Change is a person who wants a new password.
type Change struct {
	Current, Next string
	Address       netip.Addr // of the person
	Device        string     // the device text that the browser has kept, "" for none
}

var errNoSession = fault.New(fault.InvalidRequest, "the credential is no session of a browser: "+
	"passwords and passkeys are changed by who has signed in with one")

// own is the account of the caller's session.
func (s *Service) own(ctx context.Context, p *auth.Principal) (*client.Account, error) {
	if p.Session == nil {
		return nil, errNoSession
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	account := view.Account(p.Session.Account)
	if account == nil {
		return nil, fault.New(fault.Unauthorized, "the account is not there any more")
	}
	return account, nil
}

// prove checks the password of the account behind the caller's session once more. A wrong one
// counts as a guess, as at a sign-in. Faults: those of ChangePassword.
func (s *Service) prove(ctx context.Context, p *auth.Principal, c *Change) (
	account *client.Account, retry time.Duration, err error) {
	account, err = s.own(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	event := Event{Outcome: TooOften, Email: account.Email, Customer: account.Customer,
		Address: c.Address}
	ctx = as(ctx, account)
	if retry, _ := s.takeGuess(ctx, Attempt{Email: account.Email, Address: c.Address,
		Device: c.Device}, account); retry > 0 {
		s.note(ctx, event)
		return nil, retry, fault.New(fault.RateLimited, "too many attempts: try again in %s",
			wait(retry))
	}
	right := false
	if utf8.RuneCountInString(c.Current) <= maxPassword {
		if right, err = s.hashes.matches(ctx, ofKnown, account.Password,
			c.Current); err != nil {
			return nil, 0, err
		}
	}
	if !right {
		event.Outcome = Refused
		s.note(ctx, event)
		return nil, 0, fault.Invalid(fault.InvalidRequest, "currentPassword", "is wrong")
	}
	return account, 0, nil
}

// ChangePassword sets a new password for the account of the caller's session, and ends its other
// sessions. A wrong current password counts as a guess, as at a sign-in. Faults: invalid_request,
// unauthorized if the account is gone, rate_limited (retry says for how long), unavailable.
func (s *Service) ChangePassword(ctx context.Context, p *auth.Principal, c Change) (
	retry time.Duration, err error) {
	account, err := s.own(ctx, p)
	if err != nil {
		return 0, err
	}
	if err := checkPassword("newPassword", account.Email, c.Next); err != nil {
		return 0, err
	}
	if account, retry, err = s.prove(ctx, p, &c); err != nil {
		return retry, err
	}
	hash, err := s.hashes.make(ctx, c.Next)
	if err != nil {
		return 0, err
	}
	if _, err := client.Do(as(ctx, account), s.Client, client.SetPassword{Account: account.ID,
		Was: account.Password, Password: hash, Keep: p.Session.Hash}, nil); err != nil {
		return 0, err
	}
	s.note(as(ctx, account), Event{Outcome: Changed, Email: account.Email,
		Customer: account.Customer, Address: c.Address})
	return 0, nil
}
