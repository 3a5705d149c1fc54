//go:build linux

package fetcher

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"shoal.dev/shoal/testkit/forbidden"
)

// What a browser does on its own, or besides its pages, needs sites that it trusts.

// worldly wraps a browser so that it treats the public site as secure and accepts the trap's
// certificate.
func worldly(t *testing.T, path string, trap *forbidden.Trap) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "chromium")
	text := fmt.Sprintf("#!/bin/sh\nexec %s "+
		"--unsafely-treat-insecure-origin-as-secure=http://public.example "+
		"--ignore-certificate-errors-spki-list=%s \"$@\"\n", quoted(path), trap.Key())
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// serveWorldly serves pages with a worker, and pages that name alternative services.
func (g *guarded) serveWorldly(w http.ResponseWriter, r *http.Request) bool {
	var first, last int
	part := func(format string) bool {
		n, err := fmt.Sscanf(r.URL.Path+"$", format+"$", &first, &last)
		return err == nil && n == 2
	}
	switch {
	case part("/work/%d/%d"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// The script at the end loads once the worker has asked for everything: the page must live
		// that long.
		_,
			_ = fmt.Fprintf(w,
			`<script>navigator.serviceWorker.register("/worker/%d/%d")</script><script src="/worked"></script>`, first, last)
	case part("/worker/%d/%d"):
		working(w, g.pages[first:last])
	case r.URL.Path == "/working":
		select {
		case g.worked <- struct{}{}:
		case <-r.Context().Done():
		}
	case r.URL.Path == "/worked":
		w.Header().Set("Content-Type", "text/javascript")
		select {
		case <-g.worked:
			_, _ = io.WriteString(w, `document.write("asked for all")`)
		case <-r.Context().Done():
		}
	case part("/elsewhere/%d/%d"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Connection", "close") // forces a new connection for the next request
		for _, target := range g.pages[first:last] {
			for _, protocol := range []string{"h3", "h3-29", "h2", "quic", "http%2F1.1"} {
				w.Header().Add("Alt-Svc",
					fmt.Sprintf(`%s="%s:443"; ma=86400; persist=1, %[1]s=":8080"`, protocol,
						bracketed(target.For)))
			}
		}
		_, _ = fmt.Fprintf(w, `<script>(async () => {
			for (let i = 0; i < 10; i++) await fetch("/elsewhere/%d/%d?" + i).catch(() => 0);
			document.body.append("asked for all") })()</script><body>`, first, last)
	default:
		return false
	}
	return true
}

// working serves a service worker that requests targets in every way it can, and then reports.
func working(w http.ResponseWriter, targets []forbidden.Target) {
	var urls []string
	for _, target := range targets {
		urls = append(urls, target.URL)
	}
	text, _ := json.Marshal(urls) // text always marshals
	w.Header().Set("Content-Type", "text/javascript")
	_, _ = fmt.Fprintf(w, `const urls = %s;
		for (const url of urls) {
			try { importScripts(url) } catch {}
			try { new WebSocket(url.replace(/^http/, "ws")) } catch {}
		}
		self.addEventListener("install", event => event.waitUntil(
			Promise.allSettled(urls.map(url => fetch(url, {mode: "no-cors"}))).then(() => fetch("/working"))))`, text)
}
