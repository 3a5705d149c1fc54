package admin_test

import (
	"context"
	"iter"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/ids"
)

func TestAdjustWallet(t *testing.T) {
	s := apitest.Start(t)
	const path = "POST /api/admin/customers/alice/wallet/adjustments"
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: path, Header: key("1"),
			Body:   `{"amountMicros":1}`,
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "nor is every sign-in", As: apitest.SignIn, Do: path,
			Header: key("1"),
			Body:   `{"amountMicros":1}`, Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "no idempotency key", As: apitest.Admin, Do: path,
			Body: `{"amountMicros":1}`, Status: 400,
			Code: "idempotency_key_required"},
		apitest.Scenario{Name: "nothing", As: apitest.Admin, Do: path, Header: key("1"),
			Body:   `{"amountMicros":0}`,
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "amountMicros"}},
		apitest.Scenario{Name: "no amount", As: apitest.Admin, Do: path, Header: key("1"),
			Body:   `{"note":"n"}`,
			Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "amountMicros"}},
		apitest.Scenario{Name: "too much", As: apitest.Admin, Do: path, Header: key("1"),
			Body: `{"amountMicros":9223372036854775807}`, Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "no such customer", As: apitest.Admin, Header: key("1"),
			Body: `{"amountMicros":1}`,
			Do:   "POST /api/admin/customers/carol/wallet/adjustments", Status: 400,
			Code: "not_found",
			Has:  map[string]any{"errors.0.field": "ref"}},
		apitest.Scenario{Name: "up", As: apitest.Admin, Do: path, Header: key("2"),
			Body:   `{"amountMicros":500,"note":"gift"}`,
			Status: 200, Has: map[string]any{"type": "ADJUSTMENT", "status": "APPLIED",
				"amountMicros": 500, "balanceAfterMicros": 500}},
		apitest.Scenario{Name: "up, again", As: apitest.Admin, Do: path, Header: key("2"),
			Body: `{"amountMicros":500,"note":"gift"}`, Status: 200,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "down below zero", As: apitest.Admin, Do: path, Header: key("3"),
			Body:   `{"amountMicros":-800}`,
			Status: 200, Has: map[string]any{"balanceAfterMicros": -300}},
		apitest.Scenario{Name: "the customer sees it", As: apitest.User, Do: "GET /api/wallet",
			Status: 200,
			Has:    map[string]any{"balanceMicros": -300}},
	)
}

func TestStatus(t *testing.T) {
	s := apitest.Start(t, func(config *apiserver.Config) {
		config.Lag = func(context.Context) map[string]int64 { return map[string]int64{"tasks": 7} }
	})
	s.Run(t,
		apitest.Scenario{Name: "admin", As: apitest.Admin, Do: "GET /api/admin/status", Status: 200,
			Has: map[string]any{"node": "test", "leader": "test", "roles": []any{},
				"lag": map[string]any{"tasks": 7}}},
		apitest.Scenario{Name: "key", As: apitest.User, Do: "GET /api/admin/status", Status: 401,
			Code: "unauthorized"},
	)
	s.Client.Fail(clienttest.Down())
	s.Run(t,
		apitest.Scenario{Name: "admin, without a leader", As: apitest.Admin,
			Do: "GET /api/admin/status", Status: 200},
		apitest.Scenario{Name: "key, without a leader", As: apitest.User,
			Do: "GET /api/admin/status", Status: 503,
			Code: "unavailable"},
		apitest.Scenario{Name: "no admin, without a leader", As: apitest.SignIn,
			Do: "GET /api/admin/status", Status: 401,
			Code: "unauthorized"},
	)
}

func TestRecount(t *testing.T) {
	s := apitest.Start(t, func(config *apiserver.Config) {
		config.Recount = func(_ context.Context,
			view *client.View) iter.Seq2[apiserver.RecountedRun, error] {
			return func(yield func(apiserver.RecountedRun, error) bool) {
				yield(apiserver.RecountedRun{CustomerRef: view.Customers()[0].Ref,
					LedgerMicros:  150,
					RecountMicros: 300}, nil)
			}
		}
	})
	s.Run(t,
		apitest.Scenario{Name: "admin", As: apitest.Admin, Do: "POST /api/admin/billing/recount",
			Status: 200,
			Has: map[string]any{"0.customerRef": "alice", "0.ledgerMicros": 150,
				"0.equal": false}},
		apitest.Scenario{Name: "key", As: apitest.User, Do: "POST /api/admin/billing/recount",
			Status: 401, Code: "unauthorized"},
	)
	none := apitest.Start(t)
	none.Run(t, apitest.Scenario{Name: "not from here", As: apitest.Admin,
		Do: "POST /api/admin/billing/recount", Status: 503,
		Code: "unavailable"})
}

func TestNodes(t *testing.T) {
	s := apitest.Start(t)
	s.Client.Must(t, client.RegisterNode{Name: "f1", Boot: ids.ID{1}, Roles: []string{"fetcher"},
		Version: "v9", Capacity: 3})
	s.Client.Must(t, client.RegisterNode{Name: "ingest1", Boot: ids.ID{2},
		Roles: []string{"ingest"}})
	const nodes, drain = "GET /api/admin/nodes", "PUT /api/admin/nodes/f1/drain"
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: nodes, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "nor may it drain", As: apitest.User, Do: drain, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "list", As: apitest.Admin, Do: nodes, Status: 200,
			Has: map[string]any{"0.name": "f1",
				"0.roles": []any{"fetcher"}, "0.version": "v9", "0.capacity": 3, "0.state": "ALIVE",
				"0.draining":       false,
				"0.leaseAgeMillis": 0, "0.boot": ids.ID{1}.String()}},
		apitest.Scenario{Name: "no such node", As: apitest.Admin,
			Do: "PUT /api/admin/nodes/f2/drain", Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "no fetcher", As: apitest.Admin,
			Do: "PUT /api/admin/nodes/ingest1/drain", Status: 400,
			Code: "invalid_request", Has: map[string]any{"detail": "node \"ingest1\" is no " +
				"fetcher: it has nothing to hand over"}},
		apitest.Scenario{Name: "taken back all the same", As: apitest.Admin,
			Do: "DELETE /api/admin/nodes/ingest1/drain", Status: 204},
		apitest.Scenario{Name: "drain", As: apitest.Admin, Do: drain, Status: 204},
		apitest.Scenario{Name: "it drains", As: apitest.Admin, Do: nodes, Status: 200,
			Has: map[string]any{"0.draining": true, "0.state": "DRAINED"}},
		apitest.Scenario{Name: "again", As: apitest.Admin, Do: "POST /api/admin/nodes/f1/drain",
			Status: 204},
		apitest.Scenario{Name: "back", As: apitest.Admin, Do: "DELETE /api/admin/nodes/f1/drain",
			Status: 204},
		apitest.Scenario{Name: "it works", As: apitest.Admin, Do: nodes, Status: 200,
			Has: map[string]any{"0.draining": false}},
	)
	s.Client.Fail(clienttest.Down())
	s.Run(t, apitest.Scenario{Name: "no leader", As: apitest.Admin, Do: nodes, Status: 503,
		Code: "unavailable"})
}
