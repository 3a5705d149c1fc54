package stripe_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v85/webhook"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/fault"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// event is an event about an object, as Stripe sends it.
func event(kind, object string) string {
	return fmt.Sprintf(`{"id": "evt_1", "object": "event", "api_version": "2024-06-20",
  "created": 1767323045, "livemode": false, "pending_webhooks": 1,
  "request": {"id": null, "idempotency_key": null}, "type": %q, "data": {"object": %s}}
`, kind, object)
}

func sign(body, secret string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body),
		Secret: secret, Timestamp: at}).Header
}

// session is one of our checkouts, with replacements.
func session(with ...string) string {
	text := `{"id": "cs_1", "object": "checkout.session", "mode": "payment", "status": "complete",
  "payment_status": "paid", "amount_total": 1234, "amount_subtotal": 1234, "currency": "eur",
  "payment_intent": "pi_1", "metadata": {"shoal_customer": "alice", "shoal_cluster": "c1"}}`
	return strings.NewReplacer(with...).Replace(text)
}

func TestSignaturesAreChecked(t *testing.T) {
	p := provider(t, "")
	body := event("checkout.session.completed", session())
	for name, c := range map[string]struct {
		body, signature string
	}{
		"none":             {body, ""},
		"nonsense":         {body, "nonsense"},
		"no signature":     {body, "t=1767323045"},
		"another secret":   {body, sign(body, "whsec_other", now)},
		"another body":     {body + " ", sign(body, secret, now)},
		"too old":          {body, sign(body, secret, now.Add(-5*time.Minute-time.Second))},
		"of the future":    {body, sign(body, secret, now.Add(5*time.Minute+time.Second))},
		"another time":     {body, "t=1," + sign(body, secret, now) + ",t=1767323046"},
		"of an old scheme": {body, strings.ReplaceAll(sign(body, secret, now), "v1", "v0")},
	} {
		if got, err := p.Read([]byte(c.body), c.signature); fault.CodeOf(err) !=
			fault.InvalidSignature || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, body := range []string{"[]", "x", "", `{"object": "charge"}`} {
		if got, err := p.Read([]byte(body), sign(body, secret, now)); fault.CodeOf(err) !=
			fault.InvalidBody || got != nil {
			t.Errorf("%q: %v, %v", body, got, err)
		}
	}
	for name, signature := range map[string]string{
		"fresh":      sign(body, secret, now),
		"just in":    sign(body, secret, now.Add(-5*time.Minute)),
		"just ahead": sign(body, secret, now.Add(5*time.Minute)),
		// while a secret is rotated, Stripe signs with both
		"of two": sign(body, secret, now) + ",v1=" + strings.Repeat("ab", 32),
	} {
		if got, err := p.Read([]byte(body), signature); err != nil || got == nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestEvents(t *testing.T) {
	refund := func(status string, with ...string) string {
		return strings.NewReplacer(with...).Replace(`{"id": "re_1", "object": "refund",
			"amount": 500, "currency": "eur", "payment_intent": "pi_1", "charge": "ch_1",
			"status": "` + status + `"}`)
	}
	const dispute = `{"id": "dp_1", "object": "dispute", "amount": 1234, "currency": "eur",
		"payment_intent": {"id": "pi_1", "object": "payment_intent"}, "status": "needs_response"}`
	moved := func(currency string) string {
		return strings.Replace(dispute, `"status"`, strings.ReplaceAll(`"balance_transactions": [
			{"id": "txn_1", "object": "balance_transaction", "amount": -1234, "currency": "eur"},
			{"id": "txn_2", "object": "balance_transaction", "amount": 600, "currency": "eur"}],
			"status"`, "eur", currency), 1)
	}
	paid := payment.Paid{Session: "cs_1", Payment: "pi_1", Customer: "alice", Cluster: "c1",
		Micros: 12_340_000}
	elsewhere, nobody, ofNobody := paid, paid, paid
	elsewhere.Micros, nobody.Customer, ofNobody.Payment = 0, "", ""
	gone := payment.Reversed{ID: "re_1", Payment: "pi_1", Micros: 5_000_000}
	back := payment.Reversed{ID: "re_1", Payment: "pi_1", Micros: 5_000_000, Back: 5_000_000}
	lost := payment.Reversed{ID: "dp_1", Payment: "pi_1", Micros: 12_340_000}
	won := payment.Reversed{ID: "dp_1", Payment: "pi_1", Micros: 12_340_000, Back: 12_340_000}
	halved := payment.Reversed{ID: "dp_1", Payment: "pi_1", Micros: 12_340_000, Back: 6_000_000}
	for _, c := range []struct {
		name, kind, object string
		want               any
	}{
		{"paid", "checkout.session.completed", session(), paid},
		{"paid later", "checkout.session.async_payment_succeeded", session(), paid},
		{"another currency", "checkout.session.completed", session(`"eur"`, `"usd"`), elsewhere},
		{"nobody's", "checkout.session.completed", session(`"alice"`, `""`), nobody},
		{"without a payment", "checkout.session.completed", session(`"pi_1"`, `null`), ofNobody},
		{"pending", "checkout.session.completed", session(`"paid"`, `"unpaid"`), nil},
		{"for nothing", "checkout.session.completed",
			session(`"paid"`, `"no_payment_required"`),
			payment.Ended{Session: "cs_1", Failed: true}},
		{"refused", "checkout.session.async_payment_failed", session(),
			payment.Ended{Session: "cs_1", Failed: true}},
		{"expired", "checkout.session.expired", session(`"paid"`, `"unpaid"`),
			payment.Ended{Session: "cs_1"}},
		{"another shop's", "checkout.session.completed", session("shoal_", "other_"), nil},
		{"a subscription", "checkout.session.completed",
			session(`"mode": "payment"`, `"mode": "subscription"`), nil},
		{"refunded", "refund.created", refund("succeeded"), gone},
		{"refund pending", "refund.created", refund("pending"), nil},
		{"refund done", "refund.updated", refund("succeeded"), gone},
		{"refund failed", "refund.failed", refund("failed"), back},
		{"refund canceled", "refund.updated", refund("canceled"), back},
		{"refund in dollars", "refund.created", refund("succeeded", `"eur"`, `"usd"`), nil},
		{"refund of a charge", "refund.created", refund("succeeded", `"pi_1"`, "null"), nil},
		{"disputed", "charge.dispute.funds_withdrawn", dispute, lost},
		{"dispute won", "charge.dispute.funds_reinstated", dispute, won},
		{"dispute won in part", "charge.dispute.funds_reinstated", moved("eur"), halved},
		{"a part elsewhere", "charge.dispute.funds_reinstated", moved("usd"), won},
		{"a part, told late", "charge.dispute.funds_withdrawn", moved("eur"), lost},
		{"something else", "customer.created", `{"id": "cus_1"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := event(c.kind, c.object)
			got, err := provider(t, "").Read([]byte(body), sign(body, secret, now))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEventsOfNoSense(t *testing.T) {
	long := strings.Repeat("x", 501)
	for name, c := range map[string]struct{ kind, object string }{
		"no object":         {"checkout.session.completed", `[]`},
		"no id":             {"checkout.session.completed", session(`"cs_1"`, `""`)},
		"a long id":         {"checkout.session.completed", session(`cs_1`, long)},
		"a long payment":    {"checkout.session.completed", session(`pi_1`, long)},
		"a long customer":   {"checkout.session.completed", session(`alice`, long)},
		"less than nothing": {"checkout.session.completed", session(`1234`, `-1`)},
		"too much":          {"checkout.session.completed", session(`1234`, `100000000`)},
		"no refund":         {"refund.created", `"re_1"`},
		"no dispute":        {"charge.dispute.funds_withdrawn", `7`},
		"nothing refunded": {"refund.created", `{"id": "re_1", "amount": 0, "currency": "eur",
			"payment_intent": "pi_1", "status": "succeeded"}`},
	} {
		body := event(c.kind, c.object)
		if got, err := provider(t, "").Read([]byte(body), sign(body, secret, now)); fault.CodeOf(
			err) != fault.InvalidBody || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The operator's guide lists exactly the events that are read.
func TestEventsOfTheGuideAreRead(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, line := range regexp.MustCompile("(?m)^- (`(?:checkout|refund|charge|customer|invoice)"+
		"\\..*)$").FindAllStringSubmatch(string(guide), -1) {
		object := ""
		for kind := range strings.SplitSeq(line[1], ", ") {
			kind = strings.Trim(kind, "`")
			if strings.HasPrefix(kind, ".") {
				kind = object + kind
			}
			object = kind[:strings.LastIndex(kind, ".")]
			listed++
			body := event(kind, `{"id": 7}`)
			if _, err := provider(t, "").Read([]byte(body), sign(body, secret, now)); fault.CodeOf(
				err) != fault.InvalidBody {
				t.Errorf("%s is not read: %v", kind, err)
			}
		}
	}
	if listed != 21 {
		t.Errorf("the guide lists %d events", listed)
	}
}

// FuzzEvents: whatever a signed event contains, the result is within the bounds that the ledger
// relies on.
func FuzzEvents(f *testing.F) {
	for _, kind := range []string{"checkout.session.completed", "refund.created",
		"charge.dispute.funds_withdrawn"} {
		f.Add(event(kind, session()))
	}
	f.Add(`{"object": "event", "type": "refund.created", "data": null}`)
	f.Add(`{"object": "event", "type": "refund.created", "data": {"object": null}}`)
	p := provider(f, "")
	const most = 1_000_000_000_000 // micros
	f.Fuzz(func(t *testing.T, body string) {
		got, err := p.Read([]byte(body), sign(body, secret, now))
		code := fault.CodeOf(err)
		switch told := got.(type) {
		case payment.Paid:
			if told.Session == "" || told.Cluster == "" || told.Micros < 0 ||
				told.Micros > most || len(told.Customer) > 500 {
				t.Errorf("%+v", told)
			}
		case payment.Ended:
			if told.Session == "" {
				t.Errorf("%+v", told)
			}
		case payment.Reversed:
			if told.ID == "" || told.Payment == "" || told.Micros <= 0 || told.Micros > most {
				t.Errorf("%+v", told)
			}
		case nil:
			if err != nil && code != fault.InvalidBody && code != fault.InvalidSignature {
				t.Errorf("%v", err)
			}
		}
	})
}
