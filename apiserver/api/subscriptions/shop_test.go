package subscriptions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/payment/stripe"
)

const secret = "whsec_hidden"

// shop fakes the part of Stripe's API that subscriptions use, and its data.
type shop struct {
	*apitest.Server
	t *testing.T

	mu       sync.Mutex
	sessions []map[string]string // metadata of the subscription that each would create
	subs     map[string]*sub
	fail     bool   // every call fails
	during   func() // called during each call; nil: nothing
	asked    int
}

type sub struct {
	ID                string            `json:"id"`
	Status            string            `json:"status"`
	Created           int64             `json:"created"`
	CancelAtPeriodEnd bool              `json:"cancel_at_period_end"`
	Metadata          map[string]string `json:"metadata"`
	Items             struct {
		Data []item `json:"data"`
	} `json:"items"`
}

type item struct {
	ID        string `json:"id"`
	PeriodEnd int64  `json:"current_period_end"`
	Price     struct {
		Product string `json:"product"`
		Cents   int    `json:"unit_amount"`
		// Currency is always EUR.
		Currency string `json:"currency"`
	} `json:"price"`
}

const monthSeconds = 30 * 24 * 60 * 60

// openShop starts a server whose payment provider is a shop.
func openShop(t *testing.T, options ...apitest.Option) *shop {
	t.Helper()
	s := &shop{t: t, subs: map[string]*sub{}}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	s.Server = apitest.Start(t, append(options, func(c *apiserver.Config) {
		provider, err := stripe.New(stripe.Config{Key: "sk_test_hidden", Secret: secret,
			ReturnURL: "https://shoal.test", URL: api.URL, Clock: c.Clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(provider.Close)
		c.Payments = provider
	})...)
	return s
}

// ServeHTTP implements http.Handler.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fail, during := s.fail, s.during
	s.asked++
	s.mu.Unlock()
	if during != nil {
		defer during()
	}
	w.Header().Set("Stripe-Should-Retry", "false")
	if err := r.ParseForm(); err != nil || fail {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error": {"type": "api_error"}}`))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strings.TrimPrefix(r.URL.Path, "/v1/subscriptions/")
	known := s.subs[id]
	switch {
	case r.URL.Path == "/v1/checkout/sessions":
		meta := members(r, "subscription_data[metadata]")
		meta["cents"] = r.Form.Get("line_items[0][price_data][unit_amount]")
		s.sessions = append(s.sessions, meta)
		id := fmt.Sprint("cs_", len(s.sessions))
		_, _ = fmt.Fprintf(w, `{"id": %q, "url": "https://pay.test/%s", "expires_at": %d}`, id, id,
			s.Clock.Now().Add(24*time.Hour).Unix())
		return
	case known == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error": {"type": "invalid_request_error"}}`))
		return
	case r.Method == http.MethodDelete:
		known.Status = "canceled"
	case r.Method == http.MethodPost:
		known.CancelAtPeriodEnd = r.Form.Get("cancel_at_period_end") == "true"
		for name, value := range members(r, "metadata") {
			known.Metadata[name] = value
		}
		if cents := r.Form.Get("items[0][price_data][unit_amount]"); cents != "" {
			known.Items.Data[0].Price.Cents, _ = strconv.Atoi(cents)
		}
	}
	_ = json.NewEncoder(w).Encode(known)
}

func members(r *http.Request, of string) map[string]string {
	found := map[string]string{}
	for name := range r.Form {
		if key, is := strings.CutPrefix(name, of+"["); is {
			found[strings.TrimSuffix(key, "]")] = r.Form.Get(name)
		}
	}
	return found
}

// pay pays a session, counted from 1, and returns its notice.
func (s *shop) pay(session int, id string) apitest.Scenario {
	s.mu.Lock()
	made := &sub{ID: id, Status: "active", Created: s.Clock.Now().Unix() + int64(session),
		Metadata: map[string]string{}}
	for name, value := range s.sessions[session-1] {
		made.Metadata[name] = value
	}
	made.Items.Data = []item{{ID: "si_1", PeriodEnd: s.Clock.Now().Unix() + monthSeconds}}
	made.Items.Data[0].Price.Product = "prod_1"
	made.Items.Data[0].Price.Currency = "eur"
	made.Items.Data[0].Price.Cents, _ = strconv.Atoi(made.Metadata["cents"])
	s.subs[id] = made
	s.mu.Unlock()
	return s.told("customer.subscription.created", id)
}

// told is a notice of a subscription's state.
func (s *shop) told(kind, id string) apitest.Scenario {
	s.mu.Lock()
	object, err := json.Marshal(s.subs[id])
	s.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.notice(kind, string(object))
}

// notice is a notice as Stripe would send it now.
func (s *shop) notice(kind, object string) apitest.Scenario {
	body := fmt.Sprintf(`{"id": "evt_1", "object": "event", "created": %d, "type": %q,
		"data": {"object": %s}}`, s.Clock.Now().Unix(), kind, object)
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body),
		Secret: secret, Timestamp: s.Clock.Now()})
	return apitest.Scenario{Name: kind, Do: "POST /api/subscription/webhook", Body: body,
		Header: map[string]string{"Stripe-Signature": signed.Header,
			"Content-Type": "application/json"}, Status: 204}
}

// set changes the shop under its lock.
func (s *shop) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// open is alice's open checkout; "": none.
func (s *shop) open() string { return s.Client.View().Subscription("alice").Checkout.Session }

// allEnd expects that the provider must end each session but an open one. A paid one has ended, so
// asking for its end does nothing.
func (s *shop) allEnd(t *testing.T) {
	t.Helper()
	want := len(s.sessions)
	if s.open() != "" {
		want--
	}
	if stale := s.Client.View().Subscription("alice").Stale; len(stale) != want {
		t.Errorf("to be ended are %v, want %d", stale, want)
	}
}

// cents is the price of a subscription's next period.
func (s *shop) cents(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subs[id].Items.Data[0].Price.Cents
}
