package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/clock"
)

func TestHealth(t *testing.T) {
	ready := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte("{\"status\":\"so\"}\n"))
	}))
	address := strings.TrimPrefix(server.URL, "http://")
	ask := func(to string) (code int, said string) {
		var out, problem bytes.Buffer
		code = run(context.Background(), []string{"health", "--ops-listen", to},
			terminal.Terminal{In: strings.NewReader(""), Out: &out, Err: &problem,
				Clock: clock.System{}}, nil)
		return code, out.String() + problem.String()
	}
	// the address that serve has in a container
	everywhere := strings.Replace(address, "127.0.0.1", "0.0.0.0", 1)
	if code, said := ask(everywhere); code != terminal.ExitOK || said != "{\"status\":\"so\"}\n" {
		t.Errorf("ready: %d %q", code, said)
	}
	ready = false
	if code, said := ask(address); code != terminal.ExitFailed || !strings.Contains(said, "503") ||
		!strings.Contains(said, "so") {
		t.Errorf("not ready: %d %q", code, said)
	}
	server.Close()
	if code, said := ask(address); code != terminal.ExitNoAccess || said == "" {
		t.Errorf("gone: %d %q", code, said)
	}
}
