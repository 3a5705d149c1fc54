package signin_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

const loopback = "http://127.0.0.1:4711/back?of=agent"

// agent is a program and the browser of ann, who has signed in.
type agent struct {
	*browser
	oauth2.Config
	verifier string
	state    string
}

// register returns the answer to a program's registration.
func register(t *testing.T, s *apitest.Server, body string) apitest.Answer {
	t.Helper()
	return s.Call(t, apitest.Scenario{Do: "POST /oauth/register", Body: body})
}

func newAgent(t *testing.T, s *apitest.Server) *agent {
	t.Helper()
	a := &agent{browser: newBrowser(t, s), verifier: oauth2.GenerateVerifier(), state: "a state"}
	a.CheckRedirect = func(to *http.Request, _ []*http.Request) error {
		if "http://"+to.URL.Host != s.URL {
			return http.ErrUseLastResponse
		}
		return nil
	}
	made := register(t, s, `{"client_name":"Agent <b>","redirect_uris":["`+
		strings.Replace(loopback, ":4711", "", 1)+`","https://agent.example/back"],
		"grant_types":["authorization_code"],"software_id":"x"}`)
	if made.Status != 201 {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	a.Config = oauth2.Config{ClientID: made.Text("client_id"), RedirectURL: loopback,
		Scopes: []string{"LLM_FULL"}, Endpoint: oauth2.Endpoint{
			AuthURL: s.URL + "/oauth/authorize", TokenURL: s.URL + "/oauth/token"}}
	return a
}

// signIn signs ann in on the page at path.
func (a *agent) signIn(path string) (page string) {
	a.t.Helper()
	page = a.get(path, 200)
	form := url.Values{"token": {a.token(page)}, "email": {email}, "password": {password}}
	if _, rest, found := strings.Cut(page, `name="next" value="`); found {
		to, _, _ := strings.Cut(rest, `"`)
		form.Set("next", strings.ReplaceAll(to, "&amp;", "&"))
	}
	return a.post("/sign-in", form, 200)
}

// question is the path of the agent's authorization request.
func (a *agent) question(more ...oauth2.AuthCodeOption) string {
	options := append([]oauth2.AuthCodeOption{oauth2.S256ChallengeOption(a.verifier)}, more...)
	return strings.TrimPrefix(a.AuthCodeURL(a.state, options...), a.s.URL)
}

// decide answers an authorization request, and returns what the program receives.
func (a *agent) decide(question, decision string) url.Values {
	a.t.Helper()
	page := a.get(question, 200)
	_, query, _ := strings.Cut(question, "?")
	form, err := url.ParseQuery(query)
	if err != nil {
		a.t.Fatal(err)
	}
	form.Set("token", a.token(page))
	form.Set("decision", decision)
	return a.answer("POST", "/oauth/authorize", form)
}

// answer returns what the agent receives at its redirect address.
func (a *agent) answer(method, path string, form url.Values) url.Values {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.s.URL+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	if method == "POST" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := a.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = response.Body.Close()
	to, rest, _ := strings.Cut(response.Header.Get("Location"), "?")
	if response.StatusCode != 303 || to != "http://127.0.0.1:4711/back" {
		a.t.Fatalf("%d, led to %q", response.StatusCode, response.Header.Get("Location"))
	}
	said, err := url.ParseQuery(rest)
	if err != nil || said.Get("state") != a.state || said.Get("iss") != a.s.URL ||
		said.Get("of") != "agent" {
		a.t.Errorf("the answer is %v, %v", said, err)
	}
	return said
}

// refusedWith returns the OAuth error code.
func refusedWith(err error) string {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return refused.ErrorCode
	}
	return ""
}

// allowed returns the token of a complete authorization.
func (a *agent) allowed(decision string) *oauth2.Token {
	a.t.Helper()
	code := a.decide(a.question(), decision).Get("code")
	token, err := a.Exchange(a.t.Context(), code, oauth2.VerifierOption(a.verifier))
	if err != nil {
		a.t.Fatal(err)
	}
	return token
}

// calls makes a call with a token.
func (a *agent) calls(token, do string, status int) apitest.Answer {
	a.t.Helper()
	answer := a.s.Call(a.t, apitest.Scenario{As: token, Do: do})
	if answer.Status != status {
		a.t.Errorf("%s: %d %s", do, answer.Status, answer.Body)
	}
	return answer
}

