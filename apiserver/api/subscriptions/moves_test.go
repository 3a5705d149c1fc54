package subscriptions_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// Calls by alice.
const (
	create  = "POST /api/subscription/create"
	change  = "POST /api/subscription/change"
	cancel  = "POST /api/subscription/cancel"
	restore = "POST /api/subscription/cancel-downgrade"
)

// move is a change, with a plan or "", and its answer.
func move(do, plan string, has map[string]any) apitest.Scenario {
	sc := apitest.Scenario{Name: do + " " + plan, As: apitest.User, Do: do, Status: 200, Has: has}
	if plan != "" {
		sc.Body = fmt.Sprintf(`{"plan": %q}`, plan)
	}
	return sc
}

func refusal(sc apitest.Scenario, status int, code string) apitest.Scenario {
	sc.Status, sc.Code, sc.Has = status, code, nil
	return sc
}

// stands is a subscription without a checkout.
func stands(plan, status, scheduled any) map[string]any {
	return map[string]any{"plan": plan, "status": status, "scheduledPlan": scheduled,
		"payment": nil}
}

// subscribed opens a shop in which alice has PRO.
func subscribed(t *testing.T) *shop {
	t.Helper()
	s := openShop(t)
	s.Run(t, move(create, "PRO", nil))
	s.Run(t, s.pay(1, "sub_1"))
	return s
}

