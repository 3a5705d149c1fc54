package subscriptions_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// withPlans sets a catalogue with STARTER, which allows little, PRO and others.
func withPlans(c *apiserver.Config) {
	c.Plans = []byte(`[{"plan": "PRO", "level": 7, "monthlyPrice": 79.5, "offered": true,
		"features": ["API", "DATA_EXPORT", "EXTERNAL_API", "DATA_CHARTS",
		"GROUP_CUSTOM_CATEGORIES"], "limits": {"GROUP_CUSTOM_CATEGORIES_LIMIT": 1}},
		{"plan": "TEAM", "level": 9, "monthlyPrice": 99, "features": [], "limits": {}},
		{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": ["MANUAL_RUN"],
		"limits": {"MAX_SCRAPERS": 2, "MAX_GROUPS": 1}}]`)
}

func TestCatalogue(t *testing.T) {
	s := apitest.Start(t, withPlans)
	s.Run(t, apitest.Scenario{Name: "plans", Do: "GET /api/plan-features", Status: 200,
		Has: map[string]any{"0.plan": "STARTER", "0.level": 0, "0.monthlyPrice": 0,
			"0.features": []string{"MANUAL_RUN"}, "0.limits.MAX_SCRAPERS": 2, "1.plan": "PRO",
			"1.level": 7, "1.monthlyPrice": 79.5, "2.limits": map[string]any{}, "2.plan": "TEAM"},
		Lacks: []string{"1.offered", "3"}},
		apitest.Scenario{Name: "prices", Do: "GET /api/subscription/prices", Status: 200,
			Has: map[string]any{"": []any{map[string]any{"plan": "PRO",
				"monthly": map[string]any{"amount": 79.5, "currency": "EUR"}}}}})
	s = apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "the program's own", Do: "GET /api/subscription/prices",
		Status: 200, Has: map[string]any{"0.plan": "BASIC", "1.plan": "PRO", "2.plan": "BUSINESS"},
		Lacks: []string{"3"}})
}

// TestCatalogueIsThrottled: each address has its own bucket.
func TestCatalogueIsThrottled(t *testing.T) {
	s := apitest.Start(t, apitest.WithRateLimits, func(c *apiserver.Config) {
		c.Rates = map[string]apiserver.Rate{"anonymous": {Count: 2, Per: 1 << 40}}
	})
	for _, status := range []int{200, 200, 429} {
		if a := s.Call(t, apitest.Scenario{Do: "GET /api/plan-features"}); a.Status != status {
			t.Errorf("%d, want %d", a.Status, status)
		}
	}
}

func TestCatalogueThatCannotBe(t *testing.T) {
	if _, err := apiserver.New(apiserver.Config{DataDir: t.TempDir(),
		Plans: []byte("[]")}); err == nil {
		t.Error("a catalogue without a plan is served")
	}
	if apiserver.CheckPlans([]byte("[]")) == nil {
		t.Error("a catalogue without a plan is right")
	}
}

// TestPlansGate: a plan without a feature refuses the request before anything else is checked. A
// plan with it, an unknown plan and no plan refuse nothing.
func TestPlansGate(t *testing.T) {
	gated := []struct{ feature, do string }{
		{"API", "POST /api/scraper-simple/curl-based"},
		{"EXTERNAL_API", "GET /api/scraper/data/group/nonsense/client"},
		{"DATA_EXPORT", "GET /api/scraper/data/group/nonsense/download"},
		{"DATA_EXPORT", "GET /api/scraper/data/export?nonsense"},
		{"GROUP_CUSTOM_CATEGORIES", "PUT /api/scraper/data/group/nonsense/category"},
		{"DATA_CHARTS", "PUT /api/customer/preferences/additional-info"},
	}
	for plan, refuses := range map[string]bool{"": false, "STARTER": true, "PRO": false,
		"GONE": false} {
		t.Run("plan "+plan, func(t *testing.T) {
			s := apitest.Start(t, withPlans)
			subscribe(t, s, "alice", plan)
			for _, g := range gated {
				sc := apitest.Scenario{Name: g.do, As: apitest.User, Do: g.do, Status: 400}
				if refuses {
					sc.Status, sc.Code = 402, "feature_not_in_plan"
					sc.Has = map[string]any{"detail": "the plan STARTER lacks the feature " +
						g.feature}
				}
				s.Run(t, sc)
			}
			s.Run(t, apitest.Scenario{Name: "what is one's own can be removed", As: apitest.User,
				Do: "DELETE /api/customer/preferences/additional-info/k", Status: 200})
		})
	}
}

