package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"

	"shoal.dev/shoal/apiserver/internal/oidc"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Authenticator checks credentials.
type Authenticator struct {
	Client  client.Client
	Issuer  *Issuer      // the local issuer
	OpenID  *oidc.Issuer // the external issuer; nil: none
	Touches *Touches
	Clock   clock.Clock
	IDs     ids.Source

	unknown unknown
}

// Authenticate finds out who calls, from the headers Authorization and X-Customer-Ref. The view is
// no older than the call, so a key revoked before is not in it. Faults: unauthorized,
// account_disabled, customer_blocked, scope_rejected if a non-admin names another customer,
// invalid_request for an unknown customer, unavailable.
func (a *Authenticator) Authenticate(ctx context.Context, authorization,
	customerRef string) (Principal, *client.View, error) {
	scheme, credential, _ := strings.Cut(authorization, " ")
	credential = strings.TrimSpace(credential)
	if !strings.EqualFold(scheme, "Bearer") || credential == "" {
		return Principal{}, nil, fault.New(fault.Unauthorized, "a bearer credential is needed")
	}
	isKey := strings.HasPrefix(credential, keyStart)
	if isKey && !wellFormed(credential) {
		return Principal{}, nil, fault.New(fault.Unauthorized, "the key is not known")
	}
	if strings.HasPrefix(credential, sessionStart) {
		return a.resume(ctx, credential, customerRef)
	}
	if strings.HasPrefix(credential, AccessStart) {
		return a.byGrant(ctx, credential, customerRef)
	}
	var who identity
	if !isKey {
		var err error
		if who, err = a.check(ctx, credential); err != nil {
			return Principal{}, nil, err
		}
	}
	if isKey && a.unknown.remembers(credential, a.Clock.Now()) &&
		findKey(a.Client.View(), credential) == nil {
		return Principal{}, nil, fault.New(fault.Unauthorized, "the key is not known")
	}
	view, err := a.Client.Fresh(ctx)
	if err != nil {
		return Principal{}, nil, fmt.Errorf("read the state: %w", err)
	}
	if isKey {
		key := findKey(view, credential)
		if key == nil {
			a.unknown.remember(credential, a.Clock.Now())
			return Principal{}, nil, fault.New(fault.Unauthorized, "the key is not known")
		}
		if err := a.admitKey(view, key); err != nil {
			return Principal{}, nil, err
		}
		if customerRef != "" && customerRef != key.Customer {
			return Principal{}, nil, fault.New(fault.ScopeRejected, "only admins act for "+
				"another customer")
		}
		return Principal{Customer: key.Customer, Key: key}, view, nil
	}
	return a.signIn(ctx, view, who, customerRef)
}

// MarkOf replaces the password hash in accounts of an issuer's people. They sign in only at that
// issuer.
func MarkOf(issuer string) string { return markStart + issuer }

const markStart = "openid "

// AccountOf is the account id of a person of an issuer. It is the same on all servers, so two
// simultaneous sign-ins make one account.
func AccountOf(issuer, subject string) (id ids.ID) {
	sum := sha256.Sum256([]byte("account\x00" + issuer + "\x00" + subject))
	copy(id[:], sum[:])
	return id
}

// IsMark says whether an account belongs to an issuer's person.
func IsMark(password string) bool { return strings.HasPrefix(password, markStart) }

// signsIn says whether an account may sign in here: by a password, or only at the issuer if one
// signs people in. A second way in would be a second way to break in.
func (a *Authenticator) signsIn(account *client.Account) bool {
	if a.OpenID == nil {
		return !IsMark(account.Password)
	}
	return a.OpenID.SignsIn() && account.Password == MarkOf(a.OpenID.Name())
}