// TestMoves covers the table of specification 3.
func TestMoves(t *testing.T) {
	none := func(t *testing.T) *shop { t.Helper(); return openShop(t) }
	free := func(t *testing.T) *shop {
		t.Helper()
		s := openShop(t)
		s.Run(t, move(change, "STARTER", stands("STARTER", "ACTIVE", nil)))
		return s
	}
	lower := func(t *testing.T) *shop {
		t.Helper()
		s := subscribed(t)
		s.Run(t, move(change, "BASIC", stands("PRO", "ACTIVE", "BASIC")))
		return s
	}
	ending := func(t *testing.T) *shop {
		t.Helper()
		s := subscribed(t)
		s.Run(t, move(cancel, "", stands("PRO", "ACTIVE", "STARTER")))
		return s
	}
	ended := func(t *testing.T) *shop {
		t.Helper()
		s := ending(t)
		s.Clock.Advance(monthSeconds * time.Second)
		s.Client.Tick(t)
		return s
	}
	// higher is from another state, in which alice then asked for a higher plan.
	higher := func(from func(*testing.T) *shop, do, plan string) func(*testing.T) *shop {
		return func(t *testing.T) *shop {
			t.Helper()
			s := from(t)
			s.Run(t, move(do, plan, nil))
			if s.open() == "" {
				t.Fatal("no checkout is open")
			}
			return s
		}
	}
	opened := higher(none, create, "PRO")
	dearer := higher(subscribed, change, "BUSINESS")
	freeDearer, lowerDearer := higher(free, change, "BASIC"), higher(lower, change, "BUSINESS")
	endingDearer := higher(ending, change, "BUSINESS")
	pays := func(plan any, status string, session int) map[string]any {
		return map[string]any{"plan": plan, "status": status, "scheduledPlan": nil,
			"payment.url": fmt.Sprint("https://pay.test/cs_", session)}
	}
	for _, c := range []struct {
		name    string
		from    func(*testing.T) *shop
		do      string
		plan    string
		want    map[string]any
		refused string
	}{
		{"create, none", none, create, "PRO", pays(nil, "INACTIVE", 1), ""},
		{"create, active", subscribed, create, "BASIC", stands("PRO", "ACTIVE", nil), ""},
		{"create, free", free, create, "PRO", stands("STARTER", "ACTIVE", nil), ""},
		{"create, ended", ended, create, "BASIC", pays("STARTER", "INACTIVE", 2), ""},
		{"create the free one", none, create, "STARTER", stands("STARTER", "ACTIVE", nil), ""},
		{"create what is not offered", none, create, "TEAM", nil, "invalid_plan"},
		{"create what is no plan", none, create, "GOLD", nil, "invalid_plan"},
		{"higher", subscribed, change, "BUSINESS", pays("PRO", "ACTIVE", 2), ""},
		{"higher, free", free, change, "BASIC", pays("STARTER", "ACTIVE", 1), ""},
		{"higher, ended", ended, change, "BASIC", nil, "no_active_subscription"},
		{"lower", subscribed, change, "BASIC", stands("PRO", "ACTIVE", "BASIC"), ""},
		{"lower again", lower, change, "BASIC", stands("PRO", "ACTIVE", "BASIC"), ""},
		{"lower, ending", ending, change, "BASIC", stands("PRO", "ACTIVE", "BASIC"), ""},
		{"same", subscribed, change, "PRO", stands("PRO", "ACTIVE", nil), ""},
		{"free, none", none, change, "STARTER", stands("STARTER", "ACTIVE", nil), ""},
		{"free, ended", ended, change, "STARTER", stands("STARTER", "ACTIVE", nil), ""},
		{"free, active", subscribed, change, "STARTER", stands("PRO", "ACTIVE", "STARTER"), ""},
		{"change, none", none, change, "PRO", nil, "no_active_subscription"},
		{"change to what is not offered", subscribed, change, "TEAM", nil, "invalid_plan"},
		{"cancel", subscribed, cancel, "", stands("PRO", "ACTIVE", "STARTER"), ""},
		{"cancel again", ending, cancel, "", stands("PRO", "ACTIVE", "STARTER"), ""},
		{"cancel, lower", lower, cancel, "", stands("PRO", "ACTIVE", "STARTER"), ""},
		{"cancel, free", free, cancel, "", stands("STARTER", "ACTIVE", nil), ""},
		{"cancel, none", none, cancel, "", nil, "no_active_subscription"},
		{"cancel, ended", ended, cancel, "", nil, "no_active_subscription"},
		{"restore, lower", lower, restore, "", stands("PRO", "ACTIVE", nil), ""},
		{"restore, ending", ending, restore, "", stands("PRO", "ACTIVE", nil), ""},
		{"restore, nothing", subscribed, restore, "", nil, "no_downgrade_scheduled"},
		{"restore, none", none, restore, "", nil, "no_downgrade_scheduled"},
		{"opened, again", opened, create, "PRO", pays(nil, "INACTIVE", 1), ""},
		{"opened, another", opened, create, "BASIC", pays(nil, "INACTIVE", 2), ""},
		{"opened, free", opened, change, "STARTER", stands("STARTER", "ACTIVE", nil), ""},
		{"opened, create free", opened, create, "STARTER", stands("STARTER", "ACTIVE", nil), ""},
		{"dearer, again", dearer, change, "BUSINESS", pays("PRO", "ACTIVE", 2), ""},
		{"dearer, same", dearer, change, "PRO", stands("PRO", "ACTIVE", nil), ""},
		{"dearer, lower", dearer, change, "BASIC", stands("PRO", "ACTIVE", "BASIC"), ""},
		{"dearer, free", dearer, change, "STARTER", stands("PRO", "ACTIVE", "STARTER"), ""},
		{"dearer, cancel", dearer, cancel, "", stands("PRO", "ACTIVE", "STARTER"), ""},
		{"dearer, free again", freeDearer, change, "STARTER", stands("STARTER", "ACTIVE", nil), ""},
		{"dearer, cancel free", freeDearer, cancel, "", stands("STARTER", "ACTIVE", nil), ""},
		{"dearer, lower again", lowerDearer, change, "BASIC", stands("PRO", "ACTIVE", "BASIC"), ""},
		{"dearer, restore", lowerDearer, restore, "", stands("PRO", "ACTIVE", nil), ""},
		{"dearer, cancel again", endingDearer, cancel, "", stands("PRO", "ACTIVE", "STARTER"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.from(t)
			sc := move(c.do, c.plan, c.want)
			if c.refused != "" {
				sc = refusal(sc, 400, c.refused)
			}
			s.Run(t, sc)
			if c.refused == "" {
				s.Run(t, apitest.Scenario{Name: "read", As: apitest.Reader,
					Do: "GET /api/subscription", Status: 200, Has: c.want})
				s.allEnd(t)
			}
		})
	}
}

// TestCreateReturnsNoCheckout: create changes nothing for a customer who has a plan, so it has no
// checkout to show, and leaves none.
func TestCreateReturnsNoCheckout(t *testing.T) {
	s := subscribed(t)
	s.Run(t, move(change, "BUSINESS", nil), move(create, "BASIC", stands("PRO", "ACTIVE", nil)),
		apitest.Scenario{Name: "read", As: apitest.Reader, Do: "GET /api/subscription",
			Status: 200, Has: map[string]any{"payment.url": "https://pay.test/cs_2"}})
}

