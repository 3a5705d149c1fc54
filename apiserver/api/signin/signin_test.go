package signin_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

const (
	email    = "ann@x.test"
	password = "correct horse battery"
	account  = `{"email":"` + email + `","password":"` + password + `","customerRef":"alice"}`
	entered  = `{"email":"` + email + `","password":"` + password + `"}`
)

// start starts a server with an account of the customer alice.
func start(t *testing.T, options ...apitest.Option) *apitest.Server {
	t.Helper()
	s := apitest.Start(t, options...)
	s.Run(t, apitest.Scenario{Name: "make the account", As: apitest.Admin,
		Do: "POST /api/admin/accounts", Body: account, Status: 200,
		Has: map[string]any{"email": email, "customerRef": "alice", "admin": false}})
	return s
}

func TestAccountsAreMadeByAdmins(t *testing.T) {
	s := start(t)
	with := func(email, password string) string {
		return `{"email":"` + email + `","password":"` + password + `"}`
	}
	create := "POST /api/admin/accounts"
	s.Run(t,
		apitest.Scenario{Name: "no admin", As: apitest.SignIn, Do: create, Body: account,
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "taken", As: apitest.Admin, Do: create,
			Body: with("ANN@x.test", password), Status: 409, Code: "email_taken"},
		apitest.Scenario{Name: "no address", As: apitest.Admin, Do: create,
			Body: with("ann", password), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "short", As: apitest.Admin, Do: create,
			Body: with("bob@x.test", "12345678901"), Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "password"}},
		apitest.Scenario{Name: "long", As: apitest.Admin, Do: create,
			Body: with("bob@x.test", strings.Repeat("ab", 129)), Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "the address", As: apitest.Admin, Do: create,
			Body: with("robert.smith@x.test", "Robert.Smith1"), Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "one character", As: apitest.Admin, Do: create,
			Body: with("bob@x.test", "aaaaaaaaaaaa"), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "of its own", As: apitest.Admin, Do: create,
			Body: with("bob@x.test", "123456789012"), Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				if ref := a.Text("customerRef"); ref == "" || ref != a.Text("id") ||
					s.Client.View().Customer(ref) == nil {
					t.Errorf("its customer is %q", ref)
				}
			}})
}

// cookies returns the cookies that an answer sets, by name.
func cookies(a apitest.Answer) map[string]*http.Cookie {
	set := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		set[c.Name] = c
	}
	return set
}

func TestSignInAndOut(t *testing.T) {
	s := start(t)
	open := func() string {
		t.Helper()
		a := s.Call(t, apitest.Scenario{Do: "POST /api/auth/sign-in", Body: entered})
		c := cookies(a)["shoal-session"]
		if a.Status != 200 || a.Text("customerRef") != "alice" || c == nil || !c.HttpOnly ||
			c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.MaxAge != 30*24*60*60 {
			t.Fatalf("%d %s %+v", a.Status, a.Body, c)
		}
		return "shoal-session=" + c.Value
	}
	by := func(cookie string) map[string]string { return map[string]string{"Cookie": cookie} }
	whoami := func(cookie string, status int) apitest.Scenario {
		return apitest.Scenario{Name: "who am I", Do: "GET /api/key/whoami", Header: by(cookie),
			Status: status}
	}
	forgotten := map[string]string{"Clear-Site-Data": `"storage"`}
	first, second, third := open(), open(), open()
	s.Run(t, apitest.Scenario{Name: "wrong", Do: "POST /api/auth/sign-in",
		Body:   strings.Replace(entered, "correct", "wrong", 1),
		Status: 401, Code: "unauthorized", Headers: map[string]string{"Set-Cookie": ""}},
		apitest.Scenario{Name: "unknown", Do: "POST /api/auth/sign-in",
			Body:   strings.Replace(entered, "ann", "nobody", 1),
			Status: 401, Code: "unauthorized", Headers: map[string]string{"Clear-Site-Data": ""}},
		whoami(first, 200), whoami("shoal-session=none", 401), whoami("__Host-"+first, 401),
		apitest.Scenario{Name: "a session is no admin's", Do: "GET /api/admin/nodes",
			Header: by(first), Status: 401},
		apitest.Scenario{Name: "it writes", Do: "PUT /api/key/generate?name=n&scope=USER",
			Header: by(first), Status: 200},
		apitest.Scenario{Name: "not for another site", Do: "POST /api/auth/sign-out",
			Header: map[string]string{"Cookie": first, "Sec-Fetch-Site": "cross-site"},
			Status: 403, Code: "cross_site_refused"},
		apitest.Scenario{Name: "not for another site's key",
			Do:     "PUT /api/key/generate?name=n&scope=USER",
			Header: map[string]string{"Cookie": first, "Origin": "https://evil.test"},
			Status: 403, Code: "cross_site_refused"},
		apitest.Scenario{Name: "not by a link, where GET writes",
			Do:     "GET /api/scraper/group/" + strings.Repeat("a", 24) + "/run",
			Header: map[string]string{"Cookie": first, "Sec-Fetch-Site": "cross-site"},
			Status: 403, Code: "cross_site_refused"},
		apitest.Scenario{Name: "a link may read", Do: "GET /api/scraper/group/list",
			Header: map[string]string{"Cookie": first, "Sec-Fetch-Site": "cross-site"},
			Status: 200},
		apitest.Scenario{Name: "nobody is signed in by another site",
			Do: "POST /api/auth/sign-in", Body: entered,
			Header: map[string]string{"Sec-Fetch-Site": "same-site"},
			Status: 403, Code: "cross_site_refused"},
		apitest.Scenario{Name: "a token is no session", As: apitest.SignIn,
			Do: "POST /api/auth/sign-out", Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "out", Do: "POST /api/auth/sign-out",
			Header: map[string]string{"Cookie": first, "Sec-Fetch-Site": "same-origin"},
			Status: 204, Headers: forgotten, Check: func(t *testing.T, a apitest.Answer) {
				if c := cookies(a)["shoal-session"]; c == nil || c.Value != "" ||
					c.Expires.After(time.Now()) {
					t.Errorf("the cookie is %+v", c)
				}
			}},
		whoami(first, 401), whoami(second, 200),
		apitest.Scenario{Name: "out everywhere", Do: "POST /api/auth/sign-out-everywhere",
			Header: by(second), Status: 204, Headers: forgotten},
		whoami(second, 401), whoami(third, 401))
}

