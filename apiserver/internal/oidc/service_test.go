package oidc

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// backAt is where the example provider of zitadel/oidc lets browsers return to.
const backAt = "http://localhost:9999/auth/callback"

// realIssuer returns a running example provider of zitadel/oidc, and its client "web" to us.
func realIssuer(t *testing.T) (*Issuer, *Config) {
	t.Helper()
	name := os.Getenv("OIDC_ISSUER")
	if name == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("OIDC_ISSUER is not set")
		}
		t.Skip("OIDC_ISSUER is not set")
	}
	config := &Config{Issuer: name, Audiences: []string{"web"}, ClientID: "web",
		ClientSecret: "secret", Egress: oidctest.Egress(t), Clock: clock.System{},
		Logger: slog.New(slog.DiscardHandler)}
	issuer, err := New(*config)
	if err != nil {
		t.Fatal(err)
	}
	run(t, issuer)
	return issuer, config
}

// signIn fills in the issuer's own page in a new browser, and returns the code it comes back with.
func signIn(t *testing.T, issuer *Issuer, asked Asked) (code string) {
	t.Helper()
	to, err := issuer.AuthorizeURL(t.Context(), asked, backAt)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), backAt) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	page, err := browser.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(page.Body)
	_ = page.Body.Close() // it was only read
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`action="([^"]+)"[\s\S]*name="id" value="([^"]+)"`).
		FindSubmatch(text)
	if form == nil {
		t.Fatalf("no form: %s %s", page.Status, text)
	}
	action, err := page.Request.URL.Parse(string(form[1]))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.PostForm(action.String(), url.Values{"id": {string(form[2])},
		"username": {"test-user@localhost"}, "password": {"verysecure"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // it was not read
	back, err := answer.Location()
	if err != nil || back.Query().Get("state") != asked.State {
		t.Fatalf("%s %v: %v", answer.Status, back, err)
	}
	return back.Query().Get("code")
}

// TestARealIssuer: discovery, a browser's sign-in and the check of a call's token hold at an issuer
// that is not ours. It gives the e-mail address at its userinfo endpoint alone.
func TestARealIssuer(t *testing.T) {
	issuer, config := realIssuer(t)
	asked := NewAsked()
	code := signIn(t, issuer, asked)
	who, err := issuer.Exchange(t.Context(), code, asked, backAt)
	if err != nil || who.Subject != "id1" || who.Email != "test-user@zitadel.ch" || who.Admin {
		t.Fatalf("%+v, %v", who, err)
	}
	if _, err := issuer.Exchange(t.Context(), code, asked, backAt); fault.CodeOf(err) !=
		fault.Unauthorized {
		t.Errorf("the code is taken twice: %v", err)
	}
	for what, change := range map[string]func(*Asked){
		"verifier": func(a *Asked) { a.Verifier = NewAsked().Verifier },
		"nonce":    func(a *Asked) { a.Nonce = NewAsked().Nonce },
	} {
		asked := NewAsked()
		code := signIn(t, issuer, asked)
		change(&asked)
		if _, err := issuer.Exchange(t.Context(), code, asked, backAt); fault.CodeOf(err) !=
			fault.Unauthorized {
			t.Errorf("another %s is taken: %v", what, err)
		}
	}

	asked = NewAsked()
	at, err := issuer.places(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := issuer.redeem(t.Context(), at, url.Values{
		"grant_type": {"authorization_code"}, "code": {signIn(t, issuer, asked)},
		"redirect_uri": {backAt}, "code_verifier": {asked.Verifier}})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := issuer.Check(t.Context(), token); err != nil || who.Subject != "id1" {
		t.Errorf("a call: %+v, %v", who, err)
	}
	config.Audiences = []string{"another"}
	other, err := New(*config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Check(t.Context(), token); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("a call with a token for another audience: %v", err)
	}
}
