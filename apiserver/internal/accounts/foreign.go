package accounts

import (
	"context"
	"fmt"
	"net/mail"
	"net/netip"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// Foreign is a person whom an OpenID Connect issuer has signed in.
type Foreign struct {
	Issuer  string
	Subject string // the customer's reference
	Email   string // verified by the issuer; "": none
	Admin   bool
	// Profile is what the person enters the first time; nil: nothing yet.
	Profile *Profile
	Address netip.Addr // of the person
	Device  string     // the device text that the browser has kept, "" for none
}

// Profile is what a customer enters when signing up.
type Profile struct{ Firstname, Lastname string }

// ForeignLife is how long a session of an issuer's person lasts. Then the person signs in at the
// issuer again. So rights that the issuer revokes end here after at most that time.
const ForeignLife = 12 * time.Hour

// ErrStranger says that a person is not yet a customer and has to sign up.
var ErrStranger = fault.New(fault.CustomerRequired, "sign up first")

// errKnown refuses a sign-up by an existing customer. The proof of identity must not sign anyone in
// then, or it would be a credential that no sign-out ends.
var errKnown = fault.New(fault.CustomerExists, "you have signed up before: sign in again")

// SignInForeign begins a session of an issuer's person. The first time it creates the account, and
// with a profile the customer. Faults: ErrStranger, customer_exists if a customer gives a profile,
// unauthorized, email_not_verified, email_taken, account_disabled, customer_blocked, unavailable.
func (s *Service) SignInForeign(ctx context.Context, f Foreign) (opened Opened, err error) {
	event := Event{Outcome: Refused, Email: f.Email, Customer: f.Subject, Address: f.Address}
	defer func() {
		code := fault.CodeOf(err)
		if code != fault.Unavailable && code != fault.Internal && code != fault.CustomerRequired {
			s.note(ctx, event)
		}
	}()
	if err := auth.CheckForeign(f.Subject); err != nil {
		return Opened{}, err
	}
	if at, err := mail.ParseAddress(f.Email); err != nil || at.Address != f.Email ||
		len(f.Email) > maxEmail {
		return Opened{}, fault.New(fault.EmailUnverified, "The identity provider has verified no "+
			"e-mail address of yours. Verify it there, then sign in again.")
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Opened{}, fmt.Errorf("read the state: %w", err)
	}
	// the person, whom the audit trail names as the actor of what follows
	self := &client.Account{ID: auth.AccountOf(f.Issuer, f.Subject), Customer: f.Subject,
		Admin: f.Admin}
	ctx = as(ctx, self)
	switch known := view.Customer(f.Subject) != nil; {
	case known && f.Profile != nil:
		return Opened{}, errKnown
	case !known && f.Profile == nil:
		return Opened{}, ErrStranger
	case !known:
		if other := view.AccountByEmail(f.Email); other != nil && other.ID != self.ID {
			// else a customer would exist as whom nobody can sign in
			return Opened{}, fault.Invalid(fault.EmailTaken, "email",
				"another account has this address")
		}
		if _, err := client.Do(ctx, s.Client, client.SignUp{Customer: f.Subject, Email: f.Email,
			Firstname: f.Profile.Firstname, Lastname: f.Profile.Lastname,
			Entry: s.IDs.New()}, nil); err != nil {
			return Opened{}, err
		}
		s.note(ctx, Event{Outcome: SignedUp, Email: f.Email, Customer: f.Subject,
			Address: f.Address})
	}
	account, err := client.Do(ctx, s.Client, client.CreateAccount{ID: self.ID, Email: f.Email,
		Customer: f.Subject, Password: auth.MarkOf(f.Issuer), Admin: f.Admin, Renews: true,
		Entry: s.IDs.New()}, nil)
	if err != nil {
		return Opened{}, err
	}
	session := auth.NewSessionSecret()
	if _, err := client.Do(ctx, s.Client, client.OpenSession{Account: account.ID,
		Password: account.Password, Hash: auth.HashSession(session),
		Life: ForeignLife.Milliseconds()}, nil); err != nil {
		return Opened{}, err
	}
	event.Outcome = SignedIn
	return s.opened(session, f.Device, &account), nil
}

// NoteForeign reports a person who came from the issuer with an invalid code or token.
func (s *Service) NoteForeign(ctx context.Context, from netip.Addr) {
	s.note(ctx, Event{Outcome: Refused, Address: from})
}
