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

// Change is a person who wants another password.
type Change struct {
	Current, Next string
	Address       netip.Addr // from where
	Device        string     // what the browser shows of before, "" for nothing
}

var errNoSession = fault.New(fault.InvalidRequest, "the credential is no session of a browser: "+
	"a password is changed by who has signed in with it")

// ChangePassword gives the account of a caller's session another password, and ends all its other
// sessions. A wrong current password is a guess like one of a sign-in. Faults: invalid_request,
// unauthorized when the account is gone, rate_limited (retry says for how long), unavailable.
func (s *Service) ChangePassword(ctx context.Context, p *auth.Principal, c Change) (
	retry time.Duration, err error) {
	if p.Session == nil {
		return 0, errNoSession
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the state: %w", err)
	}
	account := view.Account(p.Session.Account)
	if account == nil {
		return 0, fault.New(fault.Unauthorized, "the account is not there any more")
	}
	if err := checkPassword("newPassword", account.Email, c.Next); err != nil {
		return 0, err
	}
	event := Event{Outcome: Changed, Email: account.Email, Customer: account.Customer,
		Address: c.Address}
	ctx = as(ctx, account)
	if retry := s.takeGuess(ctx, Attempt{Email: account.Email, Address: c.Address,
		Device: c.Device}, account); retry > 0 {
		event.Outcome = TooOften
		s.note(ctx, event)
		return retry, fault.New(fault.RateLimited, "too many attempts: try again in %s", wait(retry))
	}
	right := false
	if utf8.RuneCountInString(c.Current) <= maxPassword {
		if right, err = s.hashes.matches(ctx, account.Password, c.Current); err != nil {
			return 0, err
		}
	}
	if !right {
		event.Outcome = Refused
		s.note(ctx, event)
		return 0, fault.Invalid(fault.InvalidRequest, "currentPassword", "is wrong")
	}
	hash, err := s.hashes.make(ctx, c.Next)
	if err != nil {
		return 0, err
	}
	if _, err := client.Do(ctx, s.Client, client.SetPassword{Account: account.ID,
		Was: account.Password, Password: hash, Keep: p.Session.Hash}, nil); err != nil {
		return 0, err
	}
	s.note(ctx, event)
	return 0, nil
}
