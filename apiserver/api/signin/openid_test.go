package signin_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// atIssuer starts a server with sign-in at an issuer. The subject "chief" is listed as an admin.
func atIssuer(t *testing.T) (*apitest.Server, *oidctest.Issuer) {
	t.Helper()
	at := oidctest.Start(t)
	return apitest.Start(t, func(c *apiserver.Config) {
		c.OpenID = &apiserver.OpenID{Issuer: at.URL, Audiences: []string{oidctest.Audience},
			Admins: []string{"chief"}, ClientID: oidctest.Client, ClientSecret: oidctest.Secret,
			Egress: oidctest.Egress(t)}
	}), at
}

// visitor is the browser of a person. It does not follow redirects on its own.
type visitor struct {
	t      *testing.T
	s      *apitest.Server
	client *http.Client
}

// seen is the answer that a browser got.
type seen struct {
	status   int
	body, to string
}

func newVisitor(t *testing.T, s *apitest.Server) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, s, &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
}

func (b *visitor) do(method, path string, form url.Values) seen {
	b.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = b.s.URL + path
	}
	request, err := http.NewRequestWithContext(context.Background(), method, path,
		strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return seen{response.StatusCode, string(body), response.Header.Get("Location")}
}

// begin redirects the browser to the issuer.
func (b *visitor) begin(next string) string {
	b.t.Helper()
	got := b.do("GET", "/sign-in/openid?"+url.Values{"next": {next}}.Encode(), nil)
	if got.status != http.StatusSeeOther {
		b.t.Fatalf("begin: %d %s", got.status, got.body)
	}
	return got.to
}

// signUp fills in the form of the first sign-in.
func (b *visitor) signUp(first string) seen {
	b.t.Helper()
	page := b.do("GET", "/sign-in/openid/sign-up", nil)
	token := formToken.FindStringSubmatch(page.body)
	if token == nil {
		b.t.Fatalf("sign-up: %d %s", page.status, page.body)
	}
	return b.do("POST", "/sign-in/openid/sign-up", url.Values{"token": {token[1]},
		"firstname": {first}, "lastname": {"S"}, "agree": {"yes"}})
}

// wants checks an answer.
func (b *visitor) wants(what string, got seen, status int, text string) {
	b.t.Helper()
	if got.status != status || !strings.Contains(got.body+got.to, text) {
		b.t.Errorf("%s: %d %q, want %d and %q\n%s", what, got.status, got.to, status, text,
			got.body)
	}
}

