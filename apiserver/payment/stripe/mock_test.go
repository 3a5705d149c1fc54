package stripe_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"shoal.dev/shoal/apiserver/payment"
)

// mockObject returns an object of stripe-mock, which is complete by Stripe's own description of its
// API, with some members set.
func mockObject(t *testing.T, path string, members map[string]any) map[string]any {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		stripeMock(t).JoinPath("v1", path).String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk_test_123")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	var object map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&object); err != nil ||
		answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v, %v", path, answer.Status, object, err)
	}
	for name, value := range members {
		if _, known := object[name]; !known {
			t.Errorf("%s has no member %s", path, name)
		}
		object[name] = value
	}
	return object
}

// TestStripeMockEvents: events with the whole objects of Stripe's current API are read, not only
// with the few members that the other tests give them.
func TestStripeMockEvents(t *testing.T) {
	ours := map[string]string{"shoal_customer": "alice", "shoal_cluster": "c1",
		"shoal_plan": "PRO", "shoal_revision": "3"}
	told := time.Unix(1_767_323_045, 0)
	type members = map[string]any
	for kind, c := range map[string]struct {
		path   string
		object members
		want   any
	}{
		"checkout.session.completed": {"checkout/sessions/cs_1", members{"id": "cs_1",
			"metadata": ours, "mode": "payment", "status": "complete", "payment_status": "paid",
			"amount_total": 1234, "currency": "eur", "payment_intent": "pi_1"},
			payment.Paid{Session: "cs_1", Payment: "pi_1", Customer: "alice", Cluster: "c1",
				Micros: 12_340_000}},
		"checkout.session.expired": {"checkout/sessions/cs_1", members{"id": "cs_1",
			"metadata": ours, "mode": "payment", "status": "expired"},
			payment.Ended{Session: "cs_1"}},
		"refund.created": {"refunds/re_1", members{"id": "re_1", "amount": 500, "currency": "eur",
			"payment_intent": "pi_1", "status": "succeeded"},
			payment.Reversed{ID: "re_1", Payment: "pi_1", Micros: 5_000_000}},
		"charge.dispute.funds_withdrawn": {"disputes/dp_1", members{"id": "dp_1", "amount": 1234,
			"currency": "eur", "payment_intent": "pi_1"},
			payment.Reversed{ID: "dp_1", Payment: "pi_1", Micros: 12_340_000}},
		"customer.subscription.updated": {"subscriptions/sub_1", members{"id": "sub_1",
			"metadata": ours, "status": "active", "cancel_at_period_end": true},
			payment.Contract{ID: "sub_1", Customer: "alice", Cluster: "c1", Plan: "PRO",
				Cancel: true, Revision: 3, Standing: payment.Live, ToldAt: told}},
		"invoice.paid": {"invoices/in_1", members{"id": "in_1", "total": 7900, "currency": "eur",
			"status": "paid", "hosted_invoice_url": "https://pay.test/1",
			"parent": members{"type": "subscription_details", "quote_details": nil,
				"subscription_details": members{"metadata": ours, "subscription": "sub_1"}}},
			payment.Invoice{ID: "in_1", Customer: "alice", Cluster: "c1", Cents: 7900,
				Currency: "eur", Status: payment.PaidUp, URL: "https://pay.test/1", ToldAt: told}},
	} {
		body, err := json.Marshal(mockObject(t, "events/evt_1", members{"type": kind,
			"created": told.Unix(),
			"data":    members{"object": mockObject(t, c.path, c.object)}}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := provider(t, "").Read(body, sign(string(body), secret, now))
		if err != nil {
			t.Errorf("%s: %v in %s", kind, err, body)
			continue
		}
		// the mock chooses these times and prices
		if d := cmp.Diff(c.want, got, cmpopts.IgnoreFields(payment.Contract{}, "Created",
			"PeriodEnd", "Cents"), cmpopts.IgnoreFields(payment.Invoice{}, "Issued")); d != "" {
			t.Errorf("%s: %s", kind, d)
		}
	}
}
