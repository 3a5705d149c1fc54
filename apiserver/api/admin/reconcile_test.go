package admin_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// Without a payment provider the ledger is only compared with itself, and nothing changes.
func TestReconcileWithoutAProvider(t *testing.T) {
	s := apitest.Start(t, apitest.WithStore(apitest.NewStore(t)))
	s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: 7})
	const route = "POST /api/admin/billing/reconcile"
	s.Run(t, apitest.Scenario{Name: "by a key", As: apitest.User, Do: route, Status: 401,
		Code: "unauthorized"},
		apitest.Scenario{Name: "too many days", As: apitest.Admin, Do: route + "?days=401",
			Status: 400, Code: "invalid_request", Has: map[string]any{"errors.0.field": "days"}},
		apitest.Scenario{Name: "all agree", As: apitest.Admin, Do: route, Status: 200,
			Has: map[string]any{"providerAsked": false, "days": 31, "differences": []any{},
				"moreDifferences": 0, "wallets": 3, "entries": 4}})
}
