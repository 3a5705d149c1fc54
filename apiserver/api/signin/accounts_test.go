package signin_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

const next = "staple battery horse"

// open signs in and returns the session's cookie.
func open(t *testing.T, s *apitest.Server, body string) string {
	t.Helper()
	a := s.Call(t, apitest.Scenario{Do: "POST /api/auth/sign-in", Body: body})
	c := cookies(a)["shoal-session"]
	if a.Status != 200 || c == nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return "shoal-session=" + c.Value
}

func by(cookie string) map[string]string { return map[string]string{"Cookie": cookie} }

// whoami calls with a session, valid or not.
func whoami(cookie string, status int) apitest.Scenario {
	return apitest.Scenario{Name: "who am I", Do: "GET /api/key/whoami", Header: by(cookie),
		Status: status}
}

// only is the id of the only account, which start created.
func only(t *testing.T, s *apitest.Server) string {
	t.Helper()
	a := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: "GET /api/admin/accounts?q=ANN@"})
	return a.JSON.(map[string]any)["content"].([]any)[0].(map[string]any)["id"].(string)
}

// Admins list, disable, enable and remove accounts. Disabling and removing end sessions at once.
func TestAccountsAreKept(t *testing.T) {
	s := start(t)
	s.Run(t, apitest.Scenario{Name: "another", As: apitest.Admin, Do: "POST /api/admin/accounts",
		Body:   `{"email":"bob@x.test","password":"` + password + `","admin":true}`,
		Status: 200})
	id, list := only(t, s), "GET /api/admin/accounts"
	disable := "PUT /api/admin/accounts/" + id + "/disable"
	enable := "DELETE /api/admin/accounts/" + id + "/disable"
	first, second := open(t, s, entered), open(t, s, entered)
	s.Run(t,
		apitest.Scenario{Name: "no admin", As: apitest.SignIn, Do: list, Status: 401},
		apitest.Scenario{Name: "all", As: apitest.Admin, Do: list, Status: 200,
			Has: map[string]any{"totalElements": 2.0, "content.0.email": email,
				"content.0.disabledAt": nil, "content.0.passwordChangedAt": nil,
				"content.1.admin": true}},
		apitest.Scenario{Name: "of alice", As: apitest.Admin, Do: list + "?customer=alice",
			Status: 200, Has: map[string]any{"totalElements": 1.0}},
		apitest.Scenario{Name: "a page", As: apitest.Admin, Do: list + "?size=1&page=1",
			Status: 200, Has: map[string]any{"content.0.email": "bob@x.test"}},
		apitest.Scenario{Name: "unknown", As: apitest.Admin,
			Do:     "PUT /api/admin/accounts/000000000000000000000009/disable",
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "disable", As: apitest.Admin, Do: disable, Status: 204},
		whoami(first, 401), whoami(second, 401),
		apitest.Scenario{Name: "again", As: apitest.Admin, Do: disable, Status: 204},
		apitest.Scenario{Name: "disabled", As: apitest.Admin, Do: list + "?disabled=true",
			Status: 200, Has: map[string]any{"totalElements": 1.0,
				"content.0.disabledAt": "2026-01-02T03:04:05.000Z"}},
		apitest.Scenario{Name: "with the password", Do: "POST /api/auth/sign-in", Body: entered,
			Status: 403, Code: "account_disabled"},
		apitest.Scenario{Name: "without it", Do: "POST /api/auth/sign-in",
			Body:   strings.Replace(entered, "correct", "wrong", 1),
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "enable", As: apitest.Admin, Do: enable, Status: 204},
		whoami(first, 401))
	third := open(t, s, entered)
	s.Run(t, apitest.Scenario{Name: "remove", As: apitest.Admin,
		Do: "DELETE /api/admin/accounts/" + id, Status: 204},
		whoami(third, 401),
		apitest.Scenario{Name: "again", As: apitest.Admin, Do: "DELETE /api/admin/accounts/" + id,
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "nobody", Do: "POST /api/auth/sign-in", Body: entered, Status: 401},
		apitest.Scenario{Name: "the trail", As: apitest.Admin,
			Do: "GET /api/admin/audit?customer=alice", Status: 200, Has: map[string]any{
				"items.0.action": "svc_admin_remove_account", "items.0.actor.subject": "root",
				"items.1.action": "sign-in",
				"items.2.action": "svc_admin_enable_account",
				"items.3.action": "svc_admin_disable_account"}})
}

// A whole address finds only its account. A part finds all that have it.
func TestAccountByAddress(t *testing.T) {
	s := start(t)
	find := func(q string, addresses ...string) apitest.Scenario {
		sc := apitest.Scenario{Name: q, As: apitest.Admin, Do: "GET /api/admin/accounts?q=" + q,
			Status: 200, Has: map[string]any{"totalElements": len(addresses)}}
		for i, address := range addresses {
			sc.Has[fmt.Sprintf("content.%d.email", i)] = address
		}
		return sc
	}
	s.Run(t, apitest.Scenario{Name: "another", As: apitest.Admin, Do: "POST /api/admin/accounts",
		Body: strings.Replace(account, email, "jo"+email, 1), Status: 200},
		find("ANN@x", email, "jo"+email), find("ANN@x.test", email))
}

// Admins who have signed in with an account cannot disable it.
func TestAdminsDoNotDisableThemselves(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "make the account", As: apitest.Admin,
		Do: "POST /api/admin/accounts", Body: strings.Replace(account, `"customerRef":"alice"`,
			`"customerRef":"alice","admin":true`, 1), Status: 200})
	s.Run(t, apitest.Scenario{Name: "itself", Header: by(open(t, s, entered)),
		Do:     "PUT /api/admin/accounts/" + only(t, s) + "/disable",
		Status: 400, Code: "invalid_request"})
}

