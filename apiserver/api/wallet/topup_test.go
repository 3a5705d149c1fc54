package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// till is a payment provider that answers at once and sends no notices.
type till struct {
	mu     sync.Mutex
	orders []payment.Order
	fail   error
	during func() // called during a call; nil: nothing
}

func (f *till) Open(_ context.Context, order payment.Order) (payment.Session, error) {
	f.mu.Lock()
	f.orders = append(f.orders, order)
	n, fail, during := len(f.orders), f.fail, f.during
	f.mu.Unlock()
	if during != nil {
		during()
	}
	id := fmt.Sprint("cs_", n)
	return payment.Session{ID: id, URL: "https://pay.test/" + id,
		Expires: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}, fail
}

func (f *till) Read([]byte, string) (any, error) { return nil, nil }

func (f *till) Subscribe(context.Context, payment.PlanOrder) (payment.Session, error) {
	return payment.Session{}, f.fail
}

func (f *till) Amend(context.Context, payment.Amendment) (payment.Contract, error) {
	return payment.Contract{}, f.fail
}

func (f *till) End(context.Context, string) error { return f.fail }

func (f *till) Expire(context.Context, string) error { return f.fail }

func (f *till) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.orders)
}

func paidTo(p payment.Provider) apitest.Option {
	return func(c *apiserver.Config) { c.Payments = p }
}

// topUp requests a top-up under an idempotency key.
func topUp(key, body string) apitest.Scenario {
	return apitest.Scenario{Name: key + body, As: apitest.SignIn, Do: "POST /api/wallet/topup",
		Header: map[string]string{"Idempotency-Key": key}, Body: body}
}

func (sc refusal) of(status int, code string) apitest.Scenario {
	s := apitest.Scenario(sc)
	s.Status, s.Code = status, code
	return s
}

type refusal apitest.Scenario

const tenEUR = `{"amountCents": 1000}`

func TestTopUpWithoutAProvider(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "status", As: apitest.User,
		Do: "GET /api/wallet/topup/cs_1", Status: 404, Code: "top_up_not_configured"},
		refusal(topUp("k", tenEUR)).of(404, "top_up_not_configured"),
		apitest.Scenario{Name: "webhook", Do: "POST /api/subscription/webhook", Body: "{}",
			Status: 404, Code: "top_up_not_configured"})
}