// A person signs in at the issuer, signs up the first time, and returns to the original page. The
// issuer's keys change meanwhile. Signing out on all devices ends every session.
func TestPeopleSignInAtAnIssuer(t *testing.T) {
	s, at := atIssuer(t)
	b := newVisitor(t, s)
	b.wants("the page", b.do("GET", "/sign-in", nil), 200, `href="/sign-in/openid"`)
	if page := b.do("GET", "/sign-in", nil); strings.Contains(page.body, "password\"") {
		t.Errorf("the page asks for a password: %s", page.body)
	}
	back := at.SignIn(t, b.begin("/portal/runs"), "carla", s.Clock.Now(), nil)
	b.wants("a stranger", b.do("GET", back, nil), 303, "/sign-in/openid/sign-up")
	b.wants("no name", b.signUp(" "), 400, "first and a last name")
	b.wants("not signed in yet", b.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
	b.wants("signs up", b.signUp("Carla"), 303, "/portal/runs")
	b.wants("who", b.do("GET", "/api/key/whoami", nil), 200, `"customerRef":"carla"`)
	b.wants("profile", b.do("GET", "/api/customer", nil), 200, `"email":"carla@shop.test"`)
	b.wants("the portal", b.do("GET", "/portal", nil), 200, "<script")
	b.wants("no admin", b.do("GET", "/api/admin/status", nil), 401, "unauthorized")

	at.Rotate(t, jose.RS256)
	s.Clock.Advance(time.Minute)
	other := newVisitor(t, s)
	back = at.SignIn(t, other.begin(""), "carla", s.Clock.Now(), nil)
	other.wants("again", other.do("GET", back, nil), 303, "/portal")
	other.wants("everywhere", other.do("POST", "/api/auth/sign-out-everywhere", nil), 204, "")
	b.wants("ended", b.do("GET", "/api/key/whoami", nil), 401, "unauthorized")

	chief := newVisitor(t, s)
	back = at.SignIn(t, chief.begin(""), "chief", s.Clock.Now(), nil)
	chief.wants("a stranger", chief.do("GET", back, nil), 303, "sign-up")
	chief.wants("signs up", chief.signUp("Chief"), 303, "/portal")
	chief.wants("an admin", chief.do("GET", "/api/admin/status", nil), 200, "")
	chief.wants("the trail", chief.do("GET", "/api/admin/audit", nil), 200, "sign-in")
}

// An invalid answer signs nobody in, and the page explains why.
func TestIssuersAnswersHaveToHold(t *testing.T) {
	s, at := atIssuer(t)
	claim := func(name string, value any) func(map[string]any) {
		return func(claims map[string]any) { maps.Copy(claims, map[string]any{name: value}) }
	}
	past := s.Clock.Now().Add(-2 * time.Minute)
	for name, c := range map[string]struct {
		change func(map[string]any)
		status int
		says   string
	}{
		"another nonce":      {claim("nonce", "another"), 401, "another sign-in"},
		"no nonce":           {claim("nonce", nil), 401, "another sign-in"},
		"another audience":   {claim("aud", oidctest.Audience), 401, "another audience"},
		"audience and party": {claim("aud", []string{"x", oidctest.Client}), 401, "another client"},
		"another issuer":     {claim("iss", "https://id.test"), 401, "another issuer"},
		"expired":            {claim("exp", past.Unix()), 401, "expired"},
		"not verified":       {claim("email_verified", false), 403, "verified no"},
		"no address":         {claim("email", nil), 403, "verified no"},
		"no address at all":  {claim("email", "Carla <carla@shop.test>"), 403, "verified no"},
		"the operator":       {claim("sub", "self"), 401, "own"},
	} {
		b := newVisitor(t, s)
		back := at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), c.change)
		b.wants(name, b.do("GET", back, nil), c.status, c.says)
		b.wants(name, b.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
	}
	// the issuer returns dora's address only beside the token
	dora := newVisitor(t, s)
	dora.wants("told elsewhere", dora.do("GET", at.SignIn(t, dora.begin(""), "dora",
		s.Clock.Now(), claim("email", nil)), nil), 303, "sign-up")
	b := newVisitor(t, s)
	back := at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), claim("exp",
		s.Clock.Now().Add(-30*time.Second).Unix()))
	b.wants("within the leeway", b.do("GET", back, nil), 303, "sign-up")
}

// A code is valid only in the browser that asked for it, once, within ten minutes.
func TestSignInsAreBoundToTheirBrowser(t *testing.T) {
	s, at := atIssuer(t)
	b, other := newVisitor(t, s), newVisitor(t, s)
	back := at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil)
	other.wants("another browser", other.do("GET", back, nil), 400, "not begun in this browser")
	other.begin("")
	other.wants("another state", other.do("GET", back, nil), 400, "not begun in this browser")
	forged := regexp.MustCompile(`state=[^&]*`).ReplaceAllString(back, "state=forged")
	b.wants("a forged state", b.do("GET", forged, nil), 400, "not begun in this browser")
	mixed := regexp.MustCompile(`iss=[^&]*`).ReplaceAllString(back, "iss=https%3A%2F%2Fid.test")
	own, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookies := b.client.Jar.Cookies(own)
	b.wants("another issuer's", b.do("GET", mixed, nil), 401, "another identity provider")
	b.wants("a mixed one is used up", b.do("GET", back, nil), 400, "not begun in this browser")
	b.client.Jar.SetCookies(own, cookies)
	b.wants("its own", b.do("GET", back, nil), 303, "sign-up")
	b.client.Jar.SetCookies(own, cookies)
	b.wants("a replayed code", b.do("GET", back, nil), 401, "used already")

	back = at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil)
	s.Clock.Advance(11 * time.Minute)
	b.wants("late", b.do("GET", back, nil), 400, "ten minutes")
	denied := regexp.MustCompile(`code=[^&]*`).ReplaceAllString(
		at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil), "error=access_denied")
	b.wants("denied", b.do("GET", denied, nil), 401, "signed nobody in")
}