// subscribe gives a customer a plan; "": none.
func subscribe(t *testing.T, s *apitest.Server, customer, plan string) {
	t.Helper()
	switch plan {
	case "":
	case client.StarterPlan:
		s.Client.Must(t, client.ChooseFree{Customer: customer})
	default:
		s.Client.Must(t, client.TellContract{Customer: customer, Contract: client.Contract{
			ID: "sub_1", Plan: plan, Created: 1, Standing: client.ContractLive,
			PeriodEnd: s.Clock.Now().UnixMilli() + 1_000, ToldAt: 1}})
	}
}

// TestPlansCap: existing things stay and can be changed, but none can be added.
func TestPlansCap(t *testing.T) {
	s := apitest.Start(t, withPlans, apitest.WithStore(apitest.NewStore(t)))
	first := s.NewGroup(t, "alice", "before")
	s.NewGroup(t, "alice", "before, too")
	subscribe(t, s, "alice", "STARTER")
	n := 0
	put := func(name, do, body string, status int) apitest.Scenario {
		n++
		sc := apitest.Scenario{Name: name, As: apitest.User, Do: do, Body: body, Status: status,
			Header: map[string]string{"Idempotency-Key": fmt.Sprint(n)}}
		if status == 402 {
			sc.Code = "plan_limit_reached"
		}
		return sc
	}
	scraper := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "groupRef": %q, "type": "SINGLE_PRODUCT",
			"sourceConfig": {"url": "https://shop.test/"},
			"itemsConfig": [{"name": "t", "selector": "h1", "kind": "TEXT"}]}`, name, first)
	}
	const groups, scrapers = "PUT /api/scraper/group", "PUT /api/scraper"
	list := func(name string) string {
		return fmt.Sprintf(`{"groupId": %q, "name": %q, "urls": ["https://shop.test/1"],
			"itemsConfig": [{"name": "t", "selector": "h1", "kind": "TEXT"}]}`, first, name)
	}
	s.Run(t,
		put("a third group", groups, `{"name": "g"}`, 402),
		put("a change", groups, fmt.Sprintf(`{"id": %q, "name": "h"}`, first), 200),
		put("a scraper", scrapers, scraper("one"), 200),
		put("another one", "PUT /api/scraper/v2", scraper("two"), 200),
		put("a third one", scrapers, scraper("three"), 402),
		put("by a list", "POST /api/scraper/url-list-run", list("four"), 402),
		apitest.Scenario{Name: "the profile says so", As: apitest.Reader,
			Do: "GET /api/customer?withStat=true", Status: 200, Has: map[string]any{
				"plan": "STARTER", "subscriptionStatus": "ACTIVE",
				"statistic.quotaUsage.MAX_SCRAPERS": 2, "statistic.quotaUsage.MAX_GROUPS": 2}})
	subscribe(t, s, "alice", "PRO")
	category := "PUT /api/scraper/data/group/" + first.String() + "/category"
	s.Run(t, put("with a plan that allows any number", groups, `{"name": "g"}`, 200),
		put("and scrapers", scrapers, scraper("three"), 200),
		put("a category", category, `{"name": "a", "filters": {"x": 1}}`, 200),
		put("that changes", category, `{"name": "a", "filters": {"x": 2}}`, 200),
		put("a second one", category, `{"name": "b", "filters": {"x": 1}}`, 402))
}
