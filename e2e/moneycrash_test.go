package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

const (
	paySecret = "whsec_of_the_test"
	// endingRest is how long the product rests when nothing is left to end.
	endingRest = 10 * time.Second
)

// till is the part of the payment provider's API that subscriptions need. It outlives the product,
// and can kill it at a call, before or after the call's effect.
type till struct {
	t *testing.T

	mu       sync.Mutex
	sessions map[string]string // status by id
	byKey    map[string]string // session by idempotency key
	sold     map[string]map[string]string
	contract string // status of sub_1
	calls    int    // calls that sell or end something, while armed
	killAt   int    // which of them kills, from 1; 0: none
	behind   bool
	kill     func()
}

func openTill(t *testing.T) (*till, string) {
	t.Helper()
	f := &till{t: t, sessions: map[string]string{}, byKey: map[string]string{},
		sold: map[string]map[string]string{}, contract: "active"}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

// ServeHTTP implements http.Handler.
func (f *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch err := r.ParseForm(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return // the process died while sending
	case err != nil:
		f.t.Error(err)
	}
	id, ends := strings.CutPrefix(r.URL.Path, "/v1/checkout/sessions/")
	switch id = strings.TrimSuffix(id, "/expire"); {
	case r.URL.Path == "/v1/checkout/sessions":
		id := ""
		f.may(func() { id = f.sell(r) })
		_, _ = fmt.Fprintf(w, `{"id": %q, "url": "https://pay.test/%s", "expires_at": %d}`, id, id,
			time.Now().Add(24*time.Hour).Unix())
	case ends:
		f.may(func() {
			if f.sessions[id] == "open" {
				f.sessions[id] = "expired"
			}
		})
		_, _ = fmt.Fprintf(w, `{"id": %q}`, id)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/subscriptions/sub_1":
		_, _ = w.Write([]byte(`{"id": "sub_1", "customer": "cus_1"}`))
	case r.Method == http.MethodDelete && r.URL.Path == "/v1/subscriptions/sub_1":
		f.may(func() { f.contract = "canceled" })
		_, _ = w.Write([]byte(`{"id": "sub_1"}`))
	default:
		f.t.Errorf("%s %s is not known", r.Method, r.URL.Path)
	}
}

// sell makes a session, one per idempotency key, and keeps what the product notes on the sale.
func (f *till) sell(r *http.Request) string {
	key := r.Header.Get("Idempotency-Key")
	id, known := f.byKey[key]
	if !known {
		id = fmt.Sprint("cs_", len(f.sessions)+1)
		f.byKey[key], f.sessions[id], f.sold[id] = id, "open", map[string]string{}
		for name := range r.Form {
			for _, note := range []string{"metadata[", "subscription_data[metadata]["} {
				if member, is := strings.CutPrefix(name, note); is {
					f.sold[id][strings.TrimSuffix(member, "]")] = r.Form.Get(name)
				}
			}
		}
	}
	return id
}

// arm makes the call-th call that sells or ends something kill the product, counted from the first
// of all; 0: none does.
func (f *till) arm(kill func(), call int, behind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kill, f.killAt, f.behind = kill, call, behind
}

// may sells or ends something, and may kill the product. mu is held.
func (f *till) may(effect func()) {
	if f.kill != nil {
		f.calls++
	}
	if f.kill == nil || f.calls != f.killAt {
		effect()
		return
	}
	if f.behind {
		effect()
	}
	f.kill()
}

// asked is how many of these calls have come while armed.
func (f *till) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// state describes all sessions and the contract.
func (f *till) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%v, the contract is %s", f.sessions, f.contract)
}

// tell delivers a notice, with as many tries as it takes.
func (c *crashCase) tell(kind string, object any) {
	c.T.Helper()
	c.survive(kind, c.notice(kind, object))
}

// notice returns a call that delivers a notice once.
func (c *crashCase) notice(kind string, object any) func(context.Context) error {
	c.T.Helper()
	told, err := json.Marshal(map[string]any{"id": "evt_1", "object": "event", "type": kind,
		"created": time.Now().Unix(), "data": map[string]any{"object": object}})
	if err != nil {
		c.T.Fatal(err)
	}
	return func(ctx context.Context) error {
		at := time.Now().Unix()
		sum := hmac.New(sha256.New, []byte(paySecret))
		_, _ = fmt.Fprintf(sum, "%d.%s", at, told) // a hash accepts everything
		request, err := http.NewRequestWithContext(ctx, http.MethodPost,
			c.Server+"/api/subscription/webhook", strings.NewReader(string(told)))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Stripe-Signature",
			fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(sum.Sum(nil))))
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent {
			return fmt.Errorf("the notice is answered %d", answer.StatusCode)
		}
		return nil
	}
}

// contractOf is the subscription that a session sold, in the provider's format.
func (f *till) contractOf(session string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[session] = "complete"
	return map[string]any{"id": "sub_1", "object": "subscription", "status": f.contract,
		"created": time.Now().Unix(), "metadata": f.sold[session],
		"items": map[string]any{"data": []any{map[string]any{"id": "si_1",
			"current_period_end": time.Now().Add(30 * 24 * time.Hour).Unix()}}}}
}