// A sign-in never redirects to another site.
func TestSignInsLeadNowhereElse(t *testing.T) {
	s, at := atIssuer(t)
	b := newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil), nil)
	b.signUp("Carla")
	for _, next := range []string{"https://evil.test/portal", "//evil.test/portal",
		"/\\evil.test", "/portal/../../evil", "javascript:alert(1)", "/portal@evil.test"} {
		back := at.SignIn(t, b.begin(next), "carla", s.Clock.Now(), nil)
		if got := b.do("GET", back, nil); got.status != 303 || got.to != "/portal" {
			t.Errorf("%s: %d to %q", next, got.status, got.to)
		}
	}
}

// The page reports an unreachable issuer. The issuer is used again once it is back.
func TestIssuerIsAwayFromBrowsers(t *testing.T) {
	s, at := atIssuer(t)
	b := newVisitor(t, s)
	to := b.begin("")
	at.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	b.wants("back while it is away", b.do("GET", at.SignIn(t, to, "carla", s.Clock.Now(), nil),
		nil), 503, "<p class=\"problem\"")
	s.Clock.Advance(2 * time.Hour)
	b.wants("its keys are too old", b.do("GET", "/sign-in/openid", nil), 503,
		"cannot be reached")
	at.Answer(nil)
	s.Clock.Advance(time.Minute)
	b.wants("it is back", b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil),
		nil), 303, "sign-up")
}

// The issuer's admin role takes effect at the next sign-in, and older sessions end. A disabled
// account cannot sign in.
func TestIssuersAdmins(t *testing.T) {
	s, at := atIssuer(t)
	roles := func(names ...string) func(map[string]any) {
		return func(claims map[string]any) { claims["roles"] = names }
	}
	b, other := newVisitor(t, s), newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), roles("admin")), nil)
	b.wants("signs up", b.signUp("Carla"), 303, "/portal")
	b.wants("an admin", b.do("GET", "/api/admin/status", nil), 200, "")
	other.do("GET", at.SignIn(t, other.begin(""), "carla", s.Clock.Now(), roles()), nil)
	other.wants("no more", other.do("GET", "/api/admin/status", nil), 401, "unauthorized")
	b.wants("nor with a session of before", b.do("GET", "/api/admin/status", nil), 401,
		"unauthorized")

	listed := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: "GET /api/admin/accounts"})
	s.Run(t, apitest.Scenario{Name: "disable", As: apitest.Admin, Status: 204,
		Do: "PUT /api/admin/accounts/" + listed.Text("content.0.id") + "/disable"})
	other.wants("disabled", other.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
	for _, role := range []string{"admin", "none"} {
		other.wants("disabled", other.do("GET", at.SignIn(t, other.begin(""), "carla",
			s.Clock.Now(), roles(role)), nil), 403, "disabled")
	}
}

// A session from an issuer ends after half a day, used or not. The portal then redirects to the
// issuer and back to the same page; a user still signed in there enters nothing. After a sign-out
// the user is asked first.
func TestIssuersAreAskedAgain(t *testing.T) {
	s, at := atIssuer(t)
	b := newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil), nil)
	b.wants("signs up", b.signUp("Carla"), 303, "/portal")
	b.wants("who is there", b.do("GET", "/sign-in?next=/portal/runs", nil), 200, "carla")
	for range 11 {
		s.Clock.Advance(time.Hour)
		b.wants("works", b.do("GET", "/api/key/whoami", nil), 200, "carla")
	}
	s.Clock.Advance(time.Hour)
	b.wants("is over", b.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
	next := b.do("GET", "/sign-in?next=/portal/runs", nil)
	b.wants("is led", next, 303, "/sign-in/openid?next=%2Fportal%2Fruns")
	asked := b.do("GET", next.to, nil)
	b.wants("to the issuer", asked, 303, at.URL)
	b.wants("and back", b.do("GET", at.SignIn(t, asked.to, "carla", s.Clock.Now(), nil), nil), 303,
		"/portal/runs")
	b.wants("works again", b.do("GET", "/api/key/whoami", nil), 200, "carla")
	b.wants("signs out", b.do("POST", "/api/auth/sign-out", nil), 204, "")
	b.wants("is asked", b.do("GET", "/sign-in?next=/portal/runs", nil), 200, "Sign in at")
}

