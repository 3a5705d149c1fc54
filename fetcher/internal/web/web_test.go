package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

func TestWeb(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("User-agent: *\nDisallow: /private\nCrawl-delay: 3\n"))
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>x</h1>"))
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.Handle("/moved", http.RedirectHandler("/page", http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	client, err := egress.New(egress.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	site, err := Open(t.Context(), client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	ctx := context.Background()

	if site.KnowsRules(server.URL + "/page") {
		t.Error("robots.txt is known before it is asked for")
	}
	if delay, err := site.CheckRules(ctx, "", server.URL+"/page"); err != nil ||
		delay != 3*time.Second {
		t.Errorf("robots.txt says %v, %v", delay, err)
	}
	var failure *Failure
	if _, err := site.CheckRules(ctx, "", server.URL+"/private/x"); !errors.As(err, &failure) ||
		failure.Code != fault.PageRobots {
		t.Errorf("robots.txt says %v of a forbidden page", err)
	}
	if !site.KnowsRules(server.URL+"/page") || !site.Tiers().Has(model.Plain) {
		t.Error("robots.txt is not known, or tier plain is not there")
	}

	asked := ""
	follow := func(_ context.Context, to string, _ *curl.Request) error { asked = to; return nil }
	response, err := site.Fetch(ctx, Request{URL: server.URL + "/moved", BeforeHop: follow})
	if err != nil {
		t.Fatal(err)
	}
	if response.Final != server.URL+"/page" || asked != response.Final || response.Status != 200 ||
		string(response.Body) != "<h1>x</h1>" || response.ContentType != "text/html" ||
		response.Wire == 0 {
		t.Errorf("response is %+v, asked for %q", response, asked)
	}
	response.Release()

	own := errors.New("a refusal of the caller's")
	refuse := func(context.Context, string, *curl.Request) error { return own }
	if _, err := site.Fetch(ctx,
		Request{URL: server.URL + "/moved", BeforeHop: refuse}); !errors.Is(err, own) {
		t.Errorf("a refused redirect ends with %v", err)
	}
	_, err = site.Fetch(ctx, Request{URL: server.URL + "/busy"})
	if !errors.As(err, &failure) || failure.Code != fault.PageStatus || failure.Status != 503 ||
		!failure.Retry ||
		failure.RetryAfter != 7*time.Second || failure.Final != server.URL+"/busy" {
		t.Errorf("a busy host gives %+v", failure)
	}
}

func TestPageCode(t *testing.T) {
	for from, want := range map[fault.Code]fault.Code{
		fault.PageDNS: fault.PageDNS, fault.InvalidURL: fault.PageInvalidURL,
		fault.Unavailable: fault.PageTimeout,
		fault.Internal:    fault.PageProtocol, "no such code": fault.PageProtocol,
	} {
		if got := pageCode(from); got != want {
			t.Errorf("%s becomes %s, want %s", from, got, want)
		}
	}
}
