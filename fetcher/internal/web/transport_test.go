package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
)

const forbidden = "http://127.0.0.2/"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEgress makes a client that reaches 127.0.0.1 only. The tests' forbidden addresses are on this
// machine, too.
func newEgress(t testing.TB, config egress.Config) *egress.Client {
	t.Helper()
	config.Allow = append(config.Allow, netip.MustParsePrefix("127.0.0.1/32"))
	client, err := egress.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// web serves every host under .example from one handler.
func web(t testing.TB, handler http.HandlerFunc) *egress.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newEgress(t, egress.Config{Origins: map[string]string{
		"*.example": server.Listener.Addr().String()}})
}

func failureOf(t *testing.T, page *Page, err error) *Failure {
	t.Helper()
	var failed *Failure
	if page != nil || !errors.As(err, &failed) {
		t.Fatalf("got %v, %v; want an *Failure", page, err)
	}
	return failed
}

func TestFetch(t *testing.T) {
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=ISO-8859-1")
		fmt.Fprintf(w, "<p>caf\xe9 %s", r.UserAgent())
	})
	page, err := newTransport(client, Config{UserAgent: "Tester/1.0"}, nil).Fetch(t.Context(),
		Request{URL: "http://A.example:80/x#y"})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Release()
	if string(page.Body) != "<p>café Tester/1.0" || page.Status != 200 ||
		page.Final != "http://a.example/x" ||
		page.ContentType != "text/html; charset=ISO-8859-1" || page.Wire == 0 {
		t.Errorf("got %+v, body %q", page, page.Body)
	}
}

func TestRedirects(t *testing.T) {
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/start":
			http.Redirect(w, r, "http://b.example/middle?x=1", http.StatusMovedPermanently)
		case "/middle":
			w.Header().Set("Location", "end#part")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "/end":
			io.WriteString(w, r.Host)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/private":
			http.Redirect(w, r, forbidden, http.StatusFound)
		case "/mail":
			w.Header().Set("Location", "mailto:a@b.example")
			w.WriteHeader(http.StatusFound)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		}
	})
	transport := newTransport(client, Config{}, nil)
	var hops []string
	record := func(_ context.Context, url string,
		_ *curl.Request) error {
		hops = append(hops, url)
		return nil
	}
	page, err := transport.Fetch(t.Context(),
		Request{URL: "http://a.example/start", BeforeHop: record})
	if err != nil {
		t.Fatal(err)
	}
	if string(page.Body) != "b.example" || page.Hops != 2 ||
		page.Final != "http://b.example/end" {
		t.Errorf("%q after %d hops at %s", page.Body, page.Hops, page.Final)
	}
	if got := strings.Join(hops, " "); got != "http://b.example/middle?x=1 http://b.example/end" {
		t.Errorf("hops %s", got)
	}
	page.Release()
	for path, want := range map[string]fault.Code{
		"/loop": fault.PageRedirects, "/private": fault.PageAddressForbidden,
		"/mail": fault.PageInvalidURL, "/nowhere": fault.PageStatus,
	} {
		page, err := transport.Fetch(t.Context(), Request{URL: "http://a.example" + path})
		if failed := failureOf(t, page, err); failed.Code != want || failed.Retry ||
			failed.Wire == 0 {
			t.Errorf("%s: %v, retry %v", path, err, failed.Retry)
		}
	}
}

// garbled is a tier, and its answer, whose header cannot be read.
type garbled struct{ released int }

func (u *garbled) fetch(_ context.Context, _ *Request, _ time.Time, page *Page) error {
	page.Status, page.Body, page.Answer = 200, []byte("<p>x"), u
	return nil
}

func (u *garbled) Header(string) string { panic("a reader's") }
func (u *garbled) Release()             { u.released++ }

// A page whose reading panics is unparsable. It is released, and kept as far as it was received.
func TestPanicOfAPage(t *testing.T) {
	dir := t.TempDir()
	transport := newTransport(newEgress(t, egress.Config{}),
		Config{Reader: reading.New("fetcher", reading.Config{Dir: dir})}, nil)
	page := &garbled{}
	transport.tiers[model.Plain] = page
	got, err := transport.Fetch(t.Context(), Request{URL: "http://a.example/"})
	if failed := failureOf(t, got, err); failed.Code != fault.PageUnparsable || failed.Retry ||
		failed.Status != 200 {
		t.Errorf("%+v", failed)
	}
	if page.released != 1 {
		t.Errorf("the page is given back %d times", page.released)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "*.page"))
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	if body, err := os.ReadFile(kept[0]); string(body) != "<p>x" {
		t.Errorf("kept: %q, %v", body, err)
	}
}

