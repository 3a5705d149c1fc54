package stripe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/fault"
)

// movements are balance transactions as Stripe documents them, without the fields that we ignore.
const movements = `{"object": "list", "has_more": false, "url": "/v1/balance_transactions",
"data": [
{"id": "txn_1", "object": "balance_transaction", "type": "charge", "amount": 1234, "source": {
	"id": "ch_1", "object": "charge", "amount": 1234, "currency": "eur", "payment_intent": "pi_1",
	"metadata": {"shoal_customer": "alice", "shoal_cluster": "c1"}}},
{"id": "txn_2", "object": "balance_transaction", "type": "charge", "amount": 1000, "source": {
	"id": "ch_2", "object": "charge", "amount": 1100, "currency": "usd", "payment_intent": "pi_2",
	"metadata": {"shoal_customer": "alice", "shoal_cluster": "c1"}}},
{"id": "txn_3", "object": "balance_transaction", "type": "charge", "amount": 900, "source": {
	"id": "ch_3", "object": "charge", "amount": 900, "currency": "eur", "payment_intent": "pi_3",
	"metadata": {"shoal_cluster": "c1", "shoal_plan": "PRO"}}},
{"id": "txn_4", "object": "balance_transaction", "type": "refund", "amount": -300, "source": {
	"id": "re_1", "object": "refund", "amount": 300, "currency": "eur", "payment_intent": "pi_1",
	"status": "succeeded"}},
{"id": "txn_5", "object": "balance_transaction", "type": "refund_failure", "amount": 200, "source":
	{"id": "re_2", "object": "refund", "amount": 200, "currency": "eur", "payment_intent": "pi_1",
	"status": "failed"}},
{"id": "txn_6", "object": "balance_transaction", "type": "refund", "amount": -100, "source": {
	"id": "re_3", "object": "refund", "amount": 100, "currency": "eur", "payment_intent": "pi_1",
	"status": "pending"}},
{"id": "txn_7", "object": "balance_transaction", "type": "adjustment", "amount": -1000, "source": {
	"id": "dp_1", "object": "dispute", "amount": 1000, "currency": "eur", "payment_intent": "pi_1",
	"balance_transactions": [{"id": "txn_7", "amount": -1000, "currency": "eur"},
		{"id": "txn_8", "amount": 400, "currency": "eur"}]}},
{"id": "txn_9", "object": "balance_transaction", "type": "adjustment", "amount": -500, "source": {
	"id": "dp_2", "object": "dispute", "amount": 500, "currency": "eur", "payment_intent": "pi_1",
	"balance_transactions": [{"id": "txn_9", "amount": -500, "currency": "eur"}]}},
{"id": "txn_10", "object": "balance_transaction", "type": "payout", "amount": -5000, "source": {
	"id": "po_1", "object": "payout", "amount": 5000}}]}`

func TestMovements(t *testing.T) {
	p, asked := answering(t, 200, movements)
	var got []payment.Movement
	for moved, err := range p.Movements(t.Context(), time.Unix(100, 0), time.Unix(900, 0)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, moved)
	}
	back := func(id string, micros int64) payment.Movement {
		return payment.Movement{Payment: "pi_1", Reversal: id, Micros: micros}
	}
	want := []payment.Movement{
		{Payment: "pi_1", Cluster: "c1", Customer: "alice", Micros: 12_340_000},
		{Payment: "pi_2", Cluster: "c1", Customer: "alice"},
		back("re_1", 3_000_000), back("re_2", 0), back("dp_1", 6_000_000), back("dp_2", 5_000_000)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r := (*asked)[0]
	if r.URL.Path != "/v1/balance_transactions" || r.Form.Get("created[gte]") != "100" ||
		r.Form.Get("created[lt]") != "900" || r.Form.Get("expand[0]") != "data.source" {
		t.Errorf("asked %s %v", r.URL, r.Form)
	}
}

func TestMovementsFail(t *testing.T) {
	p, _ := answering(t, 401, `{"error": {"type": "invalid_request_error", "message": "no"}}`)
	failed := false
	for _, err := range p.Movements(t.Context(), time.Unix(100, 0), time.Unix(900, 0)) {
		failed = fault.CodeOf(err) == fault.ProviderFailed
	}
	if !failed {
		t.Error("a refused call is no failure")
	}
}