const whoAmI = "GET /api/key/whoami"

// An agent gets from the metadata to a call with a standard library: registration, sign-in,
// consent, tokens, refresh, revocation.
func TestTheWholeWayOfAnAgent(t *testing.T) {
	s := start(t)
	a := newAgent(t, s)
	said := s.Call(t, apitest.Scenario{Do: "GET /.well-known/oauth-authorization-server"})
	for member, want := range map[string]string{"issuer": s.URL,
		"authorization_endpoint": a.Endpoint.AuthURL, "token_endpoint": a.Endpoint.TokenURL,
		"registration_endpoint":              s.URL + "/oauth/register",
		"revocation_endpoint":                s.URL + "/oauth/revoke",
		"code_challenge_methods_supported.0": "S256"} {
		if said.Text(member) != want {
			t.Errorf("%s is %q", member, said.Text(member))
		}
	}
	refused := a.calls("svc_access_none", whoAmI, 401).Header.Get("WWW-Authenticate")
	metadata := strings.TrimSuffix(strings.TrimPrefix(refused,
		`Bearer resource_metadata="`+s.URL), `"`)
	said = s.Call(t, apitest.Scenario{Do: "GET " + metadata})
	if said.Text("resource") != s.URL || said.Text("authorization_servers.0") != s.URL {
		t.Errorf("the resource says %s", said.Body)
	}
	question := a.question(oauth2.SetAuthURLParam("resource", s.URL+"/mcp"),
		oauth2.SetAuthURLParam("prompt", "consent"))
	page := a.signIn(question)
	a.wants(page, "Agent &lt;b&gt;")
	a.wants(page, "<code>127.0.0.1:4711</code>")
	a.wants(page, "Allow everything")
	code := a.decide(question, "LLM_FULL").Get("code")
	token, err := a.Exchange(t.Context(), code, oauth2.VerifierOption(a.verifier),
		oauth2.SetAuthURLParam("resource", s.URL))
	if err != nil {
		t.Fatal(err)
	}
	if token.TokenType != "Bearer" || token.Extra("scope") != "LLM_FULL" ||
		token.Extra("expires_in") != float64(900) {
		t.Errorf("the token is %+v, of %v", token, token.Extra("scope"))
	}
	who := a.calls(token.AccessToken, whoAmI, 200)
	if who.Text("customerRef") != "alice" || who.Text("scope") != "LLM_FULL" ||
		who.Text("name") != "Agent <b>" {
		t.Errorf("it calls as %s", who.Body)
	}
	a.calls(token.AccessToken, "PUT /api/key/generate?name=n&scope=USER", 403)
	a.calls(token.AccessToken, "POST /api/auth/sign-out", 403)
	a.calls(token.AccessToken, "GET /api/admin/accounts", 401)
	token.Expiry = time.Unix(1, 0) // the library refreshes expired tokens
	newer, err := a.TokenSource(t.Context(), token).Token()
	if err != nil || newer.RefreshToken == token.RefreshToken {
		t.Fatalf("%+v, %v", newer, err)
	}
	a.calls(token.AccessToken, whoAmI, 401)
	a.calls(newer.AccessToken, whoAmI, 200)
	listed := a.calls(newer.AccessToken, "GET /api/auth/grants", 200)
	if listed.Text("grants.0.name") != "Agent <b>" || listed.Text("grants.0.scope") != "LLM_FULL" {
		t.Errorf("the grants are %s", listed.Body)
	}
	revoke := url.Values{"token": {newer.RefreshToken}, "client_id": {"another"}}
	a.form("/oauth/revoke", revoke, 200)
	a.calls(newer.AccessToken, whoAmI, 200)
	revoke.Set("client_id", a.ClientID)
	a.form("/oauth/revoke", revoke, 200)
	a.form("/oauth/revoke", revoke, 200)
	a.calls(newer.AccessToken, whoAmI, 401)
	if _, err := a.refresh(newer); refusedWith(err) != "invalid_grant" {
		t.Errorf("refreshed behind its end: %v", err)
	}
	s.Run(t, apitest.Scenario{Name: "the trail", As: apitest.Admin,
		Do: "GET /api/admin/audit?customer=alice", Status: 200, Has: map[string]any{
			"items.0.action": "svc_revoke_token", "items.0.changes.0.before.name": "Agent <b>",
			"items.1.action": "svc_token", "items.1.changes.0.after.scope": "LLM_FULL",
			"items.2.action": "consent", "items.2.actor.subject": "alice"}})
}

