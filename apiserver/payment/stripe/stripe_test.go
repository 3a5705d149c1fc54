package stripe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/apiserver/payment/stripe"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

const (
	key    = "sk_test_hidden"
	secret = "whsec_hidden"
)

var order = payment.Order{Key: "one try", Customer: "alice", Cluster: "c1", Cents: 1_234}

func provider(t testing.TB, api string) *stripe.Provider {
	t.Helper()
	p, err := stripe.New(stripe.Config{Key: key, Secret: secret, URL: api,
		ReturnURL: "https://shoal.test/", Clock: clock.NewManual(now)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// answering fakes Stripe's API with one fixed answer, and records the requests.
func answering(t testing.TB, status int, body string) (*stripe.Provider, *[]*http.Request) {
	t.Helper()
	var asked []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		asked = append(asked, r)
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // it fails only if the client has gone
	}))
	t.Cleanup(server.Close)
	return provider(t, server.URL), &asked
}

func TestConfigThatCannotWork(t *testing.T) {
	good := stripe.Config{Key: "rk_1", Secret: "whsec_1", ReturnURL: "https://h.test:8443"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*stripe.Config){
		"want sk_":     func(c *stripe.Config) { c.Key = "pk_live_hidden" },
		"want whsec_":  func(c *stripe.Config) { c.Secret = "hidden" },
		"want https":   func(c *stripe.Config) { c.ReturnURL = "http://h.test" },
		"want https:":  func(c *stripe.Config) { c.ReturnURL = "" },
		"want https:/": func(c *stripe.Config) { c.ReturnURL = "javascript:alert(1)" },
		"nothing else": func(c *stripe.Config) { c.ReturnURL = "https://u:hidden@h.test" },
		"and nothing":  func(c *stripe.Config) { c.ReturnURL = "https://h.test/path" },
		"a port, and":  func(c *stripe.Config) { c.ReturnURL = "https://h.test/?to=x" },
	} {
		config := good
		change(&config)
		_, err := stripe.New(config)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v, want %q", config, err, want)
		}
	}
	for _, here := range []string{"http://localhost:8080", "http://127.0.0.1", "http://[::1]:1"} {
		config := good
		if config.ReturnURL = here; config.Check() != nil {
			t.Errorf("%s: %v", here, config.Check())
		}
	}
}

// TestOpen compares the call with Stripe's documentation. The answer is a documented one, without
// the fields that we ignore.
func TestOpen(t *testing.T) {
	p, asked := answering(t, 200, `{"id": "cs_test_a1", "object": "checkout.session",
		"mode": "payment", "expires_at": 1767409445, "payment_intent": null,
		"url": "https://checkout.stripe.com/c/pay/cs_test_a1#fid"}`)
	session, err := p.Open(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	want := payment.Session{ID: "cs_test_a1", Expires: time.Unix(1767409445, 0),
		URL: "https://checkout.stripe.com/c/pay/cs_test_a1#fid"}
	if d := cmp.Diff(want, session); d != "" {
		t.Error(d)
	}
	r := (*asked)[0]
	if r.URL.Path != "/v1/checkout/sessions" || r.Header.Get("Idempotency-Key") != "one try" ||
		r.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("asked %s %v", r.URL, r.Header)
	}
	const item = "line_items[0]"
	form := url.Values{"mode": {"payment"}, item + "[quantity]": {"1"},
		item + "[price_data][currency]":           {"eur"},
		item + "[price_data][unit_amount]":        {"1234"},
		item + "[price_data][product_data][name]": {"Wallet top-up"},
		"success_url":              {"https://shoal.test/api/customer/subscription/success"},
		"cancel_url":               {"https://shoal.test/api/customer/payment/canceled"},
		"metadata[shoal_customer]": {"alice"},
		"metadata[shoal_cluster]":  {"c1"},
		"payment_intent_data[metadata][shoal_customer]": {"alice"},
		"payment_intent_data[metadata][shoal_cluster]":  {"c1"},
		"adaptive_pricing[enabled]":                     {"false"}}
	if d := cmp.Diff(form, r.PostForm); d != "" {
		t.Error(d)
	}
}

func TestOpenFails(t *testing.T) {
	long := strings.Repeat("x", 5_000)
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"refused": {401, `{"error": {"type": "invalid_request_error",
			"message": "Invalid API Key provided: sk_test_*den"}}`},
		"broken":        {500, `{"error": {"type": "api_error", "message": "down"}}`},
		"no JSON":       {200, `<html>`},
		"no address":    {200, `{"id": "cs_1", "url": null}`},
		"unsafe":        {200, `{"id": "cs_1", "url": "http://checkout.test/"}`},
		"a script":      {200, `{"id": "cs_1", "url": "javascript:alert(1)"}`},
		"no id":         {200, `{"url": "https://checkout.test/"}`},
		"a long id":     {200, `{"id": "` + long + `", "url": "https://checkout.test/"}`},
		"a long answer": {200, `{"id": "cs_1", "url": "https://c.test/", "x": "` + strings.Repeat(long, 300) + `"}`},
		"another place": {200, `{"id": "cs_1", "url": "https://c.test/` + long + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := answering(t, c.status, c.body)
			_, err := p.Open(t.Context(), order)
			if fault.CodeOf(err) != fault.ProviderFailed || strings.Contains(err.Error(), key) {
				t.Errorf("%v", err)
			}
		})
	}
	p, asked := answering(t, 200, `{}`)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Open(gone, order); fault.CodeOf(err) != fault.ProviderFailed ||
		len(*asked) > 0 {
		t.Errorf("asked after the call had ended: %v", err)
	}
}

// stripeMock returns the address of a running stripe-mock.
func stripeMock(t *testing.T) *url.URL {
	t.Helper()
	mock := os.Getenv("STRIPE_URL")
	if mock == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("STRIPE_URL is not set")
		}
		t.Skip("STRIPE_URL is not set")
	}
	at, err := url.Parse(mock)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestStripeMockTakesTheCall checks every parameter against Stripe's own description of its API.
// The mock's answers have no payment address, so the test adds one.
func TestStripeMockTakesTheCall(t *testing.T) {
	proxy := httputil.NewSingleHostReverseProxy(stripeMock(t))
	proxy.ModifyResponse = func(r *http.Response) error {
		var answer map[string]any
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
			return err
		}
		answer["url"] = "https://checkout.test/1"
		body, err := json.Marshal(answer)
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Del("Content-Length")
		r.ContentLength = int64(len(body))
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	session, err := provider(t, server.URL).Open(t.Context(), order)
	if err != nil || !strings.HasPrefix(session.ID, "cs_") {
		t.Errorf("%+v, %v", session, err)
	}
}
