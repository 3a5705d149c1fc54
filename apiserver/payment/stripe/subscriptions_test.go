package stripe_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/fault"
)

// contractOf is one of our subscriptions in the old or the new version of Stripe's API, with
// replacements.
func contractOf(old bool, with ...string) string {
	text := `{"id": "sub_1", "object": "subscription", "status": "active", "created": 1767000000,
  "cancel_at_period_end": false, "items": {"data": [{"id": "si_1", "current_period_end": 1769000000,
  "price": {"id": "price_1", "product": "prod_1"}}]},
  "metadata": {"shoal_customer": "alice", "shoal_cluster": "c1", "shoal_plan": "PRO",
  "shoal_revision": "7"}}`
	if old {
		text = strings.Replace(text, `"current_period_end": 1769000000,`, "", 1)
		text = strings.Replace(text, `"items"`, `"current_period_end": 1769000000, "items"`, 1)
	}
	return strings.NewReplacer(with...).Replace(text)
}

func known(change func(*payment.Contract)) payment.Contract {
	c := payment.Contract{ID: "sub_1", Customer: "alice", Cluster: "c1", Plan: "PRO", Revision: 7,
		Created: time.Unix(1767000000, 0), Standing: payment.Live,
		PeriodEnd: time.Unix(1769000000, 0), ToldAt: time.Unix(1767323045, 0)}
	change(&c)
	return c
}