// form posts a form as a program does.
func (a *agent) form(path string, form url.Values, status int) apitest.Answer {
	a.t.Helper()
	answer := a.s.Call(a.t, apitest.Scenario{Do: "POST " + path, Body: form.Encode(),
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
	if answer.Status != status || answer.Header.Get("Cache-Control") != "no-store" {
		a.t.Errorf("%s: %d %v %s", path, answer.Status, answer.Header, answer.Body)
	}
	return answer
}

// refresh makes the library use a refresh token.
func (a *agent) refresh(token *oauth2.Token) (*oauth2.Token, error) {
	return a.TokenSource(context.Background(),
		&oauth2.Token{RefreshToken: token.RefreshToken}).Token()
}

// An agent may do only what was granted, even if it asked for more.
func TestAgentsMayDoWhatWasGranted(t *testing.T) {
	a := newAgent(t, start(t))
	a.signIn(a.question())
	token := a.allowed("LLM_READ")
	if token.Extra("scope") != "LLM_READ" {
		t.Errorf("the scope is %v", token.Extra("scope"))
	}
	a.calls(token.AccessToken, "GET /api/scraper/group/list", 200)
	a.calls(token.AccessToken, "PUT /api/scraper/group", 403)
	a.Scopes = nil
	if said := a.decide(a.question(), "LLM_FULL"); said.Get("error") != "access_denied" {
		t.Errorf("a form that grants more than was asked for: %v", said)
	}
	if said := a.decide(a.question(), ""); said.Get("error") != "access_denied" {
		t.Errorf("refused: %v", said)
	}
	a.s.Clock.Advance(15*time.Minute - time.Millisecond)
	a.calls(token.AccessToken, whoAmI, 200)
	a.s.Clock.Advance(time.Millisecond)
	a.calls(token.AccessToken, whoAmI, 401)
	token, err := a.refresh(token)
	if err != nil {
		t.Fatal(err)
	}
	a.s.Client.Must(t, client.BlockCustomer{Customer: "alice", By: "root"})
	a.calls(token.AccessToken, whoAmI, 403)
	if _, err := a.refresh(token); refusedWith(err) != "invalid_grant" {
		t.Errorf("of a blocked customer: %v", err)
	}
}

// If a code cannot be sent safely, nothing is sent, and the page says so.
func TestQuestionsThatGoNowhere(t *testing.T) {
	a := newAgent(t, start(t))
	a.signIn(a.question())
	param := oauth2.SetAuthURLParam
	for name, question := range map[string]string{
		"another address":    a.question(param("redirect_uri", "https://evil.example/back")),
		"another path":       a.question(param("redirect_uri", "http://127.0.0.1:4711/other")),
		"another query":      a.question(param("redirect_uri", "http://127.0.0.1:4711/back")),
		"another loopback":   a.question(param("redirect_uri", "http://localhost:4711/back?of=agent")),
		"a user in it":       a.question(param("redirect_uri", "http://127.0.0.1:80@evil.example/back?of=agent")),
		"no address":         a.question(param("redirect_uri", "")),
		"another port":       a.question(param("redirect_uri", "https://agent.example:444/back")),
		"no program":         a.question(param("client_id", "")),
		"a made-up program":  a.question(param("client_id", "svc_client_e30.AAAA")),
		"a changed program":  a.question(param("client_id", a.ClientID+"A")),
		"a document's place": a.question(param("client_id", "https://agent.example/client.json")),
	} {
		t.Run(name, func(t *testing.T) {
			if page := a.get(question, 400); strings.Contains(page, "<form") {
				t.Errorf("something can be granted: %s", page)
			}
		})
	}
	a.s.Clock.Advance(400*24*time.Hour - time.Second)
	a.signIn(a.question())
	a.get(a.question(), 200)
	a.s.Clock.Advance(time.Second)
	a.get(a.question(), 400)
}

// An invalid request is explained to the person. Anyone may have registered the address, so nobody
// is redirected there without consent.
func TestQuestionsThatAreRefused(t *testing.T) {
	a := newAgent(t, start(t))
	a.signIn(a.question())
	param := oauth2.SetAuthURLParam
	for want, questions := range map[string][]string{
		"unsupported_response_type": {a.question(param("response_type", "token")),
			a.question(param("response_type", ""))},
		"invalid_request": {a.question(param("code_challenge", "")),
			a.question(param("code_challenge", "short")),
			a.question(param("code_challenge_method", "plain")),
			a.question(param("code_challenge_method", ""))},
		"invalid_scope": {a.question(param("scope", "USER")),
			a.question(param("scope", "LLM_READ admin"))},
		"invalid_target": {a.question(param("resource", "https://other.example")),
			a.question(param("resource", a.s.URL+"/mcp/x"))},
	} {
		for _, question := range questions {
			a.wants(a.get(question, 400), want+": ")
		}
	}
}

// Invalid codes and refresh tokens get no tokens.
func TestTokensAreRefused(t *testing.T) {
	a := newAgent(t, start(t))
	a.signIn(a.question())
	other := newAgent(t, a.s)
	code := func(change func(url.Values)) url.Values {
		form := url.Values{"grant_type": {"authorization_code"}, "client_id": {a.ClientID},
			"code":          {a.decide(a.question(), "LLM_READ").Get("code")},
			"code_verifier": {a.verifier}, "redirect_uri": {loopback}}
		change(form)
		return form
	}
	refresh := func(change func(url.Values)) url.Values {
		form := url.Values{"grant_type": {"refresh_token"}, "client_id": {a.ClientID},
			"refresh_token": {a.allowed("LLM_READ").RefreshToken}}
		change(form)
		return form
	}
	set := func(name, value string) func(url.Values) {
		return func(form url.Values) { form.Set(name, value) }
	}
	late := code(func(url.Values) {})
	a.s.Clock.Advance(time.Minute)
	for name, c := range map[string]struct {
		form   url.Values
		status int
		want   string
	}{
		"wrong verifier": {code(set("code_verifier", strings.Repeat("x", 43))), 400,
			"invalid_grant"},
		"no verifier": {code(set("code_verifier", "")), 400, "invalid_request"},
		"short verifier": {code(set("code_verifier", strings.Repeat("x", 42))), 400,
			"invalid_request"},
		"long verifier": {code(set("code_verifier", strings.Repeat("x", 129))), 400,
			"invalid_request"},
		"foreign redirect": {code(set("redirect_uri", "https://agent.example/back")), 400,
			"invalid_grant"},
		"another port": {code(set("redirect_uri", "http://127.0.0.1:9/back?of=agent")), 400,
			"invalid_grant"},
		"wrong resource": {code(set("resource", "https://other.example")), 400,
			"invalid_target"},
		"foreign program": {code(set("client_id", other.ClientID)), 400, "invalid_grant"},
		"no program":      {code(set("client_id", "")), 401, "invalid_client"},
		"no code":         {code(set("code", "")), 400, "invalid_grant"},
		"made-up code":    {code(set("code", "svc_code_x")), 400, "invalid_grant"},
		"expired code":    {late, 400, "invalid_grant"},
		"another grant":   {code(set("grant_type", "password")), 400, "unsupported_grant_type"},
		"more scope":      {refresh(set("scope", "LLM_FULL")), 400, "invalid_scope"},
		"refresh elsewhere": {refresh(set("resource", "https://other.example")), 400,
			"invalid_target"},
		"foreign refresh": {refresh(set("client_id", other.ClientID)), 400, "invalid_grant"},
		"made-up refresh": {refresh(set("refresh_token", "x")), 400, "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := a.form("/oauth/token", c.form, c.status)
			if answer.Text("error") != c.want || answer.Text("error_description") == "" ||
				answer.Text("access_token") != "" {
				t.Errorf("%s, want %s", answer.Body, c.want)
			}
		})
	}
	good := refresh(set("scope", "LLM_READ"))
	first := a.form("/oauth/token", good, 200)
	if again := a.form("/oauth/token", good, 200); again.Text("refresh_token") !=
		first.Text("refresh_token") || again.Text("access_token") != first.Text("access_token") {
		t.Error("an answer that was lost is not given again")
	}
	a.calls(first.Text("access_token"), whoAmI, 200)
	a.s.Clock.Advance(30 * time.Second)
	a.form("/oauth/token", good, 400)
	a.calls(first.Text("access_token"), whoAmI, 401)
	used := code(func(url.Values) {})
	made := a.form("/oauth/token", used, 200)
	a.form("/oauth/token", used, 400)
	a.calls(made.Text("access_token"), whoAmI, 401)
}

// Grants end on a page, through the API, and by signing out everywhere.
func TestGrantsAreEnded(t *testing.T) {
	a := newAgent(t, start(t))
	a.signIn(a.question())
	var made []*oauth2.Token
	for _, scope := range []string{"LLM_READ", "LLM_READ", "LLM_FULL"} {
		made = append(made, a.allowed(scope))
		a.s.Clock.Advance(time.Second)
	}
	first, second, third := made[0], made[1], made[2]
	page := a.get("/sign-in/programs", 200)
	a.wants(page, "everything but API keys")
	_, rest, _ := strings.Cut(page, `name="grant" value="`)
	id, _, _ := strings.Cut(rest, `"`)
	form := url.Values{"grant": {id}, "token": {"another"}}
	a.wants(a.post("/sign-in/programs", form, 400), "The form was too old")
	form.Set("token", a.token(page))
	a.post("/sign-in/programs", form, 200)
	a.post("/sign-in/programs", form, 200) // repeated
	a.calls(first.AccessToken, whoAmI, 401)
	listed := a.calls(second.AccessToken, "GET /api/auth/grants", 200)
	end := "DELETE /api/auth/grants/" + listed.Text("grants.0.id")
	a.calls(second.AccessToken, end, 403) // it has read access only
	a.calls(a.s.Secrets[apitest.Other], end, 400)
	a.calls(a.s.Secrets[apitest.User], end, 204)
	a.calls(second.AccessToken, whoAmI, 401)
	a.calls(third.AccessToken, whoAmI, 200)
	page = a.get("/sign-in", 200)
	a.post("/sign-out", url.Values{"token": {a.token(page)}, "everywhere": {"yes"}}, 200)
	a.calls(third.AccessToken, whoAmI, 401)
	a.wants(a.get("/sign-in/programs", 200), "<h1>Sign in</h1>")
	a.wants(a.post("/sign-in/programs", form, 200), "<h1>Sign in</h1>")
}

// The consent form must come from this browser, from someone who is still signed in. No link
// redirects from the sign-in page to other sites.
func TestConsentIsAPersons(t *testing.T) {
	a := newAgent(t, start(t))
	a.wants(a.signIn("/sign-in?next=https%3A%2F%2Fevil.example%2Foauth%2Fauthorize"), "You are signed in")
	a.get(a.question(), 200)
	_, query, _ := strings.Cut(a.question(), "?")
	form, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	form.Set("decision", "LLM_FULL")
	form.Set("token", "another")
	a.wants(a.post("/oauth/authorize", form, 400), "The form was too old")
	a.s.Run(t, apitest.Scenario{Name: "another site", Do: "POST /oauth/authorize",
		Body: form.Encode(), Header: map[string]string{"Sec-Fetch-Site": "cross-site",
			"Content-Type": "application/x-www-form-urlencoded"}, Status: 403,
		Code: "cross_site_refused"})
	page := a.get("/sign-in", 200)
	a.post("/sign-out", url.Values{"token": {a.token(page)}}, 200)
	a.wants(a.post("/oauth/authorize", form, 200), "<h1>Sign in</h1>")
}

// Behind a proxy the issuer of tokens is the public address, whatever Host a call has. Otherwise a
// program could be made to trust another issuer.
func TestTheIssuerIsThePublicOne(t *testing.T) {
	s := start(t, mailing, func(c *apiserver.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	header := map[string]string{"Host": "evil.example", "X-Forwarded-For": "192.0.2.9",
		"X-Forwarded-Proto": "https"}
	said := s.Call(t, apitest.Scenario{Do: "GET /.well-known/oauth-authorization-server",
		Header: header})
	if said.Text("issuer") != public || said.Text("token_endpoint") != public+"/oauth/token" {
		t.Errorf("the metadata says %s", said.Body)
	}
	refused := s.Call(t, apitest.Scenario{Do: whoAmI, Header: header})
	want := `Bearer resource_metadata="` + public + `/.well-known/oauth-protected-resource"`
	if got := refused.Header.Get("WWW-Authenticate"); got != want {
		t.Errorf("a call without a credential gets %q, want %q", got, want)
	}
}