// resume finds out whose session it is. Sessions by password are refused if an OpenID Connect
// issuer signs people in.
func (a *Authenticator) resume(ctx context.Context, secret, customerRef string) (Principal,
	*client.View, error) {
	if !isSession(secret) || a.unknown.remembers(secret, a.Clock.Now()) &&
		a.Client.View().Session(HashSession(secret)) == nil {
		return Principal{}, nil, errSession
	}
	view, err := a.Client.Fresh(ctx)
	if err != nil {
		return Principal{}, nil, fmt.Errorf("read the state: %w", err)
	}
	session, account := a.findSession(view, secret)
	if account == nil {
		a.unknown.remember(secret, a.Clock.Now())
		return Principal{}, nil, errSession
	}
	if !a.signsIn(account) {
		return Principal{}, nil, errSession
	}
	who := identity{subject: account.Customer, admin: account.Admin}
	if a.OpenID != nil {
		who.foreign, who.email = true, account.Email
	}
	p, view, err := a.signIn(ctx, view, who, customerRef)
	p.Session = session
	return p, view, err
}

// Known says whether a credential can be checked without asking the leader. It is false for a
// well-formed key, session or access token that this node does not have, which may be new. Tokens
// and malformed credentials need no leader.
func (a *Authenticator) Known(authorization string) bool {
	_, credential, _ := strings.Cut(authorization, " ")
	credential = strings.TrimSpace(credential)
	if isSession(credential) {
		return a.Client.View().Session(HashSession(credential)) != nil
	}
	if isAccess(credential) {
		return a.Client.View().GrantByAccess(HashSession(credential)) != nil
	}
	return !wellFormed(credential) || findKey(a.Client.View(), credential) != nil
}

// AuthenticateHere finds out who calls when the control plane has no leader. It only takes tokens,
// since a key may have been revoked or a session ended. The view is this node's own and may be old.
// Faults: unauthorized, account_disabled, customer_blocked; unavailable for keys, sessions, access
// tokens and tokens whose issuer is away.
func (a *Authenticator) AuthenticateHere(ctx context.Context, authorization string) (Principal,
	*client.View, error) {
	scheme, credential, _ := strings.Cut(authorization, " ")
	credential = strings.TrimSpace(credential)
	if !strings.EqualFold(scheme, "Bearer") || strings.HasPrefix(credential, keyStart) ||
		strings.HasPrefix(credential, sessionStart) ||
		strings.HasPrefix(credential, AccessStart) {
		return Principal{}, nil, fault.New(fault.Unavailable, "the control plane has no leader; "+
			"API keys, sessions and access tokens cannot be checked")
	}
	who, err := a.check(ctx, credential)
	if err != nil {
		return Principal{}, nil, err
	}
	p, view := who.principal(), a.Client.View()
	if err := admitSignIn(view, &p); err != nil {
		return Principal{}, nil, err
	}
	p.Stranger = who.foreign && view.Customer(who.subject) == nil
	return p, view, nil
}

// Holds says whether a credential that was let in would be let in again, by what this node knows.
// Long answers call it while they are sent. Faults: unauthorized if the key was revoked, the
// session ended or the credential expired; account_disabled, customer_blocked.
func (a *Authenticator) Holds(p *Principal) error { return a.holds(a.Client.View(), p) }

// holds is Holds against a given view.
func (a *Authenticator) holds(view *client.View, p *Principal) error {
	if view.Customer(p.Customer).Removed() { // an admin may act for the customer
		return fault.New(fault.CustomerBlocked, "the operator of the service has removed this "+
			"customer")
	}
	if p.Session != nil {
		session := view.Session(p.Session.Hash)
		if session == nil || session.Ended(a.Clock.Now().UnixMilli()) {
			return errSession
		}
		return admit(view, p.Subject)
	}
	if p.Grant != nil {
		return a.holdsGrant(view, p)
	}
	if p.Key == nil {
		if a.Clock.Now().UnixMilli() > p.Until {
			return fault.New(fault.Unauthorized, "the token has expired")
		}
		return admitSignIn(view, p)
	}
	if view.Key(p.Key.ID) == nil {
		return fault.New(fault.Unauthorized, "the key was revoked")
	}
	return a.admitKey(view, p.Key)
}

