package wallet_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

func adjust(t *testing.T, s *apitest.Server, amount int64) {
	s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: amount})
}

func TestGet(t *testing.T) {
	s := apitest.Start(t)
	s.Client.Freeze(s.Client.View()) // the balance must be current even on a lagging node
	get := apitest.Scenario{As: apitest.Reader, Do: "GET /api/wallet", Status: 200}
	begin, low, level := get, get, get
	begin.Name = "new wallet"
	begin.Has = map[string]any{"": map[string]any{"balanceMicros": 0, "currency": "EUR",
		"freeRequestsRemaining": 5,
		"lowBalance":            true, "lowBalanceThresholdMicros": 5_000_000,
		"walletBillingEnabled": true}}
	s.Run(t, begin)
	adjust(t, s, 4_999_999)
	low.Name, low.Has = "below the threshold",
		map[string]any{"balanceMicros": 4_999_999, "lowBalance": true}
	s.Run(t, low)
	adjust(t, s, 1)
	level.Name, level.Has = "at the threshold",
		map[string]any{"balanceMicros": 5_000_000, "lowBalance": false}
	s.Run(t, level)
}

func TestTransactions(t *testing.T) {
	s := apitest.Start(t)
	adjust(t, s, 100)
	adjust(t, s, -30)
	list := func(name, query string, has map[string]any, lacks ...string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.Reader,
			Do: "GET /api/wallet/transactions" + query, Status: 200, Has: has, Lacks: lacks}
	}
	s.Run(t,
		list("newest first", "",
			map[string]any{"page": 0, "size": 20, "totalElements": 3, "totalPages": 1,
				"content.0.amountMicros": -30, "content.0.balanceAfterMicros": 70,
				"content.0.type":               "ADJUSTMENT",
				"content.1.balanceAfterMicros": 100, "content.1.source": nil,
				"content.1.lines": []any{},
				"content.2.type":  "FREE_GRANT", "content.2.freeRequestsDelta": 5},
			"content.0.note",
			"content.3"),
		list("a page", "?page=1&size=1",
			map[string]any{"content.0.amountMicros": 100, "totalPages": 3}, "content.1"),
		list("past the end", "?page=9&size=100",
			map[string]any{"content": []any{}, "totalPages": 1}),
	)
	for _, query := range []string{"size=0", "size=101", "size=x", "page=-1",
		"page=1001&size=100"} {
		s.Run(t, apitest.Scenario{Name: query, As: apitest.User,
			Do: "GET /api/wallet/transactions?" + query, Status: 400,
			Code: "invalid_page"})
	}
}

func TestPrices(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "prices", As: apitest.Reader, Do: "GET /api/wallet/prices",
		Status: 200,
		Has: map[string]any{
			"0": map[string]any{"rowKey": "tier:plain", "kind": "TIER", "label": "Plain",
				"sellingPriceMicros": 150},
			"1": map[string]any{"rowKey": "tier:render", "kind": "TIER",
				"label": "Render (browser)", "sellingPriceMicros": 750},
			"5": map[string]any{"rowKey": "plugin:websitecontacts", "kind": "PLUGIN",
				"label": "Website contacts", "sellingPriceMicros": 150}},
		Lacks: []string{"6"}})
}

func TestCustomersAreApart(t *testing.T) {
	s := apitest.Start(t)
	adjust(t, s, 100)
	for path, has := range map[string]map[string]any{"/api/wallet": {"balanceMicros": 0},
		"/api/wallet/transactions": {"totalElements": 1}} {
		s.Run(t, apitest.Scenario{Name: fmt.Sprint(path), As: apitest.Other, Do: "GET " + path,
			Status: 200, Has: has})
	}
}
