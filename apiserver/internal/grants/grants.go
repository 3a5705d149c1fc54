// Package grants lets people allow programs to call on their behalf: OAuth 2.1 with PKCE, as agents
// use it. It covers programs, their requests, codes and tokens. It returns these or a Refusal. It
// knows no HTTP and no page. Package auth handles calls with an access token; the control plane
// stores the state.
//
// The protocol is small, and libraries for it mostly bring storage. They keep tokens in a database,
// with their own rules for single use. Here one command of the replicated state spends a code or
// replaces a token.
package grants

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Service makes and ends grants. It is safe for concurrent use.
type Service struct {
	Key    []byte // signs programs' ids and makes tokens; the same for all servers
	Client client.Client
	Clock  clock.Clock
	IDs    ids.Source
}

// Refusal is why there is no grant, with a code of RFC 6749, 7591 or 8707.
type Refusal struct{ Code, Detail string }

// Error implements error.
func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

func refuse(code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// The texts that programs hold. A refresh token has a family, which all refresh tokens of a grant
// share, and a secret. Whoever knows the family has held one of them.
const (
	codeStart     = "svc_code_"
	refreshStart  = "svc_refresh_"
	familyLength  = 26
	secretLength  = 52
	refreshLength = len(refreshStart) + familyLength + secretLength
)

// secret makes 260 random bits.
func secret() string { return rand.Text() + rand.Text() }

// follow derives a text from a secret one. Equal calls give equal texts.
func (s *Service) follow(purpose, from string) string {
	sum := hmac.New(sha256.New, s.Key)
	_, _ = sum.Write([]byte(purpose + " " + from)) // never fails
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil))
}

// Tokens are what a program receives.
type Tokens struct {
	Access, Refresh string
	Life            time.Duration // of the access token
	Scope           model.Scope
}

// Allow makes a code on behalf of a person who has signed in. Faults: unauthorized,
// customer_blocked, unavailable.
func (s *Service) Allow(ctx context.Context, p *auth.Principal, r *Request,
	scope model.Scope) (code string, err error) {
	code = codeStart + secret()
	_, err = client.Do(as(ctx, p), s.Client, client.IssueCode{Hash: hash(code),
		Session: p.Session.Hash, Client: r.program, Name: r.Name, Redirect: hash(r.Redirect),
		Verifier: r.challenge, Scope: scope, Resource: r.Resource}, nil)
	return code, err
}

// as is a context in which the person is the actor.
func as(ctx context.Context, p *auth.Principal) context.Context {
	var actor client.Actor
	if known := client.ActorOf(ctx); known != nil {
		actor = *known
	}
	actor.Subject, actor.Customer, actor.Admin = p.Subject, p.Customer, p.Admin
	return client.WithActor(ctx, &actor)
}

// Redemption is a program's request to redeem a code.
type Redemption struct{ Program, Code, Redirect, Verifier, Resource string }

var (
	errCode = &Refusal{"invalid_grant", "the code is not good: it is for one program and " +
		"address, for a minute, and once"}
	errRefresh = &Refusal{"invalid_grant", "the refresh token is not good: it is for one program, " +
		"and once"}
	verifier = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
)

// Redeem turns a code into a grant. Refusals: invalid_client, invalid_request, invalid_target,
// invalid_grant. Faults: unavailable.
func (s *Service) Redeem(ctx context.Context, r Redemption, base string) (Tokens, error) {
	resource, err := s.admit(r.Program, r.Resource, base)
	if err != nil {
		return Tokens{}, err
	}
	if !verifier.MatchString(r.Verifier) {
		return Tokens{}, refuse("invalid_request", "code_verifier has 43 to 128 characters, as "+
			"RFC 7636 has them")
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Tokens{}, fmt.Errorf("read the state: %w", err)
	}
	if view.GrantCode(hash(r.Code)) == nil { // invented: not worth a command
		return Tokens{}, errCode
	}
	tokens := Tokens{Refresh: refreshStart + rand.Text() + secret()}
	tokens.Access = auth.AccessStart + s.follow("access", tokens.Refresh)
	redeem := client.RedeemCode{Hash: hash(r.Code), Client: hash(r.Program),
		Verifier: hash(r.Verifier), Resource: resource, Grant: s.IDs.New(),
		Family: family(tokens.Refresh), Refresh: hash(tokens.Refresh),
		Access: auth.HashSession(tokens.Access)}
	if r.Redirect != "" {
		redeem.Redirect = hash(r.Redirect)
	}
	grant, err := client.Do(ctx, s.Client, redeem, nil)
	return s.answer(tokens, &grant, err, errCode)
}

