package signin_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

const public = "https://shoal.test"

// mailing makes a server send e-mails.
func mailing(c *apiserver.Config) { c.PublicURL, c.Mails = public, true }

// letters returns the e-mails in the queue, and their links as paths.
func letters(t *testing.T, s *apitest.Server) (all []client.Letter, links []string) {
	t.Helper()
	to, err := apiserver.LetterLinks(s.DataDir, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Client.View().LettersDue(func(l *client.Letter) bool {
		all, links = append(all, *l), append(links, to(l.ID))
		return true
	})
	return all, links
}

// asks requests a recovery e-mail from a browser.
func (b *browser) asks(email string, status int) string {
	b.t.Helper()
	token := b.token(b.get("/sign-in/recover", 200))
	return b.post("/sign-in/recover", url.Values{"token": {token}, "email": {email}}, status)
}

// A person who forgot the password requests a link and sets a new one with it, once.
func TestRecovery(t *testing.T) {
	s := start(t, mailing)
	session := open(t, s, entered)
	b := newBrowser(t, s)
	b.wants(b.get("/sign-in", 200), `href="/sign-in/recover"`)
	known, unknown := b.asks("ANN@x.test", 200), b.asks("nobody@x.test", 200)
	if known != unknown {
		t.Errorf("who has an account shows: %s\n%s", known, unknown)
	}
	b.wants(known, "Look into your mailbox")
	all, links := letters(t, s)
	if len(all) != 1 || all[0].Email != email {
		t.Fatalf("%+v", all)
	}
	link := links[0]
	b.get(link, 200)
	page := b.get(link, 200) // opening it does not use it up
	b.wants(page, `value="`+email+`"`)
	_, text, _ := strings.Cut(link, "=")
	form := url.Values{"token": {b.token(page)}, "link": {text}, "next": {next}, "again": {"other"}}
	b.wants(b.post("/sign-in/new-password", form, 400), "The two new passwords differ.")
	form.Set("again", next)
	form.Set("token", "another")
	b.wants(b.post("/sign-in/new-password", form, 400), "The form was too old")
	form.Set("token", b.token(page))
	form.Set("next", "short")
	form.Set("again", "short")
	b.wants(b.post("/sign-in/new-password", form, 400), "must have 12 to 256 characters")
	form.Set("next", next)
	form.Set("again", next)
	form.Set("link", text+"x")
	b.wants(b.post("/sign-in/new-password", form, 401), "not good any more")
	form.Set("link", text)
	s.Run(t, whoami(session, 200))
	b.wants(b.post("/sign-in/new-password", form, 200), "The password is set")
	b.wants(b.post("/sign-in/new-password", form, 401), "not good any more")
	b.wants(b.get(link, 200), "not good any more")
	s.Run(t, whoami(session, 401),
		apitest.Scenario{Name: "the old one", Do: "POST /api/auth/sign-in", Body: entered,
			Status: 401},
		apitest.Scenario{Name: "the trail", As: apitest.Admin,
			Do: "GET /api/admin/audit?customer=alice", Status: 200, Has: map[string]any{
				"items.0.action": "svc_new_password_form", "items.0.actor.subject": "alice",
				"items.0.changes.0.after.passwordAt": 1767323045000.0,
				"items.1.action":                     "svc_recover_form",
				"items.1.actor.subject":              "",
				"items.1.changes.0.record":           "letters " + all[0].ID.String()},
			Lacks: []string{"items.0.changes.0.after.password"}})
	open(t, s, strings.Replace(entered, password, next, 1))
}

// A link expires after half an hour.
func TestLinksEnd(t *testing.T) {
	s := start(t, mailing)
	b := newBrowser(t, s)
	b.asks(email, 200)
	_, links := letters(t, s)
	s.Clock.Advance(30*time.Minute - time.Millisecond)
	b.wants(b.get(links[0], 200), "<form")
	s.Clock.Advance(time.Millisecond)
	b.wants(b.get(links[0], 200), "not good any more")
	b.wants(b.get("/sign-in/new-password", 200), "not good any more")
}

// Requests for e-mails cannot fill a mailbox, and cannot keep the owner from a link. One network
// can request only a few; a browser that signed in before has its own count.
func TestLettersAreLimited(t *testing.T) {
	s := start(t, mailing, func(c *apiserver.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	from := func(address, email, device string) apitest.Answer {
		return s.Call(t, apitest.Scenario{Do: "POST /sign-in/recover",
			Body: url.Values{"token": {"form"}, "email": {email}}.Encode(),
			Header: map[string]string{"X-Forwarded-For": address, "X-Forwarded-Proto": "https",
				"Content-Type": "application/x-www-form-urlencoded",
				"Cookie":       "__Host-shoal-form=form; __Host-shoal-device=" + device}})
	}
	a := s.Call(t, apitest.Scenario{Do: "POST /api/auth/sign-in", Body: entered,
		Header: map[string]string{"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Proto": "https"}})
	device := cookies(a)["__Host-shoal-device"].Value
	for n := range 10 {
		if a := from("192.0.2.1", email, ""); a.Status != 200 {
			t.Fatalf("%d: %d %s", n, a.Status, a.Body)
		}
	}
	if a := from("192.0.2.1", "nobody@x.test", ""); a.Status != 429 ||
		a.Header.Get("Retry-After") != "90" ||
		!strings.Contains(string(a.Body), "Too many letters") {
		t.Errorf("one more: %d %s", a.Status, a.Body)
	}
	before, links := letters(t, s)
	if len(before) != 3 {
		t.Errorf("%d letters of one account", len(before))
	}
	if a := from("192.0.2.1", email, device); a.Status != 200 {
		t.Errorf("a known browser: %d", a.Status)
	}
	good := 0
	for _, link := range links {
		a := s.Call(t, apitest.Scenario{Do: "GET " + link, Header: map[string]string{
			"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Proto": "https"}})
		if strings.Contains(string(a.Body), "<form") {
			good++
		}
	}
	if after, _ := letters(t, s); len(after) != 3 || good != 2 {
		t.Errorf("%d letters, %d of them of before, behind a known browser's", len(after), good)
	}
}

// If no e-mails are sent, the page says what to do instead, and the form is refused.
func TestRecoveryWithoutLetters(t *testing.T) {
	for name, option := range map[string]apitest.Option{
		"no address": func(c *apiserver.Config) { c.Mails = true },
		"no e-mails": func(c *apiserver.Config) { c.PublicURL = public },
	} {
		s := start(t, option)
		b := newBrowser(t, s)
		page := b.get("/sign-in/recover", 200)
		b.wants(page, "shoal admin reset")
		if strings.Contains(page, "<form") {
			t.Errorf("%s: there is a form", name)
		}
		token := b.token(b.get("/sign-in", 200))
		b.post("/sign-in/recover", url.Values{"token": {token}, "email": {email}}, 400)
		if all, _ := letters(t, s); len(all) != 0 {
			t.Errorf("%s: there is a letter", name)
		}
	}
}

// Invalid addresses are reported, and forms of other sites are refused.
func TestRecoveryForms(t *testing.T) {
	s := start(t, mailing)
	b := newBrowser(t, s)
	b.wants(b.asks("ann", 400), "This is no e-mail address.")
	b.wants(b.post("/sign-in/recover", url.Values{"token": {"x"}, "email": {email}}, 400),
		"The form was too old")
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded",
		"Sec-Fetch-Site": "cross-site"}
	s.Run(t, apitest.Scenario{Name: "another site", Do: "POST /sign-in/recover", Header: form,
		Body: "token=x", Status: http.StatusForbidden, Code: "cross_site_refused"},
		apitest.Scenario{Name: "another site's password", Do: "POST /sign-in/new-password",
			Header: form, Body: "token=x", Status: http.StatusForbidden,
			Code: "cross_site_refused"})
	if all, _ := letters(t, s); len(all) != 0 {
		t.Errorf("there are %d letters", len(all))
	}
}

// Guesses lock no person out of a new browser: the refusal names the ways in, and they work.
func TestTheLockedOutGetIn(t *testing.T) {
	s := start(t, mailing)
	mine, k := signedIn(t, s), newKey(t)
	mine.has(k)
	guess := func(b *browser, email string, status int) string {
		return b.post("/sign-in", url.Values{"token": {b.token(b.get("/sign-in", 200))},
			"email": {email}, "password": {"wrong"}}, status)
	}
	b := newBrowser(t, s)
	for n := range 29 { // mine was the first of its network
		guess(b, fmt.Sprint(n, "@x.test"), 401)
	}
	refused := guess(b, email, 429)
	b.wants(refused, "Or use a passkey now, or set a new password with a link from an e-mail.")
	b.wants(refused, `href="/sign-in/recover"`)
	newBrowser(t, s).signs(k, 200)
	b.asks(email, 200)
	_, links := letters(t, s)
	page := b.get(links[0], 200)
	_, link, _ := strings.Cut(links[0], "link=")
	b.post("/sign-in/new-password", url.Values{"token": {b.token(page)}, "link": {link},
		"next": {next}, "again": {next}}, 200)
	b.wants(b.post("/sign-in", url.Values{"token": {b.token(b.get("/sign-in", 200))},
		"email": {email}, "password": {next}}, 200), "<code>alice</code>")
	s = start(t)
	b = newBrowser(t, s)
	for range 10 {
		guess(b, email, 401)
	}
	b.wants(guess(b, email, 429), "with a link from an administrator.")
}

// An admin makes a link for a person, or sets the password. Both end sessions.
func TestAdminsReset(t *testing.T) {
	s := start(t)
	id := only(t, s)
	link, set := "POST /api/admin/accounts/"+id+"/password-link",
		"PUT /api/admin/accounts/"+id+"/password"
	missing := strings.Replace(link, id, strings.Repeat("0", 23)+"9", 1)
	s.Run(t,
		apitest.Scenario{Name: "no admin", As: apitest.SignIn, Do: link, Status: 401},
		apitest.Scenario{Name: "unknown", As: apitest.Admin, Do: missing, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "set: unknown", As: apitest.Admin,
			Do: strings.Replace(set, id, strings.Repeat("0", 23)+"9", 1), Status: 400,
			Body: `{"password":"` + next + `"}`, Code: "not_found"},
		apitest.Scenario{Name: "set: short", As: apitest.Admin, Do: set, Status: 400,
			Body: `{"password":"short"}`, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "password"}})
	session := open(t, s, entered)
	s.Run(t, apitest.Scenario{Name: "set", As: apitest.Admin, Do: set, Status: 204,
		Body: `{"password":"` + next + `"}`}, whoami(session, 401))
	session = open(t, s, strings.Replace(entered, password, next, 1))
	made := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: link})
	if made.Status != 200 || made.Text("expiresAt") != "2026-01-03T03:04:05.000Z" {
		t.Fatalf("%d %s", made.Status, made.Body)
	}
	b := newBrowser(t, s)
	page := b.get(made.Text("link"), 200)
	_, text, _ := strings.Cut(made.Text("link"), "=")
	s.Run(t, whoami(session, 200))
	b.post("/sign-in/new-password", url.Values{"token": {b.token(page)}, "link": {text},
		"next": {password}, "again": {password}}, 200)
	s.Run(t, whoami(session, 401), apitest.Scenario{Name: "disable", As: apitest.Admin,
		Do: "PUT /api/admin/accounts/" + id + "/disable", Status: 204},
		apitest.Scenario{Name: "disabled", As: apitest.Admin, Do: link, Status: 403,
			Code: "account_disabled"})
}
