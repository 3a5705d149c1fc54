package admin_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// Two calls remove a customer, and only admins may make them. After the second one its credentials
// are refused, nobody can act for it, and its money stays.
func TestRemoveCustomer(t *testing.T) {
	s := apitest.Start(t, apitest.WithStore(apitest.NewStore(t)))
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	const path = "/api/admin/customers/"
	const preview, remove = "POST " + path + "alice/preview-delete", "DELETE " + path + "alice"
	s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: 5_000})
	s.Client.Must(t, client.SignUp{Customer: "alice", Email: "ann@shop.test", Firstname: "Ann",
		Lastname: "Smith"})
	group := s.NewGroup(t, "alice", "g")
	scraper := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice", Group: group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}}
	s.Client.Must(t, scraper)
	s.Client.Must(t, client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "alice",
		Scraper: scraper.ID, List: s.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)})
	balance := s.Client.View().Wallet("alice").Balance()
	keys := len(s.Client.View().Keys("alice"))
	counts := map[string]any{"openRuns": 1, "rows": 0, "sites": 0, "siteLinks": 0,
		"groups": 1, "scrapers": 1, "schemas": 0,
		"keys": keys, "accounts": 0, "webhooks": 0}
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: preview, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "nobody", As: apitest.Admin, Status: 400, Code: "not_found",
			Do: "POST " + path + "carol/preview-delete"},
		apitest.Scenario{Name: "oneself", As: apitest.Admin, Do: "DELETE " + path + "root",
			Header: key("1"), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "no preview", As: apitest.Admin, Do: remove, Header: key("2"),
			Status: 409, Code: "PREVIEW_REQUIRED"},
		apitest.Scenario{Name: "preview", As: apitest.Admin, Do: preview, Status: 200,
			Has: map[string]any{"previewSummary.entityName": "alice",
				"previewSummary.entityType":    "CUSTOMER",
				"previewSummary.cascadeCounts": counts}},
	)
	s.NewGroup(t, "alice", "meanwhile")
	counts["groups"] = 2
	s.Run(t, apitest.Scenario{Name: "a group meanwhile", As: apitest.Admin, Do: remove,
		Header: key("3"), Status: 409, Code: "CASCADE_COUNT_DRIFT"})
	token := s.Call(t, apitest.Scenario{As: apitest.Admin, Do: preview, Status: 200,
		Has: map[string]any{"previewSummary.cascadeCounts": counts}}).Text("token")
	s.Run(t,
		apitest.Scenario{Name: "remove", As: apitest.Admin, Do: remove + "?token=" + token,
			Header: key("4"), Status: 204},
		apitest.Scenario{Name: "again under its key", As: apitest.Admin,
			Do: remove + "?token=" + token, Header: key("4"), Status: 204,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "once more", As: apitest.Admin, Do: preview, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "its keys", As: apitest.User, Do: "GET /api/wallet", Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "its tokens", As: apitest.SignIn, Do: "GET /api/wallet",
			Status: 403, Code: "customer_blocked"},
		apitest.Scenario{Name: "for good", As: apitest.Admin,
			Do: "DELETE " + path + "alice/block", Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "nobody acts for it", As: apitest.Admin, Do: "GET /api/wallet",
			Header: map[string]string{"X-Customer-Ref": "alice"}, Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "it is listed as removed", As: apitest.Admin,
			Do: "GET " + path + "alice", Status: 200, Has: map[string]any{
				"customer.email": "", "customer.removedAt": "2026-01-02T03:04:05.000Z",
				"counts.openRuns": 1, "counts.keys": 0}},
	)
	if now := s.Client.View().Wallet("alice").Balance(); now != balance {
		t.Errorf("the balance is %d and was %d", now, balance)
	}
}