func TestTopUpRefusals(t *testing.T) {
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	as := func(who string) apitest.Scenario {
		sc := topUp("k", tenEUR)
		sc.Name, sc.As = who, who
		return sc
	}
	impersonating := as(apitest.Admin)
	impersonating.Header["X-Customer-Ref"] = "alice"
	for _, sc := range []apitest.Scenario{
		refusal(as(apitest.Nobody)).of(401, "unauthorized"),
		refusal(as(apitest.User)).of(403, "sign_in_required"),
		refusal(as(apitest.LLM)).of(403, "sign_in_required"),
		refusal(as(apitest.Reader)).of(403, "sign_in_required"),
		refusal(impersonating).of(403, "sign_in_required"),
		refusal(topUp("", tenEUR)).of(400, "idempotency_key_required"),
		refusal(topUp("  ", tenEUR)).of(400, "idempotency_key_required"),
		refusal(topUp("k", `{"amountCents": 499}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{"amountCents": 100001}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{"amountCents": 1000.5}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{"amountCents": -1000}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{"amountCents": "1000"}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{"amountCents": null}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{}`)).of(400, "invalid_request"),
		refusal(topUp("k", `{"amountCents": 1000, "returnUrl": "https://evil.test"}`)).of(400,
			"unknown_field"),
	} {
		s.Run(t, sc)
	}
	if n := provider.asked(); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

func TestTopUpIsStartedOnce(t *testing.T) {
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	least, most := topUp("least", `{"amountCents": 500}`), topUp("most", `{"amountCents": 100000}`)
	least.Status, most.Status = 200, 200
	least.Has = map[string]any{"url": "https://pay.test/cs_1", "sessionId": "cs_1"}
	most.Has = map[string]any{"sessionId": "cs_2"}
	again := least
	again.Name, again.Headers = "again", map[string]string{"Idempotency-Replayed": "true"}
	status := func(as, session string, code int, want string) apitest.Scenario {
		sc := apitest.Scenario{Name: as + session, As: as,
			Do: "GET /api/wallet/topup/" + session, Status: code}
		if sc.Code = want; code == 200 {
			sc.Code, sc.Has = "", map[string]any{"status": want}
		}
		return sc
	}
	s.Run(t, least, most, again,
		refusal(topUp("least", tenEUR)).of(422, "idempotency_key_reused"),
		status(apitest.SignIn, "cs_1", 200, "OPEN"), status(apitest.Reader, "cs_1", 200, "OPEN"),
		status(apitest.Other, "cs_1", 404, "top_up_not_found"),
		status(apitest.User, "cs_9", 404, "top_up_not_found"))
	if provider.asked() != 2 || provider.orders[0].Customer != "alice" ||
		provider.orders[0].Cents != 500 || provider.orders[0].Cluster == "" ||
		provider.orders[0].Key == provider.orders[1].Key {
		t.Errorf("asked %+v", provider.orders)
	}
	if known := s.Client.View().TopUp("cs_2"); known.Asked != 1_000_000_000 {
		t.Errorf("noted %+v", known)
	}
}

// TestTopUpInFlight: an unfinished call holds its key, and other calls do not ask the provider.
func TestTopUpInFlight(t *testing.T) {
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	var during apitest.Answer
	provider.during = func() { during = s.Call(t, topUp("k", tenEUR)) }
	first := s.Call(t, topUp("k", tenEUR))
	if first.Status != 200 || during.Status != 409 || during.Text("code") !=
		"idempotency_in_flight" || provider.asked() != 1 {
		t.Errorf("first %d, meanwhile %s, asked %d times", first.Status, during.Body,
			provider.asked())
	}
}

// TestTopUpKeysTogether: any number of concurrent calls with one key make one session.
func TestTopUpKeysTogether(t *testing.T) {
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	const calls = 64
	answers := make(chan apitest.Answer, calls)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { answers <- s.Call(t, topUp("k", tenEUR)) })
	}
	all.Wait()
	close(answers)
	for a := range answers {
		if a.Status != 409 && (a.Status != 200 || a.Text("sessionId") != "cs_1") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if n := provider.asked(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// TestTopUpsByTheThousand: of 64 concurrent calls for each of 1,000 keys, one makes a session. Each
// session is paid, reported 64 times at once, and credited once.
func TestTopUpsByTheThousand(t *testing.T) {
	keys := 1_000
	if testing.Short() {
		keys = 50
	}
	const calls = 64
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	balance := s.Client.View().Wallet("alice").Balance()
	var refused atomic.Int64
	for n := range keys {
		key, session := fmt.Sprint("key ", n), fmt.Sprint("cs_", n+1)
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				a := s.Call(t, topUp(key, tenEUR))
				if a.Status == 409 && a.Text("code") == "idempotency_in_flight" {
					refused.Add(1)
				} else if a.Status != 200 || a.Text("sessionId") != session {
					t.Errorf("%s: %d %s", key, a.Status, a.Body)
				}
			})
		}
		all.Wait()
		for range calls {
			all.Go(func() {
				s.Client.Must(t, client.PayTopUp{Session: session, Payment: "pi" + session,
					Customer: "alice", Amount: 10_000_000, Entry: s.IDs.New()})
			})
		}
		all.Wait()
	}
	view := s.Client.View()
	if n := provider.asked(); n != keys || view.OpenTopUps("alice") != 0 {
		t.Errorf("%d sessions for %d keys, and %d are open", n, keys, view.OpenTopUps("alice"))
	}
	if got := view.Wallet("alice").Balance() - balance; got != int64(keys)*10_000_000 {
		t.Errorf("%d micros were credited for %d keys", got, keys)
	}
	if n := view.Customer("alice").Claims; n != keys {
		t.Errorf("%d idempotency records for %d keys", n, keys)
	}
	t.Logf("%d keys, %d calls, of which %d came while the first was under way", keys, keys*calls,
		refused.Load())
}