// TestPaidAfterLeaving: a payment may arrive in a checkout that the customer has just left, before
// it is closed. What is paid for is given.
func TestPaidAfterLeaving(t *testing.T) {
	s := openShop(t)
	read := func(plan string) apitest.Scenario {
		return apitest.Scenario{Name: "read", As: apitest.User, Do: "GET /api/subscription",
			Status: 200, Has: stands(plan, "ACTIVE", nil)}
	}
	s.Run(t, move(create, "PRO", nil), move(change, "STARTER", stands("STARTER", "ACTIVE", nil)))
	s.Run(t, s.pay(1, "sub_1"), read("PRO"), move(change, "BUSINESS", nil),
		move(cancel, "", stands("PRO", "ACTIVE", "STARTER")))
	s.Run(t, s.pay(2, "sub_2"), read("BUSINESS"))
	if s.subs["sub_1"].Status != "canceled" || s.subs["sub_2"].Status != "active" {
		t.Errorf("%+v, %+v", s.subs["sub_1"], s.subs["sub_2"])
	}
}

func TestMovesWithoutAProvider(t *testing.T) {
	s := apitest.Start(t)
	for _, sc := range []apitest.Scenario{move(create, "PRO", nil), move(change, "STARTER", nil),
		move(cancel, "", nil), move(restore, "", nil)} {
		s.Run(t, refusal(sc, 404, "subscriptions_not_configured"))
	}
	s.Run(t, apitest.Scenario{Name: "read", As: apitest.Reader, Do: "GET /api/subscription",
		Status: 200, Has: stands(nil, "INACTIVE", nil)},
		apitest.Scenario{Name: "invoices", As: apitest.Reader, Do: "GET /api/billing-history",
			Status: 200, Has: map[string]any{"content": []any{}}})
}

// TestPricesFollowTheMoves: the provider's next charge is the scheduled price, or the old price
// again after that is canceled.
func TestPricesFollowTheMoves(t *testing.T) {
	s := subscribed(t)
	for _, step := range []struct {
		move  apitest.Scenario
		cents int
		ends  bool
	}{
		{move(change, "BASIC", nil), 2_900, false},
		{move(restore, "", nil), 7_900, false},
		{move(change, "STARTER", nil), 7_900, true},
		{move(change, "BASIC", nil), 2_900, false},
		{move(cancel, "", stands("PRO", "ACTIVE", "STARTER")), 2_900, true},
		{move(restore, "", stands("PRO", "ACTIVE", nil)), 7_900, false},
		{move(change, "BASIC", nil), 2_900, false},
		{move(change, "STARTER", nil), 2_900, true},
		{move(restore, "", nil), 7_900, false},
		{move(change, "BASIC", nil), 2_900, false},
	} {
		s.Run(t, step.move)
		if got := s.cents("sub_1"); got != step.cents ||
			s.subs["sub_1"].CancelAtPeriodEnd != step.ends {
			t.Errorf("%s: %d cents, %+v", step.move.Name, got, s.subs["sub_1"])
		}
	}
	s.Clock.Advance(monthSeconds * time.Second)
	s.Client.Tick(t)
	s.Run(t, apitest.Scenario{Name: "the next period", As: apitest.User,
		Do: "GET /api/subscription", Status: 200, Has: stands("BASIC", "ACTIVE", nil)})
}

// TestUpgradeReplaces: the dearer plan begins when it is paid, and the old contract is ended at the
// provider. While that fails, the notice is not answered.
func TestUpgradeReplaces(t *testing.T) {
	s := subscribed(t)
	s.Run(t, move(change, "BUSINESS", nil))
	paid := s.pay(2, "sub_2")
	s.set(func() { s.fail = true })
	s.Run(t, refusal(paid, 502, "payment_provider_failed"))
	s.set(func() { s.fail = false })
	s.Client.Lose(1)
	s.Run(t, refusal(paid, 503, "unavailable"))
	s.Client.Lose(2)
	s.Run(t, refusal(paid, 503, "unavailable"), paid, paid)
	s.Run(t, apitest.Scenario{Name: "read", As: apitest.User, Do: "GET /api/subscription",
		Status: 200, Has: stands("BUSINESS", "ACTIVE", nil)},
		s.told("customer.subscription.deleted", "sub_1"),
		s.told("customer.subscription.updated", "sub_2"),
		apitest.Scenario{Name: "stays", As: apitest.User, Do: "GET /api/subscription",
			Status: 200, Has: stands("BUSINESS", "ACTIVE", nil)})
	if s.subs["sub_1"].Status != "canceled" || s.subs["sub_2"].Status != "active" {
		t.Errorf("%+v, %+v", s.subs["sub_1"], s.subs["sub_2"])
	}
}

