package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// OncePath is the path of one-time sign-in links.
const OncePath = "/sign-in/once"

// Once is a link that signs a person in on this machine, once, without a password. It is kept only
// in memory, as a hash, so a restart ends it. It is safe for concurrent use.
type Once struct {
	email   string
	expires time.Time
	hash    [sha256.Size]byte

	mu   sync.Mutex
	used bool
}

// NewOnce makes a link for an account, valid until expires. address is its path and query, below
// the service's address. The address is a secret.
func NewOnce(email string, expires time.Time) (once *Once, address string) {
	secret := rand.Text()
	return &Once{email: email, expires: expires, hash: sha256.Sum256([]byte(secret))},
		OncePath + "?" + url.Values{"link": {secret}}.Encode()
}

var errOnce = fault.New(fault.Unauthorized, "This link was used, or is too old, or is not for "+
	"this machine. Start the demo again: it prints another one.")

// check says whether a secret is that of the link, and the link still valid. The caller holds mu.
func (o *Once) check(secret string, from netip.Addr, now time.Time) error {
	given := sha256.Sum256([]byte(secret))
	if o.used || !now.Before(o.expires) || !from.IsLoopback() ||
		subtle.ConstantTimeCompare(given[:], o.hash[:]) != 1 {
		return errOnce
	}
	return nil
}

// LookOnce says whom a link signs in. It does not use the link up, since programs follow links,
// too. Faults: unauthorized.
func (s *Service) LookOnce(secret string, from netip.Addr) (email string, err error) {
	s.Once.mu.Lock()
	defer s.Once.mu.Unlock()
	return s.Once.email, s.Once.check(secret, from, s.Clock.Now())
}

// SignInOnce begins a session by the link, which is used up once the session is open. Faults:
// unauthorized, account_disabled, customer_blocked, unavailable.
func (s *Service) SignInOnce(ctx context.Context, secret string, from netip.Addr,
	device string) (opened Opened, err error) {
	s.Once.mu.Lock()
	defer s.Once.mu.Unlock()
	event := Event{Outcome: Refused, Address: from}
	defer func() {
		if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Internal {
			s.note(ctx, event)
		}
	}()
	if err := s.Once.check(secret, from, s.Clock.Now()); err != nil {
		return Opened{}, err
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Opened{}, fmt.Errorf("read the state: %w", err)
	}
	account := view.AccountByEmail(s.Once.email)
	if account == nil {
		return Opened{}, errOnce
	}
	event.Email, event.Customer = account.Email, account.Customer
	session := auth.NewSessionSecret()
	if _, err := client.Do(as(ctx, account), s.Client, client.OpenSession{Account: account.ID,
		Password: account.Password, Hash: auth.HashSession(session)}, nil); err != nil {
		return Opened{}, err
	}
	s.Once.used, event.Outcome = true, SignedIn
	return s.opened(session, device, account), nil
}