// Changing a password needs the current one. The session stays, and all others end.
func TestChangeOfPassword(t *testing.T) {
	s := start(t)
	const change = "POST /api/auth/password"
	with := func(current, next string) string {
		return `{"currentPassword":"` + current + `","newPassword":"` + next + `"}`
	}
	mine, other := open(t, s, entered), open(t, s, entered)
	s.Run(t,
		apitest.Scenario{Name: "nobody", Do: change, Body: with(password, next), Status: 401},
		apitest.Scenario{Name: "a key", As: apitest.User, Do: change, Body: with(password, next),
			Status: 403, Code: "sign_in_required"},
		apitest.Scenario{Name: "a token", As: apitest.SignIn, Do: change,
			Body: with(password, next), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "another site", Do: change, Body: with(password, next),
			Header: map[string]string{"Cookie": mine, "Sec-Fetch-Site": "cross-site"},
			Status: 403, Code: "cross_site_refused"},
		apitest.Scenario{Name: "wrong", Do: change, Header: by(mine), Body: with("wrong", next),
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "currentPassword"}},
		apitest.Scenario{Name: "too long", Do: change, Header: by(mine),
			Body: with(strings.Repeat("x", 1000), next), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "short", Do: change, Header: by(mine), Body: with(password, "short"),
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "newPassword"}},
		whoami(other, 200),
		apitest.Scenario{Name: "change", Do: change, Header: by(mine), Body: with(password, next),
			Status: 204},
		whoami(mine, 200), whoami(other, 401),
		apitest.Scenario{Name: "the old one", Do: "POST /api/auth/sign-in", Body: entered,
			Status: 401},
		apitest.Scenario{Name: "the trail", As: apitest.Admin,
			Do: "GET /api/admin/audit?customer=alice", Status: 200, Has: map[string]any{
				"items.0.action": "svc_change_password", "items.0.actor.subject": "alice",
				"items.0.changes.0.after.passwordAt": 1767323045000.0},
			Lacks: []string{"items.0.changes.0.after.password"}})
	open(t, s, strings.Replace(entered, password, next, 1))
	for range 9 {
		s.Call(t, apitest.Scenario{Do: change, Header: by(mine), Body: with("wrong", password)})
	}
	s.Run(t, apitest.Scenario{Name: "too often", Do: change, Header: by(mine),
		Body: with(next, password), Status: 429, Code: "rate_limited"})
}

// browser is a browser without JavaScript.
type browser struct {
	*http.Client
	t *testing.T
	s *apitest.Server
}

func newBrowser(t *testing.T, s *apitest.Server) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{&http.Client{Jar: jar}, t, s}
}

// get opens a page and post sends a form. Both check the rules that all pages follow.
func (b *browser) get(path string, status int) string { return b.do("GET", path, nil, status) }
func (b *browser) post(path string, form url.Values, status int) string {
	return b.do("POST", path, form, status)
}

func (b *browser) do(method, path string, form url.Values, status int) string {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.s.URL+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == "POST" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := b.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.Request.URL.Path == "/portal" { // the portal's page does not tell who has signed in
		return b.get("/sign-in", status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	policy := response.Header.Get("Content-Security-Policy")
	if response.StatusCode != status || !strings.Contains(policy, "default-src 'none'") ||
		!strings.Contains(policy, "form-action 'self'") ||
		strings.Contains(policy, "script") != scripted(string(body)) ||
		response.Header.Get("Referrer-Policy") != "no-referrer" ||
		response.Header.Get("Cache-Control") != "no-store" {
		b.t.Fatalf("%s %s: %d %v %s", method, path, response.StatusCode, response.Header, body)
	}
	return string(body)
}

// scripted reports whether a page runs the passkeys script.
func scripted(page string) bool {
	return strings.Contains(page, `<script src="/sign-in/passkeys.js" defer></script>`)
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token returns the token in a page's forms.
func (b *browser) token(page string) string {
	b.t.Helper()
	found := formToken.FindStringSubmatch(page)
	if found == nil {
		b.t.Fatalf("no form in %s", page)
	}
	return found[1]
}

func (b *browser) wants(page, text string) {
	b.t.Helper()
	if !strings.Contains(page, text) {
		b.t.Errorf("nothing says %q in %s", text, page)
	}
}

// A browser changes the password with a form.
func TestPasswordPage(t *testing.T) {
	b := newBrowser(t, start(t))
	page := b.get("/sign-in/password", 200)
	b.wants(page, "<h1>Sign in</h1>") // redirected there
	token := b.token(page)
	b.post("/sign-in", url.Values{"token": {token}, "email": {email}, "password": {password}}, 200)
	token = b.token(b.get("/sign-in/password", 200))
	form := url.Values{"token": {token}, "current": {password}, "next": {next}, "again": {"other"}}
	b.wants(b.post("/sign-in/password", form, 400), "The two new passwords differ.")
	form.Set("again", next)
	form.Set("token", "another")
	b.wants(b.post("/sign-in/password", form, 400), "The form was too old")
	form.Set("token", token)
	form.Set("current", "wrong")
	b.wants(b.post("/sign-in/password", form, 400), "The current password is wrong.")
	form.Set("current", password)
	form.Set("next", "short")
	form.Set("again", "short")
	b.wants(b.post("/sign-in/password", form, 400), "The new password must have 12 to 256 characters.")
	form.Set("next", next)
	form.Set("again", next)
	b.wants(b.post("/sign-in/password", form, 200), "The password is changed")
	b.wants(b.get("/sign-in", 200), "You are signed in")
}