// A session ends after seven days without a call, and after thirty in any case. A blocked customer
// has no sessions.
func TestSessionsEnd(t *testing.T) {
	s := start(t)
	open := func() string {
		t.Helper()
		a := s.Call(t, apitest.Scenario{Do: "POST /api/auth/sign-in", Body: entered})
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return cookies(a)["shoal-session"].Value
	}
	status := func(secret string) int {
		return s.Call(t, apitest.Scenario{Do: "GET /api/key/whoami", As: secret}).Status
	}
	secret := open()
	s.Clock.Advance(7*24*time.Hour - time.Millisecond)
	if got := status(secret); got != 200 {
		t.Errorf("before a week: %d", got)
	}
	s.Clock.Advance(time.Millisecond)
	if got := status(secret); got != 401 {
		t.Errorf("after a week: %d", got)
	}
	secret = open()
	s.Client.Must(t, client.BlockCustomer{Customer: "alice", By: "root"})
	if got := status(secret); got != 403 {
		t.Errorf("blocked: %d", got)
	}
	s.Run(t, apitest.Scenario{Name: "blocked", Do: "POST /api/auth/sign-in", Body: entered,
		Status: 403, Code: "customer_blocked"})
}

// Guesses from one network do not affect others. A browser that has signed in before is not
// affected by strangers.
func TestGuesses(t *testing.T) {
	s := start(t, func(c *apiserver.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	wrong := strings.Replace(entered, "correct", "wrong", 1)
	from := func(address, body, device string) apitest.Answer {
		return s.Call(t, apitest.Scenario{Do: "POST /api/auth/sign-in", Body: body,
			Header: map[string]string{"X-Forwarded-For": address, "X-Forwarded-Proto": "https",
				"Cookie": "__Host-shoal-device=" + device}})
	}
	known := from("192.0.2.9", entered, "")
	session := cookies(known)["__Host-shoal-session"]
	device := cookies(known)["__Host-shoal-device"]
	if session == nil || !session.Secure || device == nil || !device.Secure {
		t.Fatalf("%d %v", known.Status, known.Header)
	}
	for range 10 {
		if a := from("192.0.2.1", wrong, ""); a.Status != 401 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	if a := from("192.0.2.1", entered, ""); a.Status != 429 || a.Header.Get("Retry-After") != "90" {
		t.Errorf("too many: %d %v", a.Status, a.Header)
	}
	if a := from("192.0.2.1", strings.Replace(wrong, "ann", "bob", 1), ""); a.Status != 401 {
		t.Errorf("at another account: %d", a.Status)
	}
	if a := from("192.0.2.2", entered, ""); a.Status != 200 {
		t.Errorf("from another network: %d", a.Status)
	}
	if a := from("192.0.2.1", entered, device.Value); a.Status != 200 {
		t.Errorf("a known browser in the same network: %d", a.Status)
	}
	if a := from("192.0.2.1", entered, device.Value+"x"); a.Status != 429 {
		t.Errorf("a forged browser: %d", a.Status)
	}
	s.Clock.Advance(90 * time.Second)
	if a := from("192.0.2.1", entered, ""); a.Status != 200 {
		t.Errorf("after a while: %d", a.Status)
	}
}

// A password is refused in the clear, and the page says what to do.
func TestInTheClear(t *testing.T) {
	s := start(t, func(c *apiserver.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	clear := map[string]string{"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "http"}
	s.Run(t, apitest.Scenario{Name: "refused", Do: "POST /api/auth/sign-in", Header: clear,
		Body: entered, Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "the page", Do: "GET /sign-in", Header: clear, Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				if text := string(a.Body); strings.Contains(text, "<form") ||
					!strings.Contains(text, "--tls-cert") ||
					!strings.Contains(text, "--trusted-proxies") ||
					a.Header.Get("Set-Cookie") != "" {
					t.Errorf("%v %s", a.Header, text)
				}
			}})
}

// A browser without JavaScript signs in and out with forms.
func TestPages(t *testing.T) {
	s := start(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	token := regexp.MustCompile(`name="token" value="([^"]+)"`)
	var do func(method, path string, form url.Values, status int) (page string)
	do = func(method, path string, form url.Values, status int) (page string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path,
			strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if method == "POST" {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if response.Request.URL.Path == "/portal" { // that page does not tell who has signed in
			return do("GET", "/sign-in", nil, status)
		}
		var body strings.Builder
		if _, err := io.Copy(&body, response.Body); err != nil {
			t.Fatal(err)
		}
		policy := response.Header.Get("Content-Security-Policy")
		if response.StatusCode != status || !strings.Contains(policy, "default-src 'none'") ||
			!strings.Contains(policy, "form-action 'self'") ||
			strings.Contains(policy, "script") != scripted(body.String()) ||
			response.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s %s: %d %v %s", method, path, response.StatusCode, response.Header,
				body.String())
		}
		return body.String()
	}
	of := func(page string) string {
		t.Helper()
		found := token.FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("no form in %s", page)
		}
		return found[1]
	}
	form := of(do("GET", "/sign-in", nil, 200))
	filled := url.Values{"token": {form}, "email": {email}, "password": {"wrong"}, "more": {"x"}}
	if page := do("POST", "/sign-in", filled, 401); !strings.Contains(page, "is wrong") ||
		!strings.Contains(page, `value="`+email+`"`) {
		t.Errorf("a wrong password: %s", page)
	}
	filled.Set("email", `"><script>alert(1)</script>`)
	if page := do("POST", "/sign-in", filled, 401); strings.Contains(page, "<script>") {
		t.Errorf("what was entered is not escaped: %s", page)
	}
	filled.Set("email", email)
	filled.Set("password", password)
	filled.Set("token", "another")
	do("POST", "/sign-in", filled, 400)
	filled.Set("token", form)
	page := do("POST", "/sign-in", filled, 200) // redirected back to the page
	if !strings.Contains(page, "<code>alice</code>") {
		t.Fatalf("signed in: %s", page)
	}
	do("POST", "/sign-out", url.Values{"token": {"another"}}, 400)
	if page := do("GET", "/sign-in", nil, 200); !strings.Contains(page, "alice") {
		t.Errorf("a forged sign-out: %s", page)
	}
	out := url.Values{"token": {of(page)}, "everywhere": {"yes"}}
	if page := do("POST", "/sign-out", out, 200); !strings.Contains(page, `type="password"`) {
		t.Errorf("signed out: %s", page)
	}
	do("POST", "/sign-out", out, 200) // repeated
}

// If an OpenID Connect issuer signs people in, there is no other way in.
func TestWithAnIssuer(t *testing.T) {
	at := oidctest.Start(t)
	s := apitest.Start(t, func(c *apiserver.Config) {
		c.OpenID = &apiserver.OpenID{Issuer: at.URL, Audiences: []string{oidctest.Audience},
			Egress: oidctest.Egress(t)}
	})
	secret := auth.NewSessionSecret()
	s.Client.Must(t, client.CreateAccount{ID: ids.ID{1}, Email: email, Customer: "alice",
		Password: "p"})
	s.Client.Must(t, client.OpenSession{Account: ids.ID{1}, Password: "p",
		Hash: auth.HashSession(secret)})
	s.Run(t, apitest.Scenario{Name: "a session of before", As: secret, Do: "GET /api/key/whoami",
		Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "the page", Do: "GET /sign-in", Status: 404,
			Code: "route_not_found"},
		apitest.Scenario{Name: "the operation", Do: "POST /api/auth/sign-in", Body: entered,
			Status: 404, Code: "route_not_found"})
}
