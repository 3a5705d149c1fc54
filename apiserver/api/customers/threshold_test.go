package customers_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestWalletPreferences(t *testing.T) {
	s := apitest.Start(t)
	const path = "/api/customer/preferences/wallet"
	const member = "lowBalanceThresholdMicros"
	refused := func(name, body string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: "PUT " + path, Body: body,
			Status: 400, Code: "invalid_request", Has: map[string]any{"errors.0.field": member}}
	}
	s.Run(t,
		apitest.Scenario{Name: "a read key may not", As: apitest.Reader, Do: "PUT " + path,
			Body: `{"lowBalanceThresholdMicros":1}`, Status: 403, Code: "scope_rejected"},
		refused("nothing", `{}`),
		refused("below 0", `{"lowBalanceThresholdMicros":-1}`),
		refused("beyond the bound", `{"lowBalanceThresholdMicros":1000000000001}`),
		apitest.Scenario{Name: "the service's", As: apitest.Reader, Do: "GET " + path,
			Status: 200, Has: map[string]any{member: 5_000_000}},
		apitest.Scenario{Name: "none", As: apitest.User, Do: "PUT " + path, Status: 200,
			Body: `{"lowBalanceThresholdMicros":0}`, Has: map[string]any{member: 0}},
		apitest.Scenario{Name: "nothing is low then", As: apitest.User, Do: "GET /api/wallet",
			Status: 200, Has: map[string]any{member: 0, "lowBalance": false}},
		apitest.Scenario{Name: "set", As: apitest.User, Do: "PUT " + path, Status: 200,
			Body: `{"lowBalanceThresholdMicros":1000000000000}`,
			Has:  map[string]any{member: 1_000_000_000_000}},
		apitest.Scenario{Name: "nobody else's", As: apitest.Other, Do: "GET " + path,
			Status: 200, Has: map[string]any{member: 5_000_000}},
	)
}
