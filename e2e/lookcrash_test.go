package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"shoal.dev/shoal/e2e/suite"
)

// TestLooksOfTheKilled kills the process while a page is looked at, before and after the page has
// come. A new look gets the page of the first look, and only that is paid.
func TestLooksOfTheKilled(t *testing.T) {
	t.Parallel()
	asked, goes := make(chan struct{}), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		select {
		case asked <- struct{}{}:
			select {
			case <-goes:
			case <-r.Context().Done():
			}
		case <-goes: // from now on nobody waits
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<ul><li><b>One</b><li><b>Two</b><li><b>Three</b></ul>")
	}))
	t.Cleanup(site.Close)
	product := &single{data: t.TempDir(), args: append(suite.Fast(), "--egress-allow",
		"127.0.0.0/8", "--egress-origin", "slow.example="+site.Listener.Addr().String(),
		"--chromium", "none", "--no-rate-limits")}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	look := func(ctx context.Context) error {
		return s.Call(ctx, "POST", "/api/scraper-simple/page", url.Values{},
			map[string]string{"url": "http://slow.example/"}, nil)
	}
	killed := make(chan error, 1)
	go func() { killed <- look(t.Context()) }()
	<-asked
	product.p.Kill()
	if err := <-killed; err == nil {
		t.Fatal("who was killed has answered")
	}
	close(goes)
	product.Up(t)
	s.Client = product.Self()
	if err := look(t.Context()); err != nil {
		t.Fatal(err)
	}
	product.p.Kill() // its memory is lost
	product.Up(t)
	s.Client = product.Self()
	if err := look(t.Context()); err != nil {
		t.Fatal(err)
	}
	ledger := suite.Must(s.Ledger(t.Context()))(t)
	paid := 0
	for _, entry := range ledger {
		if entry.Source == "PREVIEW_URL" {
			paid++
		}
	}
	if paid != 1 {
		t.Errorf("the page was paid %d times, want once: %+v", paid, ledger)
	}
	s.CheckBooks()
	product.Down(t)
}