func TestBeforeHop(t *testing.T) {
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "a.example" {
			t.Errorf("%s was asked", r.Host)
		}
		http.Redirect(w, r, "http://b.example/", http.StatusFound)
	})
	own := errors.New("own")
	refuse := func(err error) func(context.Context, string, *curl.Request) error {
		return func(context.Context, string, *curl.Request) error { return err }
	}
	patient, hasty := newTransport(client, Config{}, nil),
		newTransport(client, Config{Timeout: 100 * time.Millisecond}, nil)
	ask := Request{URL: "http://a.example/"}

	ask.BeforeHop = refuse(own)
	if _, err := patient.Fetch(t.Context(), ask); !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
	refused := refusal(fault.New(fault.PageRobots, "no"), true)
	refused.Wait = time.Second
	ask.BeforeHop = refuse(refused)
	page, err := patient.Fetch(t.Context(), ask)
	if failed := failureOf(t, page, err); failed.Code != fault.PageRobots || !failed.Retry ||
		failed.Wait != time.Second {
		t.Errorf("got %v, retry %v", err, failed.Retry)
	}
	ask.BeforeHop = func(ctx context.Context, _ string,
		_ *curl.Request) error {
		<-ctx.Done()
		return ctx.Err()
	}
	page, err = hasty.Fetch(t.Context(), ask)
	if failed := failureOf(t, page, err); failed.Code != fault.PageTimeout || !failed.Retry {
		t.Errorf("got %v, retry %v", err, failed.Retry)
	}
}

// TestOneDeadline: each hop alone is quick enough, but all together are not.
func TestOneDeadline(t *testing.T) {
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	page, err := newTransport(client, Config{Timeout: 2 * time.Second}, nil).Fetch(t.Context(),
		Request{URL: "http://a.example/"})
	if failed := failureOf(t, page, err); failed.Code != fault.PageTimeout ||
		failed.Hops == 0 {
		t.Errorf("got %v after %d hops", err, failed.Hops)
	}
}

func TestStatuses(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	})
	transport := newTransport(client, Config{Clock: clock.NewManual(now)}, nil)
	for _, test := range []struct {
		status int
		after  string
		retry  bool
		wait   time.Duration
	}{
		{404, "", false, 0}, {410, "", false, 0}, {401, "", false, 0}, {403, "", false, 0},
		{304, "", false, 0},
		{408, "", true, 0}, {429, "7", true, 7 * time.Second}, {503, "+1", true, 0},
		{500, "-1", true, 0}, {502, "999999", true, MaxRetryAfter},
		{503, "Wed, 04 Mar 2026 05:06:37 GMT", true, 30 * time.Second},
		{503, "Wed, 04 Mar 2020 05:06:37 GMT", true, 0},
		{503, "Wed, 04 Mar 2099 05:06:37 GMT", true, MaxRetryAfter}, {503, "soon", true, 0},
	} {
		url := fmt.Sprintf("http://a.example/%d?after=%s", test.status,
			strings.NewReplacer(" ", "%20", "+", "%2B").Replace(test.after))
		page, err := transport.Fetch(t.Context(), Request{URL: url})
		failed := failureOf(t, page, err)
		if failed.Code != fault.PageStatus || failed.Status != test.status ||
			failed.Retry != test.retry || failed.RetryAfter != test.wait {
			t.Errorf("%d, %q: %v, retry %v after %s", test.status, test.after, err, failed.Retry,
				failed.RetryAfter)
		}
	}
}

func TestFailuresOfTheNetwork(t *testing.T) {
	closed := httptest.NewServer(nil)
	place := closed.Listener.Addr().String()
	closed.Close()
	transport := newTransport(newEgress(t,
		egress.Config{Origins: map[string]string{"*.example": place}}), Config{MaxBody: 10}, nil)
	for url, want := range map[string]struct {
		code  fault.Code
		retry bool
	}{
		"http://a.example/": {fault.PageConnect, true},
		forbidden:           {fault.PageAddressForbidden, false},
		"nonsense":          {fault.PageInvalidURL, false},
	} {
		page, err := transport.Fetch(t.Context(), Request{URL: url})
		if failed := failureOf(t, page, err); failed.Code != want.code ||
			failed.Retry != want.retry || failed.Status != 0 {
			t.Errorf("%s: %v, retry %v", url, err, failed.Retry)
		}
	}
	page, err := transport.Fetch(t.Context(), Request{URL: "http://a.example/", Tier: model.Render})
	if failed := failureOf(t, page, err); failed.Code != fault.PageTimeout {
		t.Errorf("tier that is not there: %v", err)
	}
	if transport.Tiers() != model.TiersOf(model.Plain) {
		t.Errorf("tiers %s", transport.Tiers())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transport.Fetch(ctx, Request{URL: "http://a.example/"}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
