// Package signin has the operations and pages with which people sign in. Only passkeys need
// JavaScript. If an OpenID Connect issuer signs people in, the pages redirect there and back.
// Package accounts makes the decisions.
package signin

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/grants"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

const group = "Sign-in"

// Cookies of a browser besides its session.
const (
	deviceCookie = "shoal-device" // marks a browser that has signed in before
	formCookie   = "shoal-form"   // also in the browser's forms
)

// Lifetimes of cookies.
const (
	sessionLife = client.SessionMillis * time.Millisecond
	deviceLife  = 400 * 24 * time.Hour // the longest that browsers allow
	formLife    = 24 * time.Hour
)

// Sessions authenticates session secrets.
type Sessions interface {
	Authenticate(ctx context.Context, authorization, customerRef string) (auth.Principal,
		*client.View, error)
}

// Resource has the operations of sign-in and their dependencies.
type Resource struct {
	Client   client.Client
	Accounts *accounts.Service
	Sessions Sessions
	Grants   *grants.Service
	// Portal is the path of the web portal; "": there is none.
	Portal string
	// Agreement says that there are terms that customers agree to.
	Agreement bool
	// OpenID is the issuer at which people sign in; nil: they sign in here.
	OpenID *OpenID
}

// Operations implements the catalogue's resource interface.
func (r Resource) Operations() []*operation.Operation {
	if r.OpenID != nil {
		return r.openIDOperations()
	}
	var once []*operation.Operation
	if r.Accounts.Once != nil {
		once = []*operation.Operation{r.oncePage(), r.enterOnce()}
	}
	return append(once, r.signIn(), r.signOut(), r.signOutEverywhere(),
		r.changePassword(), r.list(), r.create(), r.disable(), r.enable(), r.remove(),
		r.handLink(), r.setPassword(),
		r.page(), r.enter(), r.leave(), r.passwordPage(), r.enterPassword(),
		r.recoverPage(), r.enterRecover(), r.newPasswordPage(), r.enterNewPassword(),
		r.signUpPage(), r.enterSignUp(),
		r.metadata(), r.resourceMetadata(), r.agentMetadata(),
		r.register(), r.authorize(), r.decide(), r.token(),
		r.revoke(), r.listGrants(), r.endGrant(), r.programsPage(), r.endProgram(),
		r.listPasskeys(), r.askForPasskey(), r.addPasskey(), r.removePasskey(),
		r.askPasskey(), r.signInByPasskey(),
		r.passkeysPage(), r.dropPasskey(), r.passkeysScript())
}

// SignInInput is the credential of a sign-in.
type SignInInput struct {
	Email    string `json:"email" required:"true" max:"254"`
	Password string `json:"password" required:"true" max:"256"`
}

type signInRequest struct {
	Body SignInInput `body:"json" limit:"4096"`
}

// SignedIn is the person who has signed in.
type SignedIn struct {
	CustomerRef string `json:"customerRef"`
	Admin       bool   `json:"admin"`
}

var errClear = fault.New(fault.InvalidRequest, "the call came in the clear, where others read "+
	"passwords: use https. The operator starts the service with --tls-cert, or names its proxy in "+
	"--trusted-proxies, which sends X-Forwarded-Proto")

// signIn is POST /api/auth/sign-in.
func (r Resource) signIn() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_in", Routes: operation.Routes("POST /api/auth/sign-in"), Group: group,
		Summary: "Begins a browser session",
		Description: "The session is a cookie that scripts cannot read. It is valid for 30 " +
			"days, or for 7 days without a call. It has the same rights as a sign-in token. " +
			"Without TLS, a password is accepted only from this machine. After too many " +
			"attempts on an account, or from a network or device, the header Retry-After says " +
			"how long to wait. The detail says how to get in without waiting.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true,
		Errors: []fault.Code{fault.Unauthorized, fault.AccountDisabled, fault.CustomerBlocked},
	}, func(ctx context.Context, from *operation.Caller, in *signInRequest) (SignedIn, error) {
		account, err := r.open(ctx, from, in.Body.Email, in.Body.Password)
		if err != nil {
			return SignedIn{}, err
		}
		return SignedIn{CustomerRef: account.Customer, Admin: account.Admin}, nil
	})
}

// open begins a session in the caller's browser with a password.
func (r Resource) open(ctx context.Context, from *operation.Caller, email,
	password string) (client.Account, error) {
	if from.Way == operation.InTheClear {
		return client.Account{}, errClear
	}
	opened, retry, err := r.Accounts.SignIn(ctx, accounts.Attempt{Email: email, Password: password,
		Address: from.Address, Device: from.Cookie(deviceCookie)})
	if err != nil {
		from.RetryAfter = retry
		return client.Account{}, err
	}
	from.SetCookie(operation.SessionCookie, opened.Session, sessionLife)
	from.SetCookie(deviceCookie, opened.Device, deviceLife)
	return opened.Account, nil
}

// signOut is POST /api/auth/sign-out.
func (r Resource) signOut() *operation.Operation {
	return r.ending("svc_sign_out", "POST /api/auth/sign-out", "Ends this session", false)
}

// signOutEverywhere is POST /api/auth/sign-out-everywhere.
func (r Resource) signOutEverywhere() *operation.Operation {
	return r.ending("svc_sign_out_everywhere", "POST /api/auth/sign-out-everywhere",
		"Ends all sessions of the account", true)
}

func (r Resource) ending(id, route, summary string, everywhere bool) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: id, Routes: operation.Routes(route), Group: group, Summary: summary,
		Description: "An ended session is refused from the next request on. Its open streams " +
			"end.",
		Access: auth.SignInOnly, Rate: limits.General, Browser: true,
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (operation.None, error) {
		return operation.None{}, r.end(ctx, from, everywhere)
	})
}

// end ends the caller's session, or all sessions of the account.
func (r Resource) end(ctx context.Context, from *operation.Caller, everywhere bool) error {
	if err := r.Accounts.SignOut(ctx, &from.Principal, from.Address, everywhere); err != nil {
		return err
	}
	forget(from)
	return nil
}

// forget removes the session cookie, and what pages stored in the browser.
func forget(from *operation.Caller) {
	from.SetCookie(operation.SessionCookie, "", 0)
	from.Forget()
}
