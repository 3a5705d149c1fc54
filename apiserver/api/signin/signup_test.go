package signin_test

import (
	"net/url"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

func allow(t *testing.T, s *apitest.Server, on string) {
	t.Helper()
	s.Run(t, apitest.Scenario{Name: "sign-up " + on, As: apitest.Admin,
		Do: "PUT /api/admin/settings", Body: `{"signUpEnabled":` + on + `}`, Status: 200})
}

// People create their own accounts if the operator allows it: with a link from an e-mail, and a
// password of their choice.
func TestSignUp(t *testing.T) {
	s := start(t, mailing, func(c *apiserver.Config) { c.UserAgreement = []byte("<p>Terms</p>") })
	b := newBrowser(t, s)
	if page := b.get("/sign-in", 200); strings.Contains(page, "/sign-up") {
		t.Errorf("nobody may sign up: %s", page)
	}
	b.wants(b.get("/sign-up", 200), "The operator of this service makes accounts")
	token := b.token(b.get("/sign-in", 200))
	asks := func(email string, status int) string {
		t.Helper()
		return b.post("/sign-up", url.Values{"token": {token}, "email": {email}}, status)
	}
	asks("new@x.test", 400)
	allow(t, s, "true")
	b.wants(b.get("/sign-in", 200), `href="/sign-up"`)
	b.wants(b.get("/sign-up", 200), "/api/customer/user-agreement")
	b.wants(asks("new", 400), "This is no e-mail address.")
	if fresh, known := asks("new@x.test", 200), asks(email, 200); fresh != known {
		t.Errorf("who has an account shows: %s\n%s", fresh, known)
	}
	all, links := letters(t, s)
	if len(all) == 2 && all[0].Email == email {
		all[0], all[1], links[0] = all[1], all[0], links[1]
	}
	if len(all) != 2 || all[0].Email != "new@x.test" || !all[0].Account.IsZero() ||
		all[1].Account.IsZero() || !all[1].SignUp {
		t.Fatalf("%+v", all)
	}
	page := b.get(links[0], 200)
	b.wants(page, "Choose a password")
	_, text, _ := strings.Cut(links[0], "=")
	form := url.Values{"token": {token}, "link": {text}, "next": {next}, "again": {next}}
	allow(t, s, "false")
	b.post("/sign-in/new-password", form, 401)
	allow(t, s, "true")
	b.wants(b.post("/sign-in/new-password", form, 200), "The account is made")
	b.post("/sign-in/new-password", form, 401) // repeated
	page = b.post("/sign-in", url.Values{"token": {token}, "email": {"NEW@x.test"},
		"password": {next}}, 200)
	b.wants(page, "You are signed in")
	customer := s.Client.View().AccountByEmail("new@x.test").Customer
	s.Run(t, apitest.Scenario{Name: "the trail", As: apitest.Admin,
		Do: "GET /api/admin/audit?customer=" + customer, Status: 200, Has: map[string]any{
			"items.0.action": "sign-in", "items.1.action": "svc_new_password_form",
			"items.1.actor.subject": customer}})
}

// One network can create only a few accounts a day.
func TestSignUpsAreLimited(t *testing.T) {
	s := start(t, mailing)
	allow(t, s, "true")
	b := newBrowser(t, s)
	token := b.token(b.get("/sign-up", 200))
	for n := range 6 {
		b.post("/sign-up", url.Values{"token": {token},
			"email": {strings.Repeat("x", n+1) + "@x.test"}}, 200)
	}
	_, links := letters(t, s)
	for n, link := range links {
		_, text, _ := strings.Cut(link, "=")
		status := 200
		if n == 5 {
			status = 429
		}
		b.post("/sign-in/new-password", url.Values{"token": {token}, "link": {text},
			"next": {next}, "again": {next}}, status)
	}
}
