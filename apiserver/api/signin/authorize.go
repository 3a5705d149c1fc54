package signin

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/grants"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// authorizePath is where a program sends its user for authorization.
const authorizePath = "/oauth/authorize"

// base is this service's own address as the caller knows it. It is the issuer (RFC 8414) and the
// audience of tokens.
func base(from *operation.Caller) (string, error) {
	if from.Way == operation.InTheClear {
		return "", errClear
	}
	own := from.Base()
	if own == "" {
		return "", fault.Invalid(fault.InvalidRequest, "Host", "must be a name or an address")
	}
	return own, nil
}

// consent is the content of the page on which a person authorizes a program.
type consent struct {
	Asked  grants.Asked
	Name   string // of the program
	To     string // where the answer goes
	Full   bool   // it asks for write access, too
	Refuse bool   // nothing can be granted
}

type authorizeRequest struct {
	ResponseType string `query:"response_type" max:"64" doc:"code"`
	ClientID     string `query:"client_id" max:"4096" doc:"The client id that the program got when it registered"`
	RedirectURI  string `query:"redirect_uri" max:"255" doc:"Where the answer goes, as registered; on loopback, any port is accepted"`
	Scope        string `query:"scope" max:"256" doc:"LLM_READ, LLM_FULL, or both separated by a space; default: LLM_READ"`
	State        string `query:"state" max:"2048" doc:"Returned unchanged with the answer"`
	Challenge    string `query:"code_challenge" max:"128" doc:"SHA-256 of the verifier, as base64url (RFC 7636)"`
	Method       string `query:"code_challenge_method" max:"64" doc:"S256"`
	Resource     string `query:"resource" max:"1024" doc:"This service's address, optionally followed by /mcp (RFC 8707)"`
}

func (r *authorizeRequest) asked() *grants.Asked {
	return &grants.Asked{ResponseType: r.ResponseType, Program: r.ClientID,
		Redirect: r.RedirectURI, Scope: r.Scope, State: r.State, Challenge: r.Challenge,
		Method: r.Method, Resource: r.Resource}
}

// authorize is GET /oauth/authorize.
func (r Resource) authorize() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_authorize_page", Routes: operation.Routes("GET " + authorizePath), Group: programs,
		Summary: "Asks a person whether a program may call on the customer's behalf",
		Description: "The authorization endpoint of OAuth 2.1, with PKCE. A person who is not " +
			"signed in is sent to the sign-in page first, and back. The person's answer goes " +
			"to redirect_uri. If the request is invalid, the person is told why, and nothing " +
			"is sent to redirect_uri. Other parameters are ignored.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Lenient: true,
		Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *authorizeRequest) (operation.Raw,
		error) {
		ask, raw, err := r.examine(ctx, from, in.asked())
		if ask == nil {
			return raw, err
		}
		return r.ask(from, ask, "", 0)
	})
}

// asking is a program's valid request to a person who has signed in.
type asking struct {
	asked   *grants.Asked
	request *grants.Request
	base    string
	shown   shown
}

// examine checks a program's request. If nobody can be asked, it returns an answer instead of an
// asking.
func (r Resource) examine(ctx context.Context, from *operation.Caller,
	asked *grants.Asked) (*asking, operation.Raw, error) {
	own, err := base(from)
	if err != nil {
		return nil, operation.Raw{}, err
	}
	request, err := r.Grants.Look(asked)
	if refusal := (*grants.Refusal)(nil); errors.As(err, &refusal) {
		raw, err := r.render(from, "consent", shown{Problem: refusal.Detail,
			Consent: &consent{Refuse: true}}, http.StatusBadRequest)
		return nil, raw, err
	}
	if err = request.Check(asked, own); err != nil {
		refusal := (*grants.Refusal)(nil)
		if !errors.As(err, &refusal) {
			return nil, operation.Raw{}, err
		}
		// Anyone may register any address, so people are not redirected there without their consent
		// (RFC 9700, 4.11.2).
		raw, err := r.render(from, "consent", shown{Problem: refusal.Code + ": " + refusal.Detail,
			Consent: &consent{Refuse: true}}, http.StatusBadRequest)
		return nil, raw, err
	}
	ask := &asking{asked: asked, request: request, base: own}
	if err := r.look(ctx, from, &ask.shown); err != nil {
		return nil, operation.Raw{}, err
	}
	if from.Session == nil {
		return nil, lead(pagePath + "?" + url.Values{"next": {again(asked)}}.Encode()), nil
	}
	return ask, operation.Raw{}, nil
}

