package grants

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// Asked is a program's request as it came.
type Asked struct {
	ResponseType, Program, Redirect, Scope, State, Challenge, Method, Resource string
}

// Request is a checked request of a program.
type Request struct {
	Name      string // of the program
	Redirect  string
	To        string // where an answer is sent, for people
	Source    string // the same, as a CSP source
	Scopes    []model.Scope
	State     string
	Resource  string
	program   client.Hash
	challenge client.Hash
}

// Scopes are the scopes that can be granted, the least first (decision 7).
func Scopes() []model.Scope { return []model.Scope{model.ScopeLLMRead, model.ScopeLLMFull} }

// Look finds out which program asks, and whether an answer may be sent to its address. If not,
// nothing is sent, and the refusal is shown to the person.
func (s *Service) Look(asked *Asked) (*Request, error) {
	p := s.program(asked.Program)
	if p == nil {
		return nil, refuse("invalid_client", "The program has not registered here, or too long "+
			"ago. Start over in the program.")
	}
	if !p.allows(asked.Redirect) {
		return nil, refuse("invalid_request", "The program wants the answer to be sent to an "+
			"address that it has not registered. Do not go on unless you know why.")
	}
	r := &Request{Name: p.Name, Redirect: asked.Redirect, Source: source(asked.Redirect),
		State: asked.State, program: hash(asked.Program)}
	if at, err := url.Parse(asked.Redirect); err == nil {
		r.To = at.Host
	}
	return r, nil
}

// Check checks the rest of the request. Its refusals are answers to the program.
func (r *Request) Check(asked *Asked, base string) error {
	if asked.ResponseType != "code" {
		return refuse("unsupported_response_type", "response_type is code")
	}
	challenge, err := base64.RawURLEncoding.DecodeString(asked.Challenge)
	if err != nil || len(challenge) != len(r.challenge) || asked.Method != "S256" {
		return refuse("invalid_request", "code_challenge is a SHA-256 sum as base64url, and "+
			"code_challenge_method is S256")
	}
	copy(r.challenge[:], challenge)
	for _, name := range strings.Fields(asked.Scope) {
		if !slices.Contains(Scopes(), model.Scope(name)) {
			return refuse("invalid_scope", "scopes are LLM_READ and LLM_FULL")
		}
	}
	r.Scopes = []model.Scope{model.ScopeLLMRead}
	if slices.Contains(strings.Fields(asked.Scope), string(model.ScopeLLMFull)) {
		r.Scopes = Scopes()
	}
	r.Resource = base
	if asked.Resource != "" {
		r.Resource, err = resourceOf(asked.Resource, base)
	}
	return err
}

// resourceOf is whom a token is for (RFC 8707): this service, which includes its agent gateway.
func resourceOf(text, base string) (string, error) {
	switch text {
	case base, base + "/", base + "/mcp":
		return base, nil
	}
	return "", refuse("invalid_target", "resource is %s", base)
}

// Answer is the address that a person is sent back to, with the result.
func (r *Request) Answer(base string, more url.Values) string {
	at, err := url.Parse(r.Redirect)
	if err != nil {
		return r.Redirect // cannot fail: Look has parsed it
	}
	query := at.Query()
	for name, values := range more {
		query[name] = values
	}
	if query.Set("iss", base); r.State != "" {
		query.Set("state", r.State)
	}
	at.RawQuery = query.Encode()
	return at.String()
}

// Refused is the address that tells the program why nothing is granted.
func (r *Request) Refused(base string, refusal *Refusal) string {
	return r.Answer(base, url.Values{"error": {refusal.Code},
		"error_description": {refusal.Detail}})
}