// A changed e-mail address at the issuer becomes the account's at the next sign-in, and sessions
// continue. An address of another account stays with that account, and nobody is locked out.
func TestIssuersAddressesChange(t *testing.T) {
	s, at := atIssuer(t)
	known := func(address string) func(map[string]any) {
		return func(claims map[string]any) { claims["email"] = address }
	}
	for _, who := range []string{"carla", "dora"} {
		b := newVisitor(t, s)
		b.do("GET", at.SignIn(t, b.begin(""), who, s.Clock.Now(), known(who+"@shop.test")), nil)
		b.wants("signs up", b.signUp(who), 303, "/portal")
	}
	b, other := newVisitor(t, s), newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), known("carla@shop.test")), nil)
	for address, want := range map[string]bool{"married@shop.test": true, "dora@shop.test": false} {
		other.wants(address, other.do("GET", at.SignIn(t, other.begin(""), "carla", s.Clock.Now(),
			known(address)), nil), 303, "/portal")
		b.wants("goes on", b.do("GET", "/api/key/whoami", nil), 200, "carla")
		view := s.Client.View()
		account := view.AccountByEmail(address)
		if account == nil || (account.Customer == "carla") != want {
			t.Errorf("%s is of %+v", address, account)
		}
	}
}

// Data beside a token counts only for the token's subject, and only if the token has no address.
// Only verified data counts.
func TestWhatIsToldBesideATokenHasToHold(t *testing.T) {
	s, at := atIssuer(t)
	silent := func(claims map[string]any) { delete(claims, "email") }
	for name, c := range map[string]struct {
		told   map[string]any
		change func(map[string]any)
		status int
		says   string
	}{
		"of the same": {map[string]any{"sub": "dora", "email": "d@shop.test",
			"email_verified": "true"}, silent, 303, "sign-up"},
		"of another": {map[string]any{"sub": "carla", "email": "carla@shop.test",
			"email_verified": true}, silent, 403, "verified no"},
		"of nobody": {map[string]any{"email": "d@shop.test", "email_verified": true}, silent, 403,
			"verified no"},
		"not verified": {map[string]any{"sub": "dora", "email": "d@shop.test",
			"email_verified": false}, silent, 403, "verified no"},
		"not told whether": {map[string]any{"sub": "dora", "email": "d@shop.test"}, silent, 403,
			"verified no"},
		"no address": {map[string]any{"sub": "dora", "email": []string{"d@shop.test"},
			"email_verified": true}, silent, 403, "verified no"},
	} {
		at.Tell(c.told)
		b := newVisitor(t, s)
		b.wants(name, b.do("GET", at.SignIn(t, b.begin(""), "dora", s.Clock.Now(), c.change), nil),
			c.status, c.says)
		b.wants(name, b.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
	}
	at.Tell(map[string]any{"sub": "dora", "email": "other@shop.test", "email_verified": true})
	b := newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "dora", s.Clock.Now(), nil), nil)
	b.wants("the token's counts", b.signUp("Dora"), 303, "/portal")
	b.wants("the token's counts", b.do("GET", "/api/customer", nil), 200, "dora@shop.test")
}

// A browser keeps cookies of at most 4,096 bytes. The sign-in works from any address, and people
// return to it if it is short enough.
func TestSignInsFromLongAddresses(t *testing.T) {
	s, at := atIssuer(t)
	for n, c := range []struct{ query, to string }{
		{strings.Repeat("a=%26&", 2), "/portal/runs?"},
		{strings.Repeat("a=&", 500), "/portal/runs?"},
		{strings.Repeat("a=&", 1_000), "/portal"}} {
		b := newVisitor(t, s)
		back := at.SignIn(t, b.begin("/portal/runs?"+strings.Trim(c.query, "&")),
			strings.Repeat([]string{"é", "è", "ê"}[n], 64), s.Clock.Now(),
			func(claims map[string]any) {
				claims["email"] = strings.Repeat([]string{"e", "f", "g"}[n], 60) + "@" +
					strings.Repeat("shop.", 30) + "test"
			})
		b.wants("comes back", b.do("GET", back, nil), 303, "sign-up")
		own, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range b.client.Jar.Cookies(own) {
			if n := len(cookie.Name) + len(cookie.Value); n > 4_096-len("__Host-") {
				t.Errorf("the cookie %s has %d bytes", cookie.Name, n)
			}
		}
		got := b.signUp("É")
		b.wants("signs up", got, 303, c.to)
		if led := strings.Contains(got.to, "?"); led != strings.Contains(c.to, "?") {
			t.Errorf("led to %.50q, want %s", got.to, c.to)
		}
	}
}

