package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// kindOfCaller is a column of the table.
type kindOfCaller struct {
	name       string
	credential string // a ticket is sent in the address
	customer   string // X-Customer-Ref
	open       func() // makes the credential valid again after earlier calls; nil: it stays valid
}

// kindsOfCallers are all kinds that the chain distinguishes beside an issuer's. Their customers are
// alice, mallory, who is blocked, and ella, whose plan lacks the feature.
func kindsOfCallers(t *testing.T, s *Server) []kindOfCaller {
	t.Helper()
	fake, source := s.config.Client.(*clienttest.Client), s.config.IDs
	for _, ref := range []string{"alice", "mallory", "root", "ella"} {
		fake.Must(t, client.OpenCustomer{Customer: ref, Entry: source.New()})
	}
	key := func(customer string, scope model.Scope) (text string, id ids.ID) {
		secret := auth.NewSecret()
		made := fake.Must(t, client.MintKey{ID: source.New(), Customer: customer,
			Prefix: secret.Prefix, Hash: secret.Hash, Scope: scope}).(client.Key)
		return secret.Text, made.ID
	}
	token := func(subject string, admin bool) string {
		text, err := MintToken(s.config.DataDir, subject, admin, s.config.Clock.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	session := auth.NewSessionSecret()
	open := func() {
		fake.Must(t, client.CreateAccount{ID: ids.ID{1}, Customer: "alice", Email: "a@x.test"})
		fake.Must(t, client.OpenSession{Account: ids.ID{1}, Hash: auth.HashSession(session)})
	}
	grant := func(customer string, n byte) (session, access string) {
		session = auth.NewSessionSecret()
		access = auth.AccessStart + strings.Repeat(string('A'+n), 52)
		of, own := auth.HashSession(session), client.Hash{n}
		fake.Must(t, client.CreateAccount{ID: ids.ID{n}, Customer: customer,
			Email: customer + "@y.test"})
		fake.Must(t, client.OpenSession{Account: ids.ID{n}, Hash: of})
		fake.Must(t, client.IssueCode{Hash: own, Session: of, Scope: model.ScopeLLMFull})
		fake.Must(t, client.RedeemCode{Hash: own, Grant: ids.ID{n}, Family: own,
			Access: auth.HashSession(access)})
		return session, access
	}
	_, granted := grant("alice", 2)
	blockedSession, blockedGrant := grant("mallory", 3)
	ticket := func(customer string, key ids.ID) (text string, issue func()) {
		text = auth.NewTicket()
		return text, func() {
			fake.Must(t, client.IssueTicket{Hash: auth.HashSession(text), Customer: customer,
				Subject: customer, Key: key})
		}
	}
	user, userID := key("alice", model.ScopeUser)
	full, _ := key("alice", model.ScopeLLMFull)
	read, _ := key("alice", model.ScopeLLMRead)
	revoked, id := key("alice", model.ScopeUser)
	fake.Must(t, client.RevokeKey{Customer: "alice", ID: id})
	blocked, blockedID := key("mallory", model.ScopeUser)
	ticketed, issue := ticket("alice", userID)
	blockedTicket, issueBlocked := ticket("mallory", blockedID)
	fake.Must(t, client.ChooseFree{Customer: "ella"})
	planned, _ := key("ella", model.ScopeUser)
	plannedFull, _ := key("ella", model.ScopeLLMFull)
	plannedRead, _ := key("ella", model.ScopeLLMRead)
	fake.Must(t, client.BlockCustomer{Customer: "mallory", By: "root"})
	return []kindOfCaller{
		{"nobody", "", "", nil}, {"USER", user, "", nil}, {"LLM_FULL", full, "", nil},
		{"LLM_READ", read, "", nil},
		{"revoked", revoked, "", nil}, {"key for other", user, "mallory", nil},
		{"sign-in", token("alice", false), "", nil},
		{"sign-in for other", token("alice", false), "mallory", nil},
		{"blocked key", blocked, "", nil}, {"blocked sign-in", token("mallory", false), "", nil},
		{"blocked admin", token("mallory", true), "alice", nil},
		{"session", session, "", open}, {"session for other", session, "mallory", open},
		{"blocked session", blockedSession, "", nil},
		{"grant", granted, "", nil}, {"grant for other", granted, "mallory", nil},
		{"blocked grant", blockedGrant, "", nil},
		{"ticket", ticketed, "", issue}, {"blocked ticket", blockedTicket, "", issueBlocked},
		{"admin", token("root", true), "", nil},
		{"admin for alice", token("root", true), "alice", nil},
		{"admin for blocked", token("root", true), "mallory", nil},
		{"admin for nobody", token("root", true), "carol", nil},
		{"USER with plan", planned, "", nil}, {"LLM_FULL with plan", plannedFull, "", nil},
		{"LLM_READ with plan", plannedRead, "", nil},
		{"sign-in with plan", token("ella", false), "", nil},
		{"admin for plan", token("root", true), "ella", nil},
	}
}

// kindsOfStrangers are the callers that an issuer vouches for.
func kindsOfStrangers(t *testing.T, s *Server, at *oidctest.Issuer) []kindOfCaller {
	t.Helper()
	token := func(subject string, roles ...string) string {
		return at.Token(t, subject, s.config.Clock.Now(), roles...)
	}
	return []kindOfCaller{{"stranger", token("carla"), "", nil},
		{"issuer's", token("alice"), "", nil},
		{"issuer's for other", token("alice"), "mallory", nil},
		{"issuer's blocked", token("mallory"), "", nil},
		{"issuer's admin for alice", token("root", "admin"), "alice", nil}}
}

// Every kind of caller calls every route. A cell is "ok" if the chain lets the request through,
// whatever is wrong with the request itself. Otherwise it names the refusal: no valid credential
// (401), the scope, a key instead of a sign-in, a block, no sign-up yet, or X-Customer-Ref. For the
// customer whose plan lacks the feature in the first column, it is the plan. The callers of an
// issuer call a server that has one; "-" is a route that it lacks.
func TestWhoMayCallWhat(t *testing.T) {
	s := newTestServer(t, func(config *Config) {
		config.NoRateLimits = true
		config.Plans = []byte(`[{"plan": "STARTER", "level": 0, "monthlyPrice": 0,
			"features": [], "limits": {}}]`)
	})
	at := oidctest.Start(t)
	beside := newTestServer(t, func(config *Config) {
		*config = s.config
		config.Metrics = nil
		config.OpenID = &OpenID{Issuer: at.URL, Audiences: []string{oidctest.Audience},
			ClientID: oidctest.Client, ClientSecret: oidctest.Secret, Egress: oidctest.Egress(t)}
	})
	go beside.openID.Run(t.Context())
	callers, strangers := kindsOfCallers(t, s), kindsOfStrangers(t, s, at)
	table := bytes.NewBufferString("\tfeature")
	for _, caller := range slices.Concat(callers, strangers) {
		fmt.Fprintf(table, "\t%s", caller.name)
	}
	has := map[operation.Route]bool{}
	for _, op := range beside.operations() {
		for _, route := range op.Routes {
			has[route] = true
		}
	}
	for _, op := range s.operations() {
		for _, route := range op.Routes {
			fmt.Fprintf(table, "\n%s %s\t%s", route.Method, route.Path,
				cmp.Or(string(op.Feature), "-"))
			for _, caller := range callers {
				table.WriteString("\t" + s.verdict(t, route, caller))
			}
			for _, caller := range strangers {
				verdict := "-"
				if has[route] {
					verdict = beside.verdict(t, route, caller)
				}
				table.WriteString("\t" + verdict)
			}
		}
	}
	table.WriteString("\n")
	golden(t, "access.txt", table.Bytes())
}

// TestStolenIdentitySignsOperatorsIn: the identity of one API server holds a key that signs
// operators in at all of them. Identities of other roles have no such key.
func TestStolenIdentitySignsOperatorsIn(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	authority, err := identity.NewAuthority("reef", now)
	if err != nil {
		t.Fatal(err)
	}
	of := func(node, role string) *identity.Identity {
		issued, err := authority.Issue(node, []string{role}, now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return issued
	}
	if err := PlaceSignInKey(dir, of("api-1", identity.APIServer).SignInKey); err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, func(config *Config) { config.DataDir = dir })
	route := operation.Route{Method: http.MethodGet, Path: "/api/admin/customers"}
	for _, role := range identity.Roles() {
		key := of("stolen", role).SignInKey
		if role != identity.APIServer {
			if key != nil {
				t.Errorf("the identity of a %s signs operators in", role)
			}
			continue
		}
		token, err := SignToken(key, "thief", true, s.config.Clock.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.verdict(t, route, kindOfCaller{name: role, credential: token}); got != "ok" {
			t.Errorf("who has stolen it is answered %q", got)
		}
	}
}

// verdict calls a route with an empty request.
func (s *Server) verdict(t *testing.T, route operation.Route, by kindOfCaller) string {
	t.Helper()
	if by.open != nil {
		by.open()
	}
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(route.Method)
	rc.Request.SetRequestURI(fill(route.Path, "unknown"))
	switch {
	case strings.HasPrefix(by.credential, "svc_ticket_"):
		rc.QueryArgs().Set("ticket", by.credential)
	case by.credential != "":
		rc.Request.Header.Set("Authorization", "Bearer "+by.credential)
	}
	if by.customer != "" {
		rc.Request.Header.Set("X-Customer-Ref", by.customer)
	}
	s.operators(&rc)
	var problem struct {
		Code   fault.Code
		Errors []struct{ Field string }
	}
	page := strings.HasPrefix(string(rc.Response.Header.ContentType()), "text/html")
	if status := rc.Response.StatusCode(); status >= 400 && !page {
		if err := json.Unmarshal(rc.Response.Body(), &problem); err != nil {
			t.Fatalf("%s: %d %v", rc.Path(), status, err)
		}
	}
	switch problem.Code {
	case fault.Unauthorized:
		return "401"
	case fault.ScopeRejected:
		return "scope"
	case fault.SignInOnly:
		return "sign-in"
	case fault.CustomerBlocked:
		return "blocked"
	case fault.FeatureNotInPlan:
		return "plan"
	case fault.CustomerRequired:
		return "sign-up"
	}
	if len(problem.Errors) > 0 && problem.Errors[0].Field == "X-Customer-Ref" {
		return "ref"
	}
	return "ok"
}
