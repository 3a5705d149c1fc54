// Package auth owns who calls, and what each may do (specification 5, decisions 7, 31 and 44). That
// is by API keys, by sessions of browsers, and by the sign-in tokens of the local issuer and of
// another one (package oidc).
// It answers with a Principal or a fault; it writes no response and knows no operation.
package auth

import (
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Principal is the caller behind a valid credential.
type Principal struct {
	Customer string      // whose resources are meant
	Key      *client.Key // nil for a sign-in credential
	// Grant is what an access token is of, which counts as a Key of its scope; nil: it is none.
	Grant *client.Grant
	// Session is a sign-in credential that is a browser's session, nil for a token.
	Session *client.Session
	Subject string // of a sign-in credential
	Admin   bool   // a sign-in credential with the role admin
	// Foreign is a sign-in credential of the OpenID Connect issuer. Email is the address that it
	// has verified, "" for none.
	Foreign bool
	Email   string
	// Account is that of a token of this issuer. There is one once its person has signed in by a
	// browser.
	Account ids.ID
	// Until is the last Unix millisecond of a sign-in credential, leeway between clocks included.
	// An access token is refused from it on.
	Until int64
	// Stranger is a foreign credential of whom nobody is a customer yet.
	Stranger bool
}

// SelfCustomer is the customer of a self-hosted server.
const SelfCustomer = "self"

// SelfHosting says whether the credential is an API key of that customer.
func (p *Principal) SelfHosting() bool { return p.Key != nil && p.Customer == SelfCustomer }

// SignIn says whether the credential is a sign-in token.
func (p *Principal) SignIn() bool { return p.Key == nil }

// Impersonates says whether an admin acts for another customer.
func (p *Principal) Impersonates() bool { return p.SignIn() && p.Subject != p.Customer }

// Holder names the credential whose rate buckets a call takes from.
func (p *Principal) Holder() string {
	if p.Key != nil {
		return "key " + p.Key.ID.String()
	}
	return "subject " + p.Subject
}

// Payer names the customer whose credential it is, "" when an admin acts for another one.
func (p *Principal) Payer() string {
	if p.Impersonates() {
		return ""
	}
	return p.Customer
}

// Access classes operations by their effect, not their verb (decision 7).
type Access string

// The classes.
const (
	Public     Access = "public"     // no credential
	Read       Access = "read"       // every credential
	Write      Access = "write"      // all but LLM_READ keys
	Mint       Access = "mint"       // USER keys and sign-in
	Restricted Access = "restricted" // LLM_FULL keys (website contacts)
	Agent      Access = "agent"      // LLM_READ and LLM_FULL keys (the agent gateway)
	SignInOnly Access = "sign-in"    // sign-in of the customer itself
	SignUp     Access = "sign-up"    // the same, and of who is not a customer yet
	Admin      Access = "admin"      // sign-in with the role admin
)

// Check says whether the caller may use operations of a class: nil, customer_required,
// scope_rejected, sign_in_required, or unauthorized for those who are not admins.
func (a Access) Check(p *Principal) error {
	if p.Stranger && a != SignUp {
		return fault.New(fault.CustomerRequired, "the token is valid, and nobody has signed up "+
			"with it: POST /api/customer does")
	}
	scope := model.Scope("")
	if p.Key != nil {
		scope = p.Key.Scope
	}
	allowed, code := true, fault.ScopeRejected
	switch a {
	case Write:
		allowed = scope != model.ScopeLLMRead
	case Mint:
		allowed = p.SignIn() || scope == model.ScopeUser
	case Agent:
		allowed = scope == model.ScopeLLMRead || scope == model.ScopeLLMFull
	case Restricted:
		allowed = scope == model.ScopeLLMFull
	case SignInOnly, SignUp:
		allowed, code = p.SignIn() && !p.Impersonates(), fault.SignInOnly
	case Admin:
		allowed, code = p.Admin, fault.Unauthorized
	}
	if allowed {
		return nil
	}
	switch code {
	case fault.SignInOnly:
		return fault.New(code, "only a sign-in of the customer itself may call this")
	case fault.Unauthorized:
		return fault.New(code, "only an admin may call this")
	}
	return fault.New(code, "a key of scope %s may not call this", scope)
}