// The sign-up cookie is valid only for signing up. It is no way in later, after a sign-out, or with
// a revoked admin role.
func TestSignUpsAreNoWayInAgain(t *testing.T) {
	s, at := atIssuer(t)
	b, other := newVisitor(t, s), newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), func(claims map[string]any) {
		claims["roles"] = "admin"
	}), nil)
	own, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.client.Jar.Cookies(own)
	b.wants("signs up", b.signUp("Carla"), 303, "/portal")
	b.wants("an admin", b.do("GET", "/api/admin/status", nil), 200, "")
	other.wants("no admin any more", other.do("GET", at.SignIn(t, other.begin(""), "carla",
		s.Clock.Now(), nil), nil), 303, "/portal")
	thief := newVisitor(t, s)
	thief.client.Jar.SetCookies(own, kept)
	thief.wants("the form again", thief.signUp("Carla"), 303, "/sign-in")
	thief.wants("no session", thief.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
	other.wants("the session stays", other.do("GET", "/api/key/whoami", nil), 200, "carla")
	other.do("POST", "/api/auth/sign-out-everywhere", nil)
	thief.client.Jar.SetCookies(own, kept)
	thief.wants("once more", thief.signUp("Carla"), 303, "/sign-in")
	thief.wants("no session", thief.do("GET", "/api/key/whoami", nil), 401, "unauthorized")
}

// An address of an older account does not create a customer that nobody can use. An account that
// got a password while there was no issuer belongs to the issuer again.
func TestAccountsFromBeforeTheIssuer(t *testing.T) {
	s, at := atIssuer(t)
	old := s.IDs.New()
	s.Client.Must(t, client.CreateAccount{ID: old, Email: "carla@shop.test", Customer: "old",
		Password: "hash", Entry: s.IDs.New()})
	b := newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil), nil)
	b.wants("taken", b.signUp("Carla"), 409, "nother account has this")
	if s.Client.View().Customer("carla") != nil {
		t.Error("a customer was made")
	}
	s.Client.Must(t, client.RemoveAccount{Account: old})
	b.wants("free", b.signUp("Carla"), 303, "/portal")

	account := s.Client.View().AccountByEmail("carla@shop.test")
	s.Client.Must(t, client.SetPassword{Account: account.ID, Was: account.Password,
		Password: "hash"})
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil), nil)
	b.wants("again", b.do("GET", "/api/key/whoami", nil), 200, "carla")
}

// Tokens of a disabled account are refused, whatever their role, with or without a leader. So is a
// ticket that such a token requested earlier.
func TestTokensOfDisabledAccounts(t *testing.T) {
	s, at := atIssuer(t)
	b := newVisitor(t, s)
	b.do("GET", at.SignIn(t, b.begin(""), "carla", s.Clock.Now(), nil), nil)
	b.wants("signs up", b.signUp("Carla"), 303, "/portal")
	account := s.Client.View().AccountByEmail("carla@shop.test").ID
	who, status := "GET /api/key/whoami", "GET /api/admin/status"
	token := at.Token(t, "carla", s.Clock.Now(), "admin")
	disable := "PUT /api/admin/accounts/" + account.String() + "/disable"
	as := map[string]string{"X-Customer-Ref": "alice"}
	s.Run(t, apitest.Scenario{Name: "lets in", As: token, Do: who, Status: 200},
		apitest.Scenario{Name: "itself", As: token, Do: disable, Status: 400,
			Code: "invalid_request"})
	ticket := s.Call(t, apitest.Scenario{As: token, Do: "POST /api/events/ticket"}).Text("ticket")
	if ticket == "" {
		t.Fatal("there is no ticket")
	}
	s.Run(t, apitest.Scenario{Name: "disable", As: apitest.Admin, Do: disable, Status: 204})
	refused := func(name, as, do string, header map[string]string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: as, Do: do, Header: header, Status: 403,
			Code: "account_disabled"}
	}
	s.Run(t, refused("its token", token, who, nil), refused("an admin's", token, status, nil),
		refused("for another", token, who, as),
		refused("its ticket", "", "GET /api/events/stream?ticket="+ticket, nil))
	s.Client.Fail(fault.New(fault.Unavailable, "there is no leader"))
	s.Run(t, refused("without a leader", token, status, nil))
	s.Client.Fail(nil)
	s.Run(t, apitest.Scenario{Name: "enable", As: apitest.Admin, Status: 204,
		Do: strings.Replace(disable, "PUT", "DELETE", 1)},
		apitest.Scenario{Name: "lets in again", As: token, Do: who, Status: 200})
}
