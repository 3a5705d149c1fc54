package admin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/controlplane/client"
)

const settingsRoute = "/api/admin/settings"

const (
	starterPlan = `{"plan": "STARTER", "level": 0, "monthlyPrice": 0, "features": [], "limits": {}}`
	proPlan     = `{"plan": "PRO", "level": 7, "monthlyPrice": 79.99, "features": ["API"],
		"limits": {"MAX_GROUPS": 0}, "offered": true}`
)

// set is a PUT of settings by an admin.
func set(name, body string, has map[string]any) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.Admin, Do: "PUT " + settingsRoute, Body: body,
		Status: 200, Has: has}
}

// late is a PUT of settings by an admin who has read others than today's.
func late(name, body string) apitest.Scenario {
	bad := set(name, body, map[string]any{"errors.0.field": "revision"})
	bad.Status, bad.Code = 409, "settings_changed"
	return bad
}

func TestSettings(t *testing.T) {
	s := apitest.Start(t)
	at := "2026-01-02T03:04:05.000Z"
	none := map[string]any{"walletBillingEnabled": true,
		"lowBalanceThresholdMicros": 5_000_000, "rates": map[string]any{},
		"customerRates": map[string]any{}, "signUpEnabled": false,
		"uploads": map[string]any{"maxHeavyImports": 1, "maxUploadSeconds": 3600,
			"holdMinutes": 30}, "historyDays": nil, "plans.0.plan": "STARTER",
		"plans.1.monthlyPrice": 29, "plans.1.offered": true, "plans.4.plan": "TEAM",
		"plans.4.offered": false, "revision": 0, "changedAt": nil, "changedBy": ""}
	get := apitest.Scenario{Name: "get", As: apitest.Admin, Do: "GET " + settingsRoute,
		Status: 200, Has: none}
	for _, do := range []string{"GET ", "PUT "} {
		body := ""
		if do == "PUT " {
			body = `{"walletBillingEnabled": false}`
		}
		s.Run(t, apitest.Scenario{Name: do + "by a key", As: apitest.User, Do: do + settingsRoute,
			Body: body, Status: 401, Code: "unauthorized"})
	}
	s.Run(t, get, set("nothing", `{"revision": 0}`, none),
		set("some", `{"walletBillingEnabled": false, "rates": {"run": "20/1m", "read": "5/1h",
			"mint": "7/1m30s"}, "revision": 0}`, map[string]any{"walletBillingEnabled": false, "rates.run": "20/1m",
			"rates.read": "5/1h", "rates.mint": "7/1m30s", "revision": 1, "changedAt": at,
			"changedBy": "root"}),
		set("others", `{"lowBalanceThresholdMicros": 0, "customerRates": {"run": "9/1m"},
			"revision": 1, "changedAt": "2020-01-01T00:00:00.000Z", "changedBy": "eve"}`,
			map[string]any{"walletBillingEnabled": false, "rates.run": "20/1m",
				"customerRates.run": "9/1m", "lowBalanceThresholdMicros": 0, "revision": 2}),
		late("of no revision yet", `{"rates": {}, "revision": 0}`),
		late("of an older revision", `{"rates": {}, "revision": 1}`),
		late("of a newer revision", `{"rates": {}, "revision": 77}`),
		set("again", `{"customerRates": {"run": "9/1m"}, "revision": 1}`, map[string]any{
			"revision": 2, "changedBy": "root"}),
		set("fewer", `{"rates": {}, "revision": null}`, map[string]any{"rates": map[string]any{},
			"customerRates.run": "9/1m", "revision": 3}),
		set("history", `{"historyDays": 90}`, map[string]any{"historyDays": 90, "revision": 4}),
		set("of it nothing", `{"historyDays": null}`, map[string]any{"historyDays": 90,
			"revision": 4}),
		set("no history of its own", `{"historyDays": 0}`, map[string]any{"historyDays": nil,
			"revision": 5}),
		set("plans", `{"plans": [`+proPlan+`, `+starterPlan+`]}`, map[string]any{"revision": 6,
			"plans.0.plan": "STARTER", "plans.0.limits": map[string]any{}, "plans.1.plan": "PRO",
			"plans.1.features": []any{"API"}, "plans.1.monthlyPrice": 79.99,
			"plans.1.limits": map[string]any{"MAX_GROUPS": 0}, "rates": map[string]any{}}),
		set("no plans", `{"plans": null}`, map[string]any{"plans.1.monthlyPrice": 79.99,
			"revision": 6}))
	for body, field := range map[string]string{
		`{"rates": {"walk": "1/1m"}}`:               "rates.walk",
		`{"rates": {"run": "0/1m"}}`:                "rates.run",
		`{"rates": {"run": "often"}}`:               "rates.run",
		`{"customerRates": {"anonymous": "9/1m"}}`:  "customerRates.anonymous",
		`{"lowBalanceThresholdMicros": -1}`:         "lowBalanceThresholdMicros",
		`{"lowBalanceThresholdMicros": 1e13}`:       "lowBalanceThresholdMicros",
		`{"historyDays": 89}`:                       "historyDays",
		`{"historyDays": 36501}`:                    "historyDays",
		`{"historyDays": 1}`:                        "historyDays",
		`{"walletBillingEnabled": "no"}`:            "walletBillingEnabled",
		`{"walletBilingEnabled": true}`:             "walletBilingEnabled",
		`{"walletBillingEnabled": true, "rates":1}`: "rates",
		`{"plans": []}`:                             "plans",
		`{"plans": [` + proPlan + `]}`:              "plans",
		`{"plans": [` + starterPlan + `, ` + strings.Replace(proPlan, "79.99", "79.999",
			1) + `]}`: "plans[1].monthlyPrice",
		`{"plans": [` + starterPlan + `, ` + strings.Replace(proPlan, `"API"`, `"FLY"`,
			1) + `]}`: "plans[1].features",
		`{"plans": [` + proPlan + `, ` + proPlan + `]}`: "plans[1].plan",
		`{"plans": [` + starterPlan + `, ` + strings.Replace(proPlan, "PRO", "GOLD",
			1) + `]}`: "plans[1].plan",
	} {
		bad := set(body, body, map[string]any{"errors.0.field": field})
		bad.Status = 400
		s.Run(t, bad)
	}
	if now := s.Client.View().Settings(); now.Revision != 6 || !now.BillingOff {
		t.Errorf("what was refused was done in part: %+v", now)
	}
}