// TestContractNotices: old, repeated, reordered and forged notices, and those of others.
func TestContractNotices(t *testing.T) {
	s := subscribed(t)
	read := func(plan, status, scheduled any) apitest.Scenario {
		return apitest.Scenario{Name: "read", As: apitest.User, Do: "GET /api/subscription",
			Status: 200, Has: stands(plan, status, scheduled)}
	}
	before := s.told("customer.subscription.updated", "sub_1")
	s.Clock.Advance(time.Second)
	s.set(func() { s.subs["sub_1"].CancelAtPeriodEnd = true }) // changed by hand at Stripe
	later := s.told("customer.subscription.updated", "sub_1")
	s.Run(t, later, later, before, read("PRO", "ACTIVE", "STARTER"))
	forged := s.told("customer.subscription.deleted", "sub_1")
	forged.Body = strings.Replace(forged.Body, "PRO", "TEAM", 1)
	s.Run(t, refusal(forged, 400, "invalid_signature"))
	for _, of := range []string{"shoal_cluster", "shoal_customer"} {
		s.subs["sub_9"] = &sub{ID: "sub_9", Status: "active", Created: 9_000_000_000,
			Metadata: map[string]string{}}
		for name, value := range s.subs["sub_1"].Metadata {
			s.subs["sub_9"].Metadata[name] = value
		}
		s.subs["sub_9"].Items = s.subs["sub_1"].Items
		s.subs["sub_9"].Metadata[of] = "other"
		s.Run(t, s.told("customer.subscription.created", "sub_9"))
	}
	s.Run(t, read("PRO", "ACTIVE", "STARTER"))
	s.set(func() { s.subs["sub_1"].Status = "canceled" })
	s.Run(t, s.told("customer.subscription.deleted", "sub_1"), later,
		read("STARTER", "INACTIVE", nil))
}