// Used notes that a caller was let in. from is the caller's address; zero: unknown.
func (a *Authenticator) Used(p *Principal, from netip.Addr) {
	switch {
	case p.Key != nil && p.Grant == nil:
		a.Touches.touch(p.Key.ID, from)
	case p.Session != nil:
		a.Touches.touchSession(p.Session.Hash)
	}
}

// admitKey refuses a key that has expired, to the millisecond, or whose customer is blocked.
func (a *Authenticator) admitKey(view *client.View, key *client.Key) error {
	if key.Expired(a.Clock.Now().UnixMilli()) {
		return fault.New(fault.Unauthorized, "the key has expired")
	}
	return admit(view, key.Customer)
}

// admit refuses the credentials of a blocked customer. Admins who act for it use their own.
func admit(view *client.View, holder string) error {
	if view.Customer(holder).Blocked() {
		return fault.New(fault.CustomerBlocked, "the operator of the service has blocked this "+
			"customer")
	}
	return nil
}

// admitSignIn refuses the token of a person whose account is disabled or whose customer is blocked.
func admitSignIn(view *client.View, p *Principal) error {
	if account := view.Account(p.Account); account != nil && account.DisabledAt != 0 {
		return fault.New(fault.AccountDisabled, "the operator of the service has disabled this "+
			"account")
	}
	return admit(view, p.Subject)
}

// check checks a token of either issuer.
func (a *Authenticator) check(ctx context.Context, token string) (identity, error) {
	if a.OpenID == nil || isLocal(token) {
		who, err := a.Issuer.check(token, a.Clock.Now())
		if err != nil {
			err = fault.Wrap(fault.Unauthorized, err, "the token is not valid")
		}
		return who, err
	}
	said, err := a.OpenID.Check(ctx, token)
	if err != nil {
		return identity{}, err
	}
	if err := CheckForeign(said.Subject); err != nil {
		return identity{}, err
	}
	return identity{subject: said.Subject, admin: said.Admin, email: said.Email, foreign: true,
		account: AccountOf(a.OpenID.Name(), said.Subject), until: said.Until}, nil
}

// CheckForeign refuses a subject that is reserved for this server. Someone who may choose names at
// an issuer is not this server's operator.
func CheckForeign(subject string) error {
	if subject == SelfCustomer {
		return fault.New(fault.Unauthorized, "the subject %q is this server's own", SelfCustomer)
	}
	return nil
}

// signIn makes the customer of a local issuer's token at its first use. A person of the external
// issuer has to sign up (decision 44). The token of a blocked customer or disabled account is
// refused, whomever it acts for.
func (a *Authenticator) signIn(ctx context.Context, view *client.View, who identity,
	customerRef string) (Principal, *client.View, error) {
	p := who.principal()
	if err := admitSignIn(view, &p); err != nil {
		return Principal{}, nil, err
	}
	if customerRef != "" && customerRef != who.subject {
		if !who.admin {
			return Principal{}, nil, fault.New(fault.ScopeRejected, "only admins act for "+
				"another customer")
		}
		if known := view.Customer(customerRef); known == nil || known.Removed() {
			return Principal{}, nil,
				fault.Invalid(fault.InvalidRequest, "X-Customer-Ref",
					"no customer has this reference")
		}
		p.Customer = customerRef
		return p, view, nil
	}
	if view.Customer(p.Customer) != nil {
		return p, view, nil
	}
	if who.foreign {
		p.Stranger = true
		return p, view, nil
	}
	if _, err := client.Do(ctx, a.Client,
		client.OpenCustomer{Customer: p.Customer, Entry: a.IDs.New()}, nil); err != nil {
		return Principal{}, nil, fmt.Errorf("open the customer: %w", err)
	}
	view, err := a.Client.Fresh(ctx)
	if err != nil {
		return Principal{}, nil, fmt.Errorf("read the state: %w", err)
	}
	return p, view, nil
}
