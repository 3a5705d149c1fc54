// Package auth decides who calls, and what each caller may do (specification 5, decisions 7, 31 and
// 44). Credentials are API keys, browser sessions, and sign-in tokens of the local issuer or an
// external one (package oidc). It returns a Principal or a fault; it writes no response and knows
// no operation.
package auth

import (
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Principal is the caller behind a valid credential.
type Principal struct {
	Customer string      // whose resources the call is about
	Key      *client.Key // nil for a sign-in credential
	// Grant is the grant of an access token, which acts as a Key of its scope; nil: none.
	Grant *client.Grant
	// Session is set for a sign-in by a browser's session, nil for a token.
	Session *client.Session
	Subject string // of a sign-in credential
	Admin   bool   // a sign-in credential with the role admin
	// Foreign marks a sign-in credential of the OpenID Connect issuer. Email is the address that
	// the issuer has verified, "" for none.
	Foreign bool
	Email   string
	// Account is the account id of a token of that issuer. The account exists once the person has
	// signed in with a browser.
	Account ids.ID
	// Until is the last Unix millisecond of a sign-in credential, including the leeway between
	// clocks. An access token is already refused at that time.
	Until int64
	// Stranger marks a foreign credential whose person is not yet a customer.
	Stranger bool
}

// SelfCustomer is the customer of a self-hosted server.
const SelfCustomer = "self"

// SelfHosting says whether the credential is an API key of SelfCustomer.
func (p *Principal) SelfHosting() bool { return p.Key != nil && p.Customer == SelfCustomer }

// SignIn says whether the credential is a sign-in: a token or a session.
func (p *Principal) SignIn() bool { return p.Key == nil }

// Impersonates says whether an admin acts for another customer.
func (p *Principal) Impersonates() bool { return p.SignIn() && p.Subject != p.Customer }

// Holder names the credential whose rate limit buckets the call uses.
func (p *Principal) Holder() string {
	if p.Key != nil {
		return "key " + p.Key.ID.String()
	}
	return "subject " + p.Subject
}

// Payer names the customer who owns the credential, "" if an admin acts for another one.
func (p *Principal) Payer() string {
	if p.Impersonates() {
		return ""
	}
	return p.Customer
}

// Access classifies operations by their effect, not their verb (decision 7).
type Access string

// The classes of access.
const (
	Public     Access = "public"     // no credential
	Read       Access = "read"       // every credential
	Write      Access = "write"      // all but LLM_READ keys
	Mint       Access = "mint"       // USER keys and sign-in
	Restricted Access = "restricted" // LLM_FULL keys (website contacts)
	Agent      Access = "agent"      // LLM_READ and LLM_FULL keys (the agent gateway)
	SignInOnly Access = "sign-in"    // sign-in of the customer itself
	SignUp     Access = "sign-up"    // like sign-in, and of people who are not yet customers
	Admin      Access = "admin"      // sign-in with the role admin
)

// Check says whether the caller may use operations of a class. It returns nil, customer_required,
// scope_rejected, sign_in_required, or unauthorized if an admin is needed.
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
	const mints = "LLM_READ or LLM_FULL: PUT /api/key/generate?scope=LLM_FULL mints it"
	switch {
	case a == Agent && p.Key == nil:
		return fault.New(code, "agents need a key of the scope "+mints)
	case a == Agent:
		return fault.New(code, "the key is of the scope %s, and agents need one of "+mints, scope)
	case p.Key == nil:
		return fault.New(code, "this needs a key of the scope LLM_FULL: "+
			"PUT /api/key/generate?scope=LLM_FULL mints it")
	}
	return fault.New(code, "a key of scope %s may not call this", scope)
}
