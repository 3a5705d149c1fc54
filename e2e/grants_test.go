package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// agent is a program that asks to call the real service, with a standard OAuth library.
type agent struct {
	*service
	oauth2.Config
	browser  *http.Client
	verifier string
}

const agentsAddress = "http://127.0.0.1:9/back"

// newAgent registers a program, and an account whose browser it uses.
func newAgent(t *testing.T, s *service) *agent {
	t.Helper()
	account := map[string]any{"email": "ann@shop.example", "password": "correct horse battery",
		"customerRef": "ann"}
	if err := s.Admin().Call(t.Context(), "POST", "/api/admin/accounts", nil, account,
		nil); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{service: s, verifier: oauth2.GenerateVerifier(), browser: &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
	var made struct {
		ID string `json:"client_id"`
	}
	nobody := suite.Client{Server: s.Client.Server}
	if err := nobody.Call(t.Context(), "POST", "/oauth/register", nil, map[string]any{
		"client_name": "agent", "redirect_uris": []string{agentsAddress}}, &made); err != nil {
		t.Fatal(err)
	}
	a.Config = oauth2.Config{ClientID: made.ID, RedirectURL: agentsAddress,
		Scopes: []string{"LLM_READ"}}
	a.find()
	return a
}

// find updates the service's address, which changes with each process.
func (a *agent) find() {
	at := a.service.Client.Server
	a.Endpoint = oauth2.Endpoint{AuthURL: at + "/oauth/authorize", TokenURL: at + "/oauth/token"}
}

var hidden = regexp.MustCompile(`name="token" value="([^"]+)"`)

// show makes a request as the browser, and returns the page or its redirect.
func (a *agent) show(method, address string, form url.Values) (page, to string) {
	a.T.Helper()
	request, err := http.NewRequestWithContext(a.T.Context(), method, address,
		strings.NewReader(form.Encode()))
	if err != nil {
		a.T.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := a.browser.Do(request)
	if err != nil {
		a.T.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		a.T.Fatalf("%s: %d %v %s", address, response.StatusCode, err, body)
	}
	return string(body), response.Header.Get("Location")
}

// token returns the token of a page's forms.
func (a *agent) token(page string) string {
	a.T.Helper()
	found := hidden.FindStringSubmatch(page)
	if found == nil {
		a.T.Fatalf("no form in %s", page)
	}
	return found[1]
}

// allowed is the grant that ann gives in her browser.
func (a *agent) allowed() *oauth2.Token {
	a.T.Helper()
	asked := a.AuthCodeURL("state", oauth2.S256ChallengeOption(a.verifier))
	page, to := a.show(http.MethodGet, asked, nil)
	if to != "" {
		server := a.service.Client.Server
		page, _ = a.show(http.MethodGet, server+to, nil)
		at, err := url.Parse(to)
		if err != nil {
			a.T.Fatal(err)
		}
		_, to = a.show(http.MethodPost, server+"/sign-in", url.Values{"token": {a.token(page)},
			"email": {"ann@shop.example"}, "password": {"correct horse battery"},
			"next": {at.Query().Get("next")}})
		page, _ = a.show(http.MethodGet, server+to, nil)
	}
	at, err := url.Parse(asked)
	if err != nil {
		a.T.Fatal(err)
	}
	form := at.Query()
	form.Set("token", a.token(page))
	form.Set("decision", "LLM_READ")
	_, to = a.show(http.MethodPost, a.Endpoint.AuthURL, form)
	said, err := url.Parse(to)
	if err != nil || said.Query().Get("iss") != a.service.Client.Server {
		a.T.Fatalf("the answer is %q, %v", to, err)
	}
	return suite.Must(a.Exchange(a.T.Context(), said.Query().Get("code"),
		oauth2.VerifierOption(a.verifier)))(a.T)
}

// refresh sends a refresh token until there is an answer: a process that died may have accepted it.
func (a *agent) refresh(ctx context.Context, refresh string) (*oauth2.Token, error) {
	for {
		got, err := a.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
		var refused *oauth2.RetrieveError
		if err == nil || ctx.Err() != nil ||
			errors.As(err, &refused) && refused.ErrorCode != "" {
			return got, err
		}
		select {
		case <-a.p.Ended():
			a.start()
			a.find()
		default:
		}
	}
}

// TestGrantsSurviveKills kills the process repeatedly while a program refreshes its tokens. Each
// token keeps its answer, however often it is sent. A token from long ago ends the grant, for good.
func TestGrantsSurviveKills(t *testing.T) {
	t.Parallel()
	s := newService(t, newWeb(t, synthweb.Config{}), suite.Fast()...)
	a := newAgent(t, s)
	held := a.allowed()
	who := s.Client
	calls := func(token string) string {
		t.Helper()
		who.Server, who.Token = s.Client.Server, token
		return suite.CodeOf(who.Call(t.Context(), "GET", "/api/key/whoami", nil, nil, nil))
	}
	ctx, first := suite.Within(t, suite.Patience), held
	for range 3 {
		for range 5 {
			held = suite.Must(a.refresh(ctx, held.RefreshToken))(t)
		}
		lost := held.RefreshToken
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			// Nobody reads this answer.
			_, _ = a.TokenSource(ctx, &oauth2.Token{RefreshToken: lost}).Token()
		}()
		s.p.Kill()
		<-asked
		<-s.p.Ended()
		held = suite.Must(a.refresh(ctx, lost))(t)
		again := suite.Must(a.refresh(ctx, lost))(t)
		if again.RefreshToken != held.RefreshToken || again.AccessToken != held.AccessToken {
			t.Error("one refresh token got two answers")
		}
		if code := calls(held.AccessToken); code != "" {
			t.Errorf("the access token: %s", code)
		}
	}
	if _, err := a.refresh(ctx, first.RefreshToken); err == nil {
		t.Error("a refresh token of long before is good")
	}
	s.p.Kill()
	<-s.p.Ended()
	s.start()
	a.find()
	if code := calls(held.AccessToken); code != "unauthorized" {
		t.Errorf("what was stolen goes on: %q", code)
	}
	newer := a.allowed()
	s.p.Kill()
	<-s.p.Ended()
	s.start()
	if code := calls(newer.AccessToken); code != "" {
		t.Errorf("a new grant is lost: %s", code)
	}
}
