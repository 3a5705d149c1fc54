package wallet_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/payment/stripe"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
)

const secret = "whsec_hidden"

// stripeServer starts a server with Stripe as its payment provider.
func stripeServer(t *testing.T) *apitest.Server {
	return apitest.Start(t, func(c *apiserver.Config) {
		provider, err := stripe.New(stripe.Config{Key: "sk_test_hidden", Secret: secret,
			ReturnURL: "https://shoal.test", Clock: c.Clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(provider.Close)
		c.Payments = provider
	})
}

// told is a notice as Stripe would send it now.
func told(s *apitest.Server, kind, object string) apitest.Scenario {
	body := fmt.Sprintf(`{"id": "evt_1", "object": "event", "type": %q, "data": {"object": %s}}`+
		"\n", kind, object)
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body),
		Secret: secret, Timestamp: s.Clock.Now()})
	return apitest.Scenario{Name: kind, Do: "POST /api/subscription/webhook", Body: body,
		Header: map[string]string{"Stripe-Signature": signed.Header,
			"Content-Type": "application/json; charset=utf-8"}, Status: 204}
}

// checkout is a session of alice's over 10 EUR.
func checkout(s *apitest.Server, with ...string) string {
	return strings.NewReplacer(with...).Replace(fmt.Sprintf(`{"id": "cs_1",
		"object": "checkout.session", "mode": "payment", "payment_status": "paid",
		"amount_total": 1000, "currency": "eur", "payment_intent": "pi_1",
		"metadata": {"shoal_customer": "alice", "shoal_cluster": %q}}`,
		s.Client.View().Cluster().ID))
}

func paid(s *apitest.Server, with ...string) apitest.Scenario {
	return told(s, "checkout.session.completed", checkout(s, with...))
}

func refunded(s *apitest.Server, id, status string, cents int) apitest.Scenario {
	return told(s, "refund.updated", fmt.Sprintf(`{"id": %q, "object": "refund", "amount": %d,
		"currency": "eur", "payment_intent": "pi_1", "status": %q}`, id, cents, status))
}

func open(t *testing.T, s *apitest.Server) {
	t.Helper()
	s.Client.Must(t, client.OpenTopUp{Session: "cs_1", Customer: "alice", Amount: 10_000_000,
		Expires: s.Clock.Now().Add(24 * time.Hour).UnixMilli()})
}

// holds requires a balance of alice's, and that all accounts sum to zero.
func holds(t *testing.T, s *apitest.Server, micros int64) {
	t.Helper()
	view := s.Client.View()
	books, wallet := view.Books(), view.Wallet("alice")
	if wallet.Balance() != micros {
		t.Errorf("balance %d, want %d", wallet.Balance(), micros)
	}
	if sum := wallet.Balance() + books.Clearing + books.Unmatched; sum != 0 {
		t.Errorf("postings sum to %d: %+v", sum, books)
	}
}

func TestNoticesAreRefused(t *testing.T) {
	s := stripeServer(t)
	open(t, s)
	forged, late, unsigned, long, other := paid(s), paid(s), paid(s), paid(s), paid(s)
	forged.Body = strings.Replace(forged.Body, "1000", "9000", 1)
	forged.Name, late.Name, unsigned.Name, long.Name = "forged", "late", "unsigned", "long"
	delete(unsigned.Header, "Stripe-Signature")
	long.Body = strings.Repeat(" ", 262_145)
	other.Header["Content-Type"] = "text/plain"
	s.Run(t, refusal(forged).of(400, "invalid_signature"),
		refusal(unsigned).of(400, "invalid_signature"),
		refusal(long).of(413, "payload_too_large"),
		refusal(other).of(415, "unsupported_media_type"))
	s.Clock.Advance(5*time.Minute + time.Second)
	s.Run(t, refusal(late).of(400, "invalid_signature"))
	s.Clock.Advance(-10*time.Minute - 2*time.Second) // our clock is behind
	early := late
	early.Name = "early"
	s.Run(t, refusal(early).of(400, "invalid_signature"))
	holds(t, s, 0)
}

func TestPaymentIsCredited(t *testing.T) {
	s := stripeServer(t)
	open(t, s)
	status := apitest.Scenario{Name: "status", As: apitest.SignIn,
		Do: "GET /api/wallet/topup/cs_1", Status: 200, Has: map[string]any{"status": "APPLIED"}}
	s.Run(t, paid(s), status,
		apitest.Scenario{Name: "entry", As: apitest.Reader, Do: "GET /api/wallet/transactions",
			Status: 200, Has: map[string]any{"content.0.type": "TOPUP",
				"content.0.status": "APPLIED", "content.0.amountMicros": 10_000_000,
				"content.0.balanceAfterMicros": 10_000_000}})
	holds(t, s, 10_000_000)
	expired := told(s, "checkout.session.expired", checkout(s))
	s.Run(t, expired, paid(s), status) // out of order and repeated
	holds(t, s, 10_000_000)
}

// TestPaymentCountsOnce: 64 concurrent copies of one notice credit once.
func TestPaymentCountsOnce(t *testing.T) {
	s := stripeServer(t)
	open(t, s)
	notice := paid(s)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if a := s.Call(t, notice); a.Status != 204 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	all.Wait()
	holds(t, s, 10_000_000)
	if n := s.Client.View().Wallet("alice").Sequence; n != 2 { // with the free grant
		t.Errorf("%d entries", n)
	}
}

