package main

import (
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
	b.in = "" // the server says what is wrong with it
	b.api.Refuse[call] = apitest.Problem{Status: 400, Code: "invalid_request", Detail: "too short"}
	b.shoal("admin", "create", "ops@x.test", "--customer", "acme").want(t, terminal.ExitFailed,
		"too short")
	b.shoal("admin", "create").want(t, terminal.ExitUsage)
}