// selling is a product with a payment provider.
func selling(t *testing.T) (*crashCase, *till) {
	t.Helper()
	f, address := openTill(t)
	web := newWeb(t, synthweb.Config{Hosts: 1, PagesPerHost: 1, PageBytes: []int{2500}})
	dir := t.TempDir()
	key, secret := filepath.Join(dir, "key"), filepath.Join(dir, "secret")
	for path, text := range map[string]string{key: "sk_test_1", secret: paySecret} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append(suite.Fast(), "--no-rate-limits", "--stripe-key-file", key,
		"--stripe-secret-file", secret, "--stripe-return-url", "http://localhost",
		"--stripe-url", address)
	c := &crashCase{service: &service{single: newSingle(t, args, web)}}
	c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
	c.bring()
	return c, f
}

// subscribed is a product whose customer has paid for BASIC, and then asked for two others.
func subscribed(t *testing.T) (*crashCase, *till, map[string]any) {
	t.Helper()
	c, f := selling(t)
	move := func(way, plan string) {
		if err := c.Call(t.Context(), "POST", "/api/subscription/"+way, nil,
			map[string]string{"plan": plan}, nil); err != nil {
			t.Fatalf("%s %s: %v", way, plan, err)
		}
	}
	move("create", "BASIC")
	contract := f.contractOf("cs_1")
	c.tell("customer.subscription.created", contract)
	move("change", "PRO")
	c.Down(t)
	began := time.Now()
	c.bring()
	// Anything to end from now on waits for the next process.
	c.awaitWorkSince("contracts", began.Add(endingRest))
	move("change", "BUSINESS")
	return c, f, contract
}

// TestCrashesOfSubscriptions kills the process around each call that ends something at the payment
// provider, and in the work that makes these calls. Meanwhile the customer is removed, and notices
// arrive. In the end nothing can be paid any more, and each reported payment is booked once.
func TestCrashesOfSubscriptions(t *testing.T) {
	t.Parallel()
	type kill struct {
		name, env string
		call      int
		behind    bool
	}
	kills := []kill{{name: "none"}}
	for call := 1; call <= 2; call++ {
		kills = append(kills, kill{fmt.Sprint("before call ", call), "", call, false},
			kill{fmt.Sprint("behind call ", call), "", call, true})
	}
	for _, point := range []string{"work.contracts.before_step:1", "work.contracts.after_step:1",
		"work.contracts.before_end:1", "work.contracts.after_end:1", "work.contracts.after_end:2",
		"work.contracts.after_end:3"} {
		kills = append(kills, kill{name: point, env: crash.At + "=" + point})
	}
	for _, k := range share(t, kills) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c, f, contract := subscribed(t)
			ref := suite.Must(c.Whoami(t.Context()))(t)
			if k.env != "" {
				c.Down(t)
				c.bring(k.env)
			}
			f.arm(c.p.Kill, k.call, k.behind)
			c.tell("customer.subscription.updated", contract)
			invoice := map[string]any{"id": "in_1", "status": "paid", "currency": "eur",
				"total": 2_900, "created": time.Now().Unix(), "parent": map[string]any{
					"subscription_details": map[string]any{"metadata": contract["metadata"]}}}
			for range 2 {
				c.tell("invoice.paid", invoice)
			}
			c.survive("history", func(ctx context.Context) error {
				var list struct{ TotalElements int }
				err := c.Call(ctx, "GET", "/api/billing-history", nil, nil, &list)
				if err == nil && list.TotalElements != 1 {
					t.Errorf("%d invoices", list.TotalElements)
				}
				return err
			})
			c.removeCustomer(ref)
			const want = "map[cs_1:complete cs_2:expired cs_3:expired], the contract is canceled"
			for ctx := suite.Within(t, suite.Patience); f.state() != want; {
				select {
				case <-c.p.Ended():
					if !c.buried() {
						t.Fatal("the process survives its end")
					}
					c.bring()
				case <-ctx.Done():
					t.Fatalf("in the end: %s", f.state())
				case <-time.After(100 * time.Millisecond):
				}
			}
			if k.name != "none" && len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			// One start ends what a dead process had not noted; the next finds nothing to end.
			var asked int
			for range 2 {
				asked = f.asked()
				c.Down(t)
				began := time.Now()
				c.bring()
				c.awaitWorkSince("contracts", began.Add(endingRest))
			}
			if f.asked() != asked {
				t.Errorf("what has ended is ended again: %d calls, and then %d", asked, f.asked())
			}
			// Late notices from the provider change nothing.
			contract["status"] = "active"
			c.tell("customer.subscription.updated", contract)
			c.tell("customer.subscription.deleted", contract)
			if f.state() != want {
				t.Errorf("afterwards: %s", f.state())
			}
		})
	}
}
