package auth

import (
	"context"
	"fmt"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// An access token of a grant has the form svc_access_<secret>.
const (
	AccessStart  = "svc_access_"
	accessLength = len(AccessStart) + 52
)

var errGrant = fault.New(fault.Unauthorized, "the access token has ended: it is good for 15 "+
	"minutes, and no longer than what the customer has allowed")

// isAccess says whether a text has the form of an access token.
func isAccess(text string) bool {
	return len(text) == accessLength && strings.HasPrefix(text, AccessStart)
}

// granted makes p the principal of a grant until its newest access token ends. It acts like a key
// of the granted scope.
func (p *Principal) granted(grant *client.Grant) {
	p.Grant, p.Until = grant, grant.AccessUntil
	p.Key = &client.Key{ID: grant.ID, Customer: grant.Customer, Name: grant.Name,
		Scope: grant.Scope, CreatedAt: grant.CreatedAt, LastUsedAt: grant.UsedAt,
		ExpiresAt: grant.AccessUntil}
}

// byGrant finds out to which grant an access token belongs. Like sessions, access tokens are
// refused if an OpenID Connect issuer signs people in.
func (a *Authenticator) byGrant(ctx context.Context, token, customerRef string) (Principal,
	*client.View, error) {
	hash := HashSession(token)
	if !isAccess(token) || a.OpenID != nil || a.unknown.remembers(token, a.Clock.Now()) &&
		a.Client.View().GrantByAccess(hash) == nil {
		return Principal{}, nil, errGrant
	}
	view, err := a.Client.Fresh(ctx)
	if err != nil {
		return Principal{}, nil, fmt.Errorf("read the state: %w", err)
	}
	grant := view.GrantByAccess(hash)
	if grant == nil {
		a.unknown.remember(token, a.Clock.Now())
		return Principal{}, nil, errGrant
	}
	if a.Clock.Now().UnixMilli() >= grant.AccessUntil {
		return Principal{}, nil, errGrant
	}
	if err := admit(view, grant.Customer); err != nil {
		return Principal{}, nil, err
	}
	if customerRef != "" && customerRef != grant.Customer {
		return Principal{}, nil, fault.New(fault.ScopeRejected, "only admins act for another "+
			"customer")
	}
	p := Principal{Customer: grant.Customer}
	p.granted(grant)
	return p, view, nil
}

// holdsGrant is holds for an access token. It fails once that token ends, even if the grant has a
// newer one.
func (a *Authenticator) holdsGrant(view *client.View, p *Principal) error {
	if view.Grant(p.Grant.ID) == nil || a.Clock.Now().UnixMilli() >= p.Until {
		return errGrant
	}
	return admit(view, p.Customer)
}
