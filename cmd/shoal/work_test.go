package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestWork(t *testing.T) {
	b := newShell(t)
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		_, _ = io.WriteString(w, `{"content":[{"id":"66f0c2a1b7d4e8f900000001","kind":"expire",
			"customerRef":null,"state":"READY","node":null,"dueAt":"2026-01-02T03:04:05.000Z",
			"stoodStillMillis":61000,"failures":2,"error":"the row store is gone\nsomewhere"}],
			"totalElements":1234}`)
	}))
	t.Cleanup(server.Close)
	work := func(args ...string) result {
		t.Helper()
		return b.shoal(append([]string{"work", "--server", server.URL}, args...)...)
	}
	got := work("--kind", "expire", "--state", "READY", "--customer", "a&b")
	got.want(t, terminal.ExitOK, "expire", "READY", "2026-01-02 03:04", "1m1s",
		"the row store is gone", "1 of 1,234 items")
	if strings.Contains(got.out, "somewhere") {
		t.Errorf("an error has more than a line:\n%s", got.out)
	}
	const want = "GET /api/admin/work?customerRef=a%26b&kind=expire&size=50&state=READY"
	if asked != want {
		t.Errorf("it asked %s, want %s", asked, want)
	}
	work("--json").want(t, terminal.ExitOK, `"stoodStillMillis": 61000`)
	work("--limit", "201").want(t, terminal.ExitUsage, "--limit: 1 to 200")
	work("--state", "LOST").want(t, terminal.ExitUsage, "--state")
}
