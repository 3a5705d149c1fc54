package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestAdminCreate(t *testing.T) {
	const call = "POST /api/admin/accounts"
	b := newShell(t)
	b.in = "correct horse battery\r\nmore"
	b.shoal("admin", "create", "ops@x.test").want(t, terminal.ExitOK,
		"ops@x.test signs in at "+b.api.URL+"/sign-in")
	want := `{"email":"ops@x.test","password":"correct horse battery","customerRef":"self",` +
		`"admin":true}`
	if sent := b.api.Bodies[call]; sent != want {
		t.Errorf("sent %s", sent)
	}
	b.in = "" // the server reports what is wrong with it
	b.api.Refuse[call] = apitest.Problem{Status: 400, Code: "invalid_request", Detail: "too short"}
	b.shoal("admin", "create", "ops@x.test", "--customer", "acme").want(t, terminal.ExitFailed,
		"too short")
	b.shoal("admin", "create").want(t, terminal.ExitUsage)
}

func TestAdminAccounts(t *testing.T) {
	b := newShell(t)
	var asked []string
	link, sent := "/sign-in/new-password?link=x", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Method != http.MethodGet {
			if strings.HasSuffix(r.URL.Path, "/password-link") {
				_, _ = io.WriteString(w, `{"link":"`+link+`",
					"expiresAt":"2026-01-03T03:04:05.000Z"}`)
				return
			}
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(w, `{"content":[{"id":"66f0c2a1b7d4e8f900000001",
			"email":"ann.more@x.test","customerRef":"acme","admin":false,
			"createdAt":"2026-01-02T03:04:05.000Z","disabledAt":null},
			{"id":"66f0c2a1b7d4e8f900000002","email":"Ann@x.test","customerRef":"self",
			"admin":true,"createdAt":"2026-01-02T03:04:05.000Z",
			"disabledAt":"2026-02-02T03:04:05.000Z"}],"totalElements":3}`)
	}))
	t.Cleanup(server.Close)
	admin := func(args ...string) result {
		t.Helper()
		asked = nil
		return b.shoal(append([]string{"admin", args[0], "--server", server.URL}, args[1:]...)...)
	}
	wantAsked := func(want string) {
		t.Helper()
		if got := asked[len(asked)-1]; got != want {
			t.Errorf("it asked %s, want %s", got, want)
		}
	}
	admin("list", "--match", "a&", "--customer", "acme", "--disabled").want(t, terminal.ExitOK,
		"ann.more@x.test", "signs in", "administrator", "disabled 2026-02-02 03:04:05",
		"2 of 3 accounts")
	wantAsked("GET /api/admin/accounts?customer=acme&disabled=true&q=a%26&size=50")
	admin("list", "--json").want(t, terminal.ExitOK, `"totalElements": 3`)
	admin("list", "--limit", "201").want(t, terminal.ExitUsage, "1 to 200")
	const path = "/api/admin/accounts/66f0c2a1b7d4e8f900000002"
	admin("disable", "ann@X.test").want(t, terminal.ExitOK, "Ann@x.test does not sign in")
	wantAsked("PUT " + path + "/disable")
	admin("enable", "ann@x.test").want(t, terminal.ExitOK, "may sign in again")
	wantAsked("DELETE " + path + "/disable")
	admin("reset", "ann@x.test").want(t, terminal.ExitOK, "until 2026-01-03 03:04:05 UTC",
		server.URL+link)
	wantAsked("POST " + path + "/password-link")
	link = "https://shoal.test" + link
	if made := admin("reset", "ann@x.test"); made.out != link+"\n" {
		t.Errorf("it prints %s", made.out)
	}
	b.in = "staple battery horse\n"
	admin("reset", "ann@x.test", "--password").want(t, terminal.ExitOK, "has another password")
	wantAsked("PUT " + path + "/password")
	if sent != `{"password":"staple battery horse"}` {
		t.Errorf("it sent %s", sent)
	}
	admin("remove", "66f0c2a1b7d4e8f900000002").want(t, terminal.ExitOK, "is removed")
	wantAsked("DELETE " + path)
	admin("remove", "nobody@x.test").want(t, terminal.ExitFailed, "no account has")
}