// Renewal is a program's request with a refresh token. Scope and Resource are optional.
type Renewal struct{ Program, Refresh, Scope, Resource string }

// Refresh gives a grant new tokens. Refusals: invalid_client, invalid_scope if the scope differs
// from the granted one, invalid_target, invalid_grant. Faults: unavailable.
func (s *Service) Refresh(ctx context.Context, r Renewal, base string) (Tokens, error) {
	resource, err := s.admit(r.Program, r.Resource, base)
	if err != nil {
		return Tokens{}, err
	}
	if !isRefresh(r.Refresh) {
		return Tokens{}, errRefresh
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Tokens{}, fmt.Errorf("read the state: %w", err)
	}
	known := view.GrantByFamily(family(r.Refresh))
	if known == nil {
		return Tokens{}, errRefresh
	}
	if r.Scope != "" && r.Scope != string(known.Scope) {
		return Tokens{}, refuse("invalid_scope", "the scope of this grant is %s", known.Scope)
	}
	tokens := Tokens{Refresh: r.Refresh[:len(refreshStart)+familyLength] +
		s.follow("refresh", r.Refresh)}
	tokens.Access = auth.AccessStart + s.follow("access", tokens.Refresh)
	grant, err := client.Do(ctx, s.Client, client.RefreshGrant{Family: family(r.Refresh),
		Was: hash(r.Refresh), Client: hash(r.Program), Refresh: hash(tokens.Refresh),
		Access: auth.HashSession(tokens.Access), Resource: resource}, nil)
	return s.answer(tokens, &grant, err, errRefresh)
}

// admit checks a program's id and the resource of its tokens.
func (s *Service) admit(program, resource, base string) (string, error) {
	if !strings.HasPrefix(program, programStart) || len(program) > MaxProgramID {
		return "", refuse("invalid_client", "client_id is what the program got when it registered")
	}
	if resource == "" {
		return "", nil
	}
	return resourceOf(resource, base)
}

// answer completes the tokens of a grant. A grant without an id was not made.
func (s *Service) answer(tokens Tokens, grant *client.Grant, err error,
	refusal *Refusal) (Tokens, error) {
	switch {
	case err != nil:
		return Tokens{}, err
	case grant.ID.IsZero():
		return Tokens{}, refusal
	}
	until := time.UnixMilli(grant.AccessUntil)
	tokens.Scope, tokens.Life = grant.Scope, max(until.Sub(s.Clock.Now()), 0)
	return tokens, nil
}

func isRefresh(text string) bool {
	return len(text) == refreshLength && strings.HasPrefix(text, refreshStart)
}

// family is the hash of what all refresh tokens of a grant share.
func family(refresh string) client.Hash { return hash(refresh[:len(refreshStart)+familyLength]) }

// Revoke ends the grant of a token of any kind. If the program has no such token, it does nothing
// (RFC 7009). Faults: unavailable.
func (s *Service) Revoke(ctx context.Context, program, token string) error {
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	grant := view.GrantByAccess(auth.HashSession(token))
	if isRefresh(token) {
		grant = view.GrantByFamily(family(token))
	}
	if grant == nil || grant.Client != hash(program) {
		return nil
	}
	_, err = client.Do(ctx, s.Client, client.EndGrant{Customer: grant.Customer, Grant: grant.ID},
		nil)
	return err
}

// End ends a grant of the person who has signed in. It ignores grants of others and ended ones.
// Faults: unavailable.
func (s *Service) End(ctx context.Context, p *auth.Principal, grant ids.ID) error {
	_, err := client.Do(as(ctx, p), s.Client, client.EndGrant{Customer: p.Customer, Grant: grant},
		nil)
	return err
}