// TestTopUpCanBeTriedAgain: a failing provider leaves the key free, and nothing else.
func TestTopUpCanBeTriedAgain(t *testing.T) {
	provider := &till{fail: fault.New(fault.ProviderFailed, "down")}
	s := apitest.Start(t, paidTo(provider))
	s.Run(t, refusal(topUp("k", tenEUR)).of(502, "payment_provider_failed"))
	if s.Client.View().OpenTopUps("alice") != 0 {
		t.Error("something is open")
	}
	provider.fail = nil
	again := topUp("k", tenEUR)
	again.Status, again.Headers = 200, map[string]string{"Idempotency-Replayed": ""}
	s.Run(t, again)
}

// TestTopUpOfTheKilled: a process that dies between the provider's answer and the command leaves
// the key claimed for two minutes. Then the same call makes another session.
func TestTopUpOfTheKilled(t *testing.T) {
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	provider.during = func() { s.Client.Fail(errors.New("killed")) }
	if a := s.Call(t, topUp("k", tenEUR)); a.Status != 500 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	provider.during = nil
	s.Client.Fail(nil)
	s.Run(t, refusal(topUp("k", tenEUR)).of(409, "idempotency_in_flight"))
	s.Clock.Advance(3 * time.Minute)
	s.Client.Tick(t)
	again := topUp("k", tenEUR)
	again.Status, again.Has = 200, map[string]any{"sessionId": "cs_2"}
	s.Run(t, again)
}

func TestTopUpsOpenAreBounded(t *testing.T) {
	s := apitest.Start(t, paidTo(&till{}))
	for n := range 100 {
		s.Client.Must(t, client.OpenTopUp{Session: fmt.Sprint("old ", n), Customer: "alice",
			Amount: 1, Expires: 1})
	}
	s.Run(t, refusal(topUp("k", tenEUR)).of(402, "limit_reached"))
}

func TestTopUpRate(t *testing.T) {
	s := apitest.Start(t, paidTo(&till{}), apitest.WithRateLimits)
	for n := range 6 {
		want := 200
		if n == 5 {
			want = 429
		}
		if a := s.Call(t, topUp(strings.Repeat("k", n+1), tenEUR)); a.Status != want {
			t.Errorf("call %d: %d %s", n+1, a.Status, a.Body)
		}
	}
}

// While billing is off, the provider is not asked. A session that is being opened when billing is
// switched off is not handed out.
func TestTopUpWhileBillingIsOff(t *testing.T) {
	provider := &till{}
	s := apitest.Start(t, paidTo(provider))
	bill := func(on bool) {
		off := !on
		s.Client.Must(t, client.PutSettings{BillingOff: &off})
	}
	bill(false)
	s.Run(t, refusal(topUp("a", tenEUR)).of(404, "top_up_not_configured"))
	if provider.asked() > 0 {
		t.Error("the provider was asked")
	}
	bill(true)
	provider.during = func() { bill(false) }
	s.Run(t, refusal(topUp("a", tenEUR)).of(404, "top_up_not_configured"))
	provider.during = nil
	bill(true)
	begun := topUp("a", tenEUR) // the refusal was not kept under the key
	begun.Status, begun.Headers = 200, map[string]string{"Idempotency-Replayed": ""}
	s.Run(t, begun)
	bill(false)
	begun.Name, begun.Headers = "again", map[string]string{"Idempotency-Replayed": "true"}
	s.Run(t, begun, apitest.Scenario{Name: "status", As: apitest.User,
		Do: "GET /api/wallet/topup/cs_2", Status: 200, Has: map[string]any{"status": "OPEN"}})
}