// TestNoticeOfTheKilled: a server that dies after any command of a notice has not answered it.
// Stripe repeats the notice, and the sum is the same.
func TestNoticeOfTheKilled(t *testing.T) {
	for after := 1; after <= 3; after++ {
		s := stripeServer(t)
		open(t, s)
		s.Run(t, refunded(s, "re_1", "succeeded", 100), refunded(s, "re_2", "succeeded", 200))
		s.Client.Lose(after)
		s.Run(t, refusal(paid(s)).of(503, "unavailable"), paid(s))
		holds(t, s, 7_000_000)
	}
}

func TestUnmatchedPayments(t *testing.T) {
	for name, c := range map[string]struct {
		with             []string
		session          string
		balance, unknown int64
		status           string
	}{
		"no such customer": {[]string{`"alice"`, `"nobody"`, "cs_1", "cs_2"}, "cs_2", 0,
			10_000_000, "UNMATCHED"},
		"another currency":  {[]string{`"eur"`, `"usd"`}, "cs_1", 0, 0, "UNMATCHED"},
		"another amount":    {[]string{": 1000", ": 1500"}, "cs_1", 15_000_000, 0, "APPLIED"},
		"never opened here": {[]string{"cs_1", "cs_2"}, "cs_2", 10_000_000, 0, "APPLIED"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stripeServer(t)
			open(t, s)
			s.Run(t, paid(s, c.with...), paid(s, c.with...))
			if got := s.Client.View().TopUp(c.session); got == nil || got.Status != c.status {
				t.Errorf("%+v", got)
			}
			if got := s.Client.View().Books().Unmatched; got != c.unknown {
				t.Errorf("%d are nobody's", got)
			}
			holds(t, s, c.balance)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if told := s.Logs.String(); strings.Contains(told, "a payment is nobody's") !=
				(c.status == "UNMATCHED") {
				t.Errorf("logged %s", told)
			}
		})
	}
}

// TestNoticesOfOthers: notices of another cluster or shop at the same account are ignored.
func TestNoticesOfOthers(t *testing.T) {
	s := stripeServer(t)
	s.Run(t, paid(s, "shoal_cluster\": \"", "shoal_cluster\": \"f"), paid(s, "shoal_", "shop_"),
		told(s, "customer.created", "{}"))
	if s.Client.View().TopUp("cs_1") != nil {
		t.Error("a session of another one is known")
	}
	holds(t, s, 0)
}

// TestNoticesOfALostCluster: its customers are now here, and the provider knows them by its id.
func TestNoticesOfALostCluster(t *testing.T) {
	s := stripeServer(t)
	open(t, s)
	notice := paid(s)
	s.Client.Spoil(t, func(tx *clienttest.Tx) {
		cluster := *tx.Cluster()
		cluster.Former, cluster.ID = []ids.ID{cluster.ID}, s.IDs.New()
		tx.PutCluster(&cluster)
	})
	s.Run(t, notice, notice)
	holds(t, s, 10_000_000)
}

func TestMoneyGoesBack(t *testing.T) {
	s := stripeServer(t)
	dispute := func(kind string) apitest.Scenario {
		return told(s, "charge.dispute."+kind, `{"id": "dp_1", "object": "dispute",
			"amount": 1000, "currency": "eur", "payment_intent": "pi_1"}`)
	}
	part := told(s, "charge.dispute.funds_reinstated", `{"id": "dp_1", "object": "dispute",
		"amount": 1000, "currency": "eur", "payment_intent": "pi_1", "balance_transactions": [
		{"id": "txn_1", "amount": -1000, "currency": "eur"},
		{"id": "txn_2", "amount": 400, "currency": "eur"}]}`)
	early := refunded(s, "re_0", "succeeded", 100)
	early.Name = "a refund before the payment"
	s.Run(t, early, paid(s))
	holds(t, s, 9_000_000)
	for _, step := range []struct {
		notice  apitest.Scenario
		balance int64
	}{
		{refunded(s, "re_1", "pending", 300), 9_000_000},
		{refunded(s, "re_1", "succeeded", 300), 6_000_000},
		{refunded(s, "re_1", "succeeded", 300), 6_000_000},
		{refunded(s, "re_1", "failed", 300), 9_000_000},
		{refunded(s, "re_1", "succeeded", 300), 9_000_000}, // late
		{dispute("funds_withdrawn"), -1_000_000},
		{dispute("funds_withdrawn"), -1_000_000},
		{part, 3_000_000},
		{part, 3_000_000},
		{dispute("funds_reinstated"), 9_000_000},
		{part, 9_000_000},                       // late
		{dispute("funds_withdrawn"), 9_000_000}, // late
	} {
		s.Run(t, step.notice)
		holds(t, s, step.balance)
	}
	s.Run(t, apitest.Scenario{Name: "entries", As: apitest.Reader,
		Do: "GET /api/wallet/transactions", Status: 200, Has: map[string]any{
			"totalElements": 8, "content.0.type": "ADJUSTMENT",
			"content.0.amountMicros": 6_000_000, "content.1.amountMicros": 4_000_000,
			"content.2.amountMicros": -10_000_000}})
}