func TestContractEvents(t *testing.T) {
	standing := func(s payment.Standing) payment.Contract {
		return known(func(c *payment.Contract) { c.Standing = s })
	}
	for name, c := range map[string]struct {
		object string
		want   any
	}{
		"active":     {contractOf(false), standing(payment.Live)},
		"as of 2024": {contractOf(true), standing(payment.Live)},
		"late":       {contractOf(false, "active", "past_due"), standing(payment.Live)},
		"unpaid":     {contractOf(false, "active", "unpaid"), standing(payment.Lapsed)},
		"not paid":   {contractOf(false, "active", "incomplete"), standing(payment.Pending)},
		"ended":      {contractOf(false, "active", "canceled"), standing(payment.Over)},
		"never paid": {contractOf(false, "active", "incomplete_expired"), standing(payment.Over)},
		"new status": {contractOf(false, "active", "dreaming"), standing(payment.Pending)},
		"cancelled": {contractOf(false, "false", "true"), known(func(c *payment.Contract) {
			c.Cancel = true
		})},
		"another shop's": {contractOf(false, "shoal_", "shop_"), nil},
	} {
		body := event("customer.subscription.updated", c.object)
		got, err := provider(t, "").Read([]byte(body), sign(body, secret, now))
		if err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestInvoiceEvents(t *testing.T) {
	const meta = `{"subscription_details": {"metadata": {"shoal_customer": "alice",
		"shoal_cluster": "c1", "shoal_plan": "PRO"}}}`
	text := func(with ...string) string {
		return strings.NewReplacer(with...).Replace(`{"id": "in_1", "object": "invoice",
			"status": "open", "currency": "eur", "total": 7900, "created": 1767000000,
			"hosted_invoice_url": "https://invoice.test/1", "parent": ` + meta + `}`)
	}
	want := func(status payment.InvoiceStatus, page string) any {
		return payment.Invoice{ID: "in_1", Customer: "alice", Cluster: "c1", Cents: 7_900,
			Currency: "eur", Status: status, Issued: time.Unix(1767000000, 0), URL: page,
			ToldAt: time.Unix(1767323045, 0)}
	}
	const page = "https://invoice.test/1"
	for _, c := range []struct {
		kind, object string
		want         any
	}{
		{"created", text(`"open"`, `"draft"`, `"https://invoice.test/1"`, "null"),
			want(payment.Draft, "")},
		{"finalized", text(), want(payment.Unpaid, page)},
		{"paid", text(`"open"`, `"paid"`), want(payment.PaidUp, page)},
		{"paid", text(`"open"`, `"paid"`, `"parent": `+meta, meta[1:len(meta)-1]),
			want(payment.PaidUp, page)},
		{"voided", text(`"open"`, `"void"`), want(payment.Void, page)},
		{"deleted", text(`"open"`, `"draft"`), want(payment.Void, page)},
		{"marked_uncollectible", text(`"open"`, `"uncollectible"`),
			want(payment.Uncollectible, page)},
		{"updated", text("https", "javascript"), want(payment.Unpaid, "")},
		{"updated", text("shoal_", "shop_"), nil},
		{"updated", text(`"parent": `+meta, `"parent": null`), nil},
	} {
		body := event("invoice."+c.kind, c.object)
		got, err := provider(t, "").Read([]byte(body), sign(body, secret, now))
		if err != nil {
			t.Fatal(c.kind, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s %s: %s", c.kind, c.object, d)
		}
	}
	long := strings.Repeat("x", 501)
	for _, c := range []struct{ kind, object string }{
		{"invoice.paid", text("in_1", "")}, {"invoice.paid", text("1767000000", "-1")},
		{"invoice.paid", text("7900", "100000000")}, {"invoice.paid", text("eur", "euro")},
		{"invoice.paid", text("alice", long)}, {"invoice.paid", "[]"},
		{"customer.subscription.updated", contractOf(false, "sub_1", "")},
		{"customer.subscription.updated", contractOf(false, `"7"`, `"-7"`)},
		{"customer.subscription.updated", contractOf(false, "1769000000", "0")},
		{"customer.subscription.updated", contractOf(false, "PRO", long)},
		{"customer.subscription.updated", "7"},
	} {
		body := event(c.kind, c.object)
		if got, err := provider(t, "").Read([]byte(body), sign(body, secret, now)); fault.CodeOf(
			err) != fault.InvalidBody || got != nil {
			t.Errorf("%s %.60s: %v, %v", c.kind, c.object, got, err)
		}
	}
}

// TestSubscribe compares the call with Stripe's documentation.
func TestSubscribe(t *testing.T) {
	p, asked := answering(t, 200, `{"id": "cs_1", "expires_at": 1767409445,
		"url": "https://checkout.test/cs_1"}`)
	if _, err := p.Subscribe(t.Context(), payment.PlanOrder{Key: "k", Customer: "alice",
		Cluster: "c1", Plan: "PRO", Cents: 7_900, Revision: 3}); err != nil {
		t.Fatal(err)
	}
	const item, meta = "line_items[0]", "subscription_data[metadata]"
	want := url.Values{"mode": {"subscription"}, item + "[quantity]": {"1"},
		item + "[price_data][currency]":            {"eur"},
		item + "[price_data][unit_amount]":         {"7900"},
		item + "[price_data][recurring][interval]": {"month"},
		item + "[price_data][product_data][name]":  {"Subscription"},
		"success_url":             {"https://shoal.test/api/customer/subscription/success"},
		"cancel_url":              {"https://shoal.test/api/customer/payment/canceled"},
		meta + "[shoal_customer]": {"alice"}, meta + "[shoal_cluster]": {"c1"},
		meta + "[shoal_plan]": {"PRO"}, meta + "[shoal_revision]": {"3"}}
	if d := cmp.Diff(want, (*asked)[0].PostForm); d != "" ||
		(*asked)[0].Header.Get("Idempotency-Key") != "k" {
		t.Errorf("%s, %v", d, (*asked)[0].Header)
	}
}

// TestSubscribeInPlaceOfAnother: both contracts belong to one customer at Stripe, so that the
// credit of the old one counts for the new one.
func TestSubscribeInPlaceOfAnother(t *testing.T) {
	p, asked := answering(t, 200, `{"id": "cs_1", "expires_at": 1767409445,
		"url": "https://checkout.test/cs_1", "customer": "cus_7"}`)
	if _, err := p.Subscribe(t.Context(), payment.PlanOrder{Key: "k", Customer: "alice",
		Cluster: "c1", Plan: "PRO", Cents: 7_900, Revision: 3, Replaces: "sub_1"}); err != nil {
		t.Fatal(err)
	}
	if len(*asked) != 2 || (*asked)[0].URL.Path != "/v1/subscriptions/sub_1" ||
		(*asked)[1].PostForm.Get("customer") != "cus_7" {
		t.Errorf("%+v", *asked)
	}
}

// TestAmend: the new revision exceeds Stripe's, and the result is the changed contract.
func TestAmend(t *testing.T) {
	p, asked := answering(t, 200, contractOf(false))
	got, err := p.Amend(t.Context(), payment.Amendment{Key: "k", Contract: "sub_1", Plan: "BASIC",
		Cents: 2_900, Revision: 3})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(known(func(c *payment.Contract) { c.ToldAt = time.Time{} }), got); d != "" {
		t.Error(d)
	}
	const price = "items[0][price_data]"
	want := url.Values{"cancel_at_period_end": {"false"}, "proration_behavior": {"none"},
		"items[0][id]": {"si_1"}, price + "[currency]": {"eur"}, price + "[product]": {"prod_1"},
		price + "[unit_amount]": {"2900"}, price + "[recurring][interval]": {"month"},
		"metadata[shoal_plan]": {"BASIC"}, "metadata[shoal_revision]": {"8"}}
	if d := cmp.Diff(want, (*asked)[1].PostForm); d != "" {
		t.Error(d)
	}
	for name, body := range map[string]string{"not ours": contractOf(false, "shoal_", "shop_"),
		"two things": contractOf(false, `[{"id"`, `[{}, {"id"`), "no JSON": "<html>"} {
		p, _ := answering(t, 200, body)
		if _, err := p.Amend(t.Context(), payment.Amendment{Contract: "sub_1"}); fault.CodeOf(
			err) != fault.ProviderFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnd(t *testing.T) {
	for status, ends := range map[int]bool{200: true, 404: true, 500: false, 401: false} {
		body := contractOf(false)
		if status != 200 {
			body = `{"error": {"type": "invalid_request_error"}}`
		}
		p, asked := answering(t, status, body)
		if err := p.End(t.Context(), "sub_1"); (err == nil) != ends ||
			(*asked)[0].Method != http.MethodDelete ||
			(*asked)[0].URL.Path != "/v1/subscriptions/sub_1" ||
			(*asked)[0].Form.Get("prorate") != "true" ||
			(*asked)[0].Form.Get("invoice_now") != "true" {
			t.Errorf("%d: %v, asked %v", status, err, (*asked)[0].Form)
		}
	}
}

// TestExpire: a session that is not open counts as expired. A failed call does not.
func TestExpire(t *testing.T) {
	for status, ends := range map[int]bool{200: true, 400: true, 404: true, 500: false, 401: false,
		429: false} {
		body := `{"id": "cs_1", "status": "expired"}`
		if status != 200 {
			body = `{"error": {"type": "invalid_request_error"}}`
		}
		p, asked := answering(t, status, body)
		if err := p.Expire(t.Context(), "cs_1"); (err == nil) != ends ||
			(*asked)[0].Method != http.MethodPost ||
			(*asked)[0].URL.Path != "/v1/checkout/sessions/cs_1/expire" {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestStripeMockTakesPlanCalls checks every parameter against Stripe's own description of its API.
func TestStripeMockTakesPlanCalls(t *testing.T) {
	to := stripeMock(t)
	statuses := []int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = to.Scheme, to.Host, ""
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		_ = answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
		_, _ = fmt.Fprint(w, contractOf(false))
	}))
	t.Cleanup(server.Close)
	p := provider(t, server.URL)
	_, _ = p.Subscribe(t.Context(), payment.PlanOrder{Key: "k", Customer: "a", Cluster: "c",
		Plan: "PRO", Cents: 1, Revision: 1}) // the mock's answer is unusable
	_, err := p.Amend(t.Context(), payment.Amendment{Key: "l", Contract: "sub_1", Plan: "BASIC",
		Cents: 1, Revision: 2})
	end, expire := p.End(t.Context(), "sub_1"), p.Expire(t.Context(), "cs_1")
	if err != nil || end != nil || expire != nil {
		t.Errorf("%v, %v, %v", err, end, expire)
	}
	if d := cmp.Diff([]int{200, 200, 200, 200, 200}, statuses); d != "" {
		t.Error(d)
	}
}