// again is the address that repeats the request.
func again(a *grants.Asked) string {
	query := url.Values{}
	for name, value := range map[string]string{"response_type": a.ResponseType,
		"client_id": a.Program, "redirect_uri": a.Redirect, "scope": a.Scope, "state": a.State,
		"code_challenge": a.Challenge, "code_challenge_method": a.Method,
		"resource": a.Resource} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return authorizePath + "?" + query.Encode()
}

// lead redirects a browser.
func lead(to string) operation.Raw {
	return operation.Raw{ContentType: "text/html; charset=utf-8", Status: http.StatusSeeOther,
		Location: to, Forms: true}
}

// ask renders the page on which a person decides.
func (r Resource) ask(from *operation.Caller, a *asking, problem string,
	status int) (operation.Raw, error) {
	s := a.shown
	s.Problem = problem
	s.Consent = &consent{Asked: *a.asked, Name: a.request.Name, To: a.request.To,
		Full: len(a.request.Scopes) > 1}
	raw, err := r.render(from, "consent", s, status)
	raw.FormsTo = a.request.Source
	return raw, err
}

type decideRequest struct {
	Body struct {
		Token        string `json:"token" max:"1024"`
		Decision     string `json:"decision" max:"64" doc:"The scope granted; any other value is a refusal"`
		ResponseType string `json:"response_type" max:"64"`
		ClientID     string `json:"client_id" max:"4096"`
		RedirectURI  string `json:"redirect_uri" max:"255"`
		Scope        string `json:"scope" max:"256"`
		State        string `json:"state" max:"2048"`
		Challenge    string `json:"code_challenge" max:"128"`
		Method       string `json:"code_challenge_method" max:"64"`
		Resource     string `json:"resource" max:"1024"`
	} `body:"form" limit:"32768"`
}

// decide is POST /oauth/authorize.
func (r Resource) decide() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_authorize_form", Routes: operation.Routes("POST " + authorizePath),
		Group: programs, Summary: "Accepts the consent form, and redirects to the program",
		Description: "The answer has code, state and iss, or error. The code is valid once, " +
			"for a minute.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
		Errors: []fault.Code{fault.Unauthorized, fault.CustomerBlocked},
	}, func(ctx context.Context, from *operation.Caller, in *decideRequest) (operation.Raw,
		error) {
		b := &in.Body
		query := authorizeRequest{b.ResponseType, b.ClientID, b.RedirectURI, b.Scope, b.State,
			b.Challenge, b.Method, b.Resource}
		ask, raw, err := r.examine(ctx, from, query.asked())
		switch {
		case ask == nil:
			return raw, err
		case !fresh(from, b.Token):
			return r.ask(from, ask, errForm.Detail, http.StatusBadRequest)
		}
		for _, scope := range ask.request.Scopes {
			if string(scope) == b.Decision {
				return r.allow(ctx, from, ask, scope)
			}
		}
		return lead(ask.request.Refused(ask.base, &grants.Refusal{Code: "access_denied",
			Detail: "the person has refused"})), nil
	})
}

// allow redirects to the program with a code.
func (r Resource) allow(ctx context.Context, from *operation.Caller, ask *asking,
	scope model.Scope) (operation.Raw, error) {
	code, err := r.Grants.Allow(ctx, &from.Principal, ask.request, scope)
	if err != nil {
		return operation.Raw{}, err
	}
	return lead(ask.request.Answer(ask.base, url.Values{"code": {code}})), nil
}