// While billing is off, a customer without money and free requests can launch everything; once it
// is on again, nothing.
func TestBillingIsSwitchedOff(t *testing.T) {
	s := apitest.Start(t, apitest.WithStore(apitest.NewStore(t)))
	s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: -1})
	wallet := func(on bool) apitest.Scenario {
		return apitest.Scenario{Name: fmt.Sprint("wallet ", on), As: apitest.User,
			Do: "GET /api/wallet", Status: 200, Has: map[string]any{"walletBillingEnabled": on,
				"balanceMicros": -1}}
	}
	s.Run(t, wallet(true), set("off", `{"walletBillingEnabled": false}`, nil), wallet(false),
		set("on", `{"walletBillingEnabled": true}`, nil), wallet(true))
}

// Figures apply from the next call on. Once removed, those of the server's start apply again.
func TestRatesAreSet(t *testing.T) {
	s := apitest.Start(t, apitest.WithRateLimits)
	limit := func(name string, figure int) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.Other, Do: "GET /api/wallet", Status: 200,
			Headers: map[string]string{"RateLimit-Limit": fmt.Sprint(figure)}}
	}
	s.Run(t, limit("by default", 600), set("few", `{"rates": {"read": "2/1h"}}`, nil),
		limit("few", 2), limit("the last", 2))
	tooMany := limit("too many", 2)
	tooMany.Status, tooMany.Code = 429, "rate_limited"
	s.Run(t, tooMany, set("as ever", `{"rates": {}}`, nil))
	tooMany.Headers = nil
	s.Run(t, tooMany) // used-up calls are refilled gradually
	s.Clock.Advance(time.Minute)
	s.Run(t, limit("as ever", 600), set("together", `{"customerRates": {"read": "3/1h"}}`, nil),
		limit("together", 3))
}

// An operator can undo any figure, even one that would lock operators out.
func TestNoFigureLocksOperatorsOut(t *testing.T) {
	s := apitest.Start(t, apitest.WithRateLimits)
	least := map[string]string{}
	for _, class := range limits.Classes() {
		least[string(class)] = "1/24h"
	}
	customers := maps.Clone(least)
	delete(customers, string(limits.Anonymous))
	body, err := json.Marshal(map[string]any{"rates": least, "customerRates": customers})
	if err != nil {
		t.Fatal(err)
	}
	status := apitest.Scenario{Name: "others", As: apitest.Admin, Do: "GET /api/admin/customers",
		Status: 200}
	s.Run(t, set("least", string(body), nil), status)
	status.Status, status.Code = 429, "rate_limited"
	s.Run(t, status, apitest.Scenario{Name: "get", As: apitest.Admin, Do: "GET " + settingsRoute,
		Status: 200}, set("as ever", `{"rates": {}, "customerRates": {}}`, nil))
}