// TestCreateTogether: 64 concurrent calls open one checkout.
func TestCreateTogether(t *testing.T) {
	s := openShop(t)
	call := move(create, "PRO", nil)
	call.Status = 0
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			a := s.Call(t, call)
			if a.Status != 409 && (a.Status != 200 ||
				a.Text("payment.url") != "https://pay.test/cs_1") {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	all.Wait()
	s.Run(t, move(create, "PRO", map[string]any{"payment.url": "https://pay.test/cs_1"}))
	if s.asked != 1 {
		t.Errorf("the provider was asked %d times", s.asked)
	}
	s.Run(t, move(create, "BASIC", map[string]any{"payment.url": "https://pay.test/cs_2"}))
	s.Clock.Advance(25 * time.Hour) // the checkout has expired
	s.Run(t, apitest.Scenario{Name: "expired", As: s.token(t), Do: "GET /api/subscription",
		Status: 200, Has: stands(nil, "INACTIVE", nil)})
}

// token is alice's API key, because sign-in tokens expire after an hour.
func (s *shop) token(*testing.T) string { return s.Secrets[apitest.User] }

// TestMovesOfTheKilled: a failing provider changes nothing. If the process dies after its answer,
// the contract is changed and a notice reports it, which leaves an open checkout. Other moves wait
// two minutes.
func TestMovesOfTheKilled(t *testing.T) {
	s := subscribed(t)
	s.Run(t, move(change, "BUSINESS", nil))
	s.set(func() { s.fail = true })
	s.Run(t, refusal(move(cancel, "", nil), 502, "payment_provider_failed"))
	s.set(func() { s.fail = false })
	s.Run(t, apitest.Scenario{Name: "as before", As: apitest.User, Do: "GET /api/subscription",
		Status: 200, Has: map[string]any{"plan": "PRO", "status": "ACTIVE", "scheduledPlan": nil,
			"payment.url": "https://pay.test/cs_2"}})
	calls := 0
	s.set(func() {
		s.during = func() {
			if calls++; calls == 2 { // the change; the first call reads
				s.Client.Fail(errors.New("killed"))
			}
		}
	})
	s.Run(t, refusal(move(cancel, "", nil), 500, "internal_error"))
	s.set(func() { s.during = nil })
	s.Client.Fail(nil)
	s.Run(t, refusal(move(restore, "", nil), 400, "no_downgrade_scheduled"),
		s.told("customer.subscription.updated", "sub_1"),
		apitest.Scenario{Name: "told", As: apitest.User, Do: "GET /api/subscription", Status: 200,
			Has: stands("PRO", "ACTIVE", "STARTER")},
		refusal(move(restore, "", nil), 409, "subscription_change_in_flight"))
	s.Clock.Advance(2 * time.Minute)
	s.Run(t, move(restore, "", stands("PRO", "ACTIVE", nil)))
}

func TestInvoices(t *testing.T) {
	s := subscribed(t)
	invoice := func(id, status, day string, cents int, with ...string) apitest.Scenario {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"id": %q, "status": %q, "currency": "eur", "total": %d,
			"created": %d, "hosted_invoice_url": "https://pay.test/%s", "parent":
			{"subscription_details": {"metadata": {"shoal_customer": "alice", "shoal_plan": "PRO",
			"shoal_cluster": %q}}}}`, id, status, cents, at.Unix(), id,
			s.Client.View().Cluster().ID)
		return s.notice("invoice.updated", strings.NewReplacer(with...).Replace(text))
	}
	s.Run(t, invoice("in_1", "paid", "2026-01-31", 7_900), invoice("in_1", "open", "2026-01-31", 1),
		invoice("in_2", "draft", "2026-02-28", 2_905), invoice("in_3", "open", "2026-03-01", 100),
		invoice("in_4", "open", "2026-03-01", 100, "alice", "nobody"),
		invoice("in_5", "open", "2026-03-01", 100, `"shoal_cluster": "`, `"shoal_cluster": "f`),
		invoice("in_6", "open", "2026-03-01", 100, "shoal_", "shop_"))
	list := func(query string, total int, first any) apitest.Scenario {
		return apitest.Scenario{Name: "list " + query, As: apitest.Reader,
			Do: "GET /api/billing-history" + query, Status: 200,
			Has: map[string]any{"totalElements": total, "content.0.id": first}}
	}
	s.Run(t, list("", 3, "in_3"), list("?size=1&page=2", 3, "in_1"),
		list("?status=DRAFT", 1, "in_2"), list("?from=2026-02-28", 2, "in_3"),
		list("?to=2026-02-28", 2, "in_2"), list("?from=2026-01-31&to=2026-01-31", 1, "in_1"),
		apitest.Scenario{Name: "whole", As: apitest.Reader,
			Do: "GET /api/billing-history?status=PAID", Status: 200, Has: map[string]any{
				"number": 0, "size": 20, "totalPages": 1, "content": []any{map[string]any{
					"id": "in_1", "amount": 79, "currency": "EUR", "status": "PAID",
					"issuedAt":         "2026-01-31T00:00:00.000Z",
					"hostedInvoiceUrl": "https://pay.test/in_1"}}}},
		apitest.Scenario{Name: "another's", As: apitest.Other, Do: "GET /api/billing-history",
			Status: 200, Has: map[string]any{"content": []any{}}},
		apitest.Scenario{Name: "no day", As: apitest.Reader,
			Do: "GET /api/billing-history?from=2026-02-30", Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "from"}},
		apitest.Scenario{Name: "ends before it begins", As: apitest.Reader,
			Do: "GET /api/billing-history?from=2026-02-28&to=2026-02-27", Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "from"}})
}

// A subscription keeps the price at which it was sold, whatever its plan costs now. The same holds
// for a canceled downgrade and for an open checkout.
func TestASubscriptionKeepsItsPrice(t *testing.T) {
	s := openShop(t)
	s.Run(t, move(create, "PRO", nil))
	dearer := apitest.Scenario{Name: "dearer", As: apitest.Admin, Do: "PUT /api/admin/settings",
		Status: 200, Body: `{"plans": [
			{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [], "limits": {}},
			{"plan": "BASIC", "level": 1, "monthlyPrice": 31.5, "offered": true,
			 "features": ["MANUAL_RUN"], "limits": {}},
			{"plan": "PRO", "level": 2, "monthlyPrice": 99, "offered": true,
			 "features": ["MANUAL_RUN"], "limits": {"MAX_GROUPS": 1}}]}`}
	s.Run(t, dearer, move(create, "PRO", nil), s.pay(1, "sub_1"),
		move(change, "BASIC", stands("PRO", "ACTIVE", "BASIC")))
	if cents := s.cents("sub_1"); cents != 3_150 {
		t.Errorf("BASIC is sold at %d cents", cents)
	}
	s.Run(t, s.told("customer.subscription.updated", "sub_1"),
		move(restore, "", stands("PRO", "ACTIVE", nil)))
	if cents := s.cents("sub_1"); cents != 7_900 {
		t.Errorf("what was sold at 7900 cents costs %d", cents)
	}
}
