package admin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

func TestCustomers(t *testing.T) {
	s := apitest.Start(t)
	const list = "GET /api/admin/customers"
	s.Clock.Advance(time.Minute)
	s.Client.Must(t, client.SignUp{Customer: "bob", Email: "Bob@Shop.test", Firstname: "Bob",
		Lastname: "Smith"})
	s.Client.Must(t, client.OpenCustomer{Customer: "auth0|Carol", Entry: s.IDs.New()})
	s.Client.Must(t, client.BlockCustomer{Customer: "auth0|Carol", By: "root"})
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: list, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "nor is every sign-in", As: apitest.SignIn, Do: list, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "too deep", As: apitest.Admin, Do: list + "?size=200&page=501",
			Status: 400, Code: "invalid_page", Has: map[string]any{"errors.0.field": "page"}},
		apitest.Scenario{Name: "the deepest", As: apitest.Admin, Do: list + "?size=200&page=500",
			Status: 200, Has: map[string]any{"content": []any{}, "totalElements": 4}},
		apitest.Scenario{Name: "too long a text", As: apitest.Admin,
			Do: list + "?q=" + strings.Repeat("x", 255), Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "q"}},
		apitest.Scenario{Name: "misspelt", As: apitest.Admin, Do: list + "?email=x", Status: 400,
			Code: "unknown_parameter"},
		find("all", "", "alice", "auth0|Carol", "bob", "root"),
		find("by reference", "?q=CAROL", "auth0|Carol"),
		find("by e-mail address", "?q=%40shop.TEST", "bob"),
		find("nobody", "?q=nobody"),
		find("blocked ones", "?blocked=true", "auth0|Carol"),
		find("blocked ones of a name", "?blocked=true&q=bob"),
		apitest.Scenario{Name: "the second page", As: apitest.Admin, Do: list + "?size=2&page=1",
			Status: 200, Has: map[string]any{"content.0": map[string]any{
				"customerUniqueRef": "bob", "email": "Bob@Shop.test", "firstname": "Bob",
				"lastname": "Smith", "createdAt": "2026-01-02T03:04:05.000Z", "blockedAt": nil,
				"removedAt": nil, "erasedAt": nil},
				"totalElements": 4, "totalPages": 2, "number": 1, "size": 2},
			Lacks: []string{"content.2"}},
	)
}

// find lists customers, and wants exactly those.
func find(name, query string, refs ...string) apitest.Scenario {
	sc := apitest.Scenario{Name: name, As: apitest.Admin, Do: "GET /api/admin/customers" + query,
		Status: 200, Has: map[string]any{"totalElements": len(refs)},
		Lacks: []string{fmt.Sprintf("content.%d", len(refs))}}
	for i, ref := range refs {
		sc.Has[fmt.Sprintf("content.%d.customerUniqueRef", i)] = ref
	}
	return sc
}

// A whole address finds only its customer, unless it is also somebody's reference.
func TestCustomerByAddress(t *testing.T) {
	s := apitest.Start(t)
	s.Client.Must(t, client.SignUp{Customer: "bob", Email: "Bob@Shop.test"})
	s.Client.Must(t, client.OpenCustomer{Customer: "jim", Entry: s.IDs.New()})
	s.Client.Must(t, client.SignUp{Customer: "jim", Email: "jimbob@shop.test"})
	s.Run(t,
		find("a part of both", "?q=bob%40shop.tes", "bob", "jim"),
		find("the whole of one", "?q=BOB%40shop.test", "bob"),
		find("it is not blocked", "?q=bob%40shop.test&blocked=true"))
	s.Client.Must(t, client.OpenCustomer{Customer: "bob@shop.test", Entry: s.IDs.New()})
	s.Run(t, find("also a reference", "?q=bob%40shop.test", "bob", "bob@shop.test", "jim"))
}

func TestCustomer(t *testing.T) {
	s := apitest.Start(t)
	const one = "GET /api/admin/customers/"
	s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: 5_000})
	group := s.NewGroup(t, "alice", "g")
	s.NewGroup(t, "alice", "empty")
	scraper := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice", Group: group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct}}
	s.Client.Must(t, scraper)
	s.Client.Must(t, client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "alice",
		Scraper: scraper.ID, List: s.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)})
	s.Client.Must(t, client.BeginResult{Job: s.IDs.New(), Customer: "alice", Group: group,
		Made: client.Enriched, Kind: work.Merge, NewGroup: s.IDs.New(), NewScraper: s.IDs.New()})
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: one + "alice",
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "unknown", As: apitest.Admin, Do: one + "carol", Status: 400,
			Code: "not_found", Has: map[string]any{"errors.0.field": "ref"}},
		apitest.Scenario{Name: "too long", As: apitest.Admin,
			Do: one + strings.Repeat("x", 129), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "alice", As: apitest.Admin, Do: one + "alice", Status: 200,
			Has: map[string]any{"customer.customerUniqueRef": "alice", "customer.email": "",
				"customer.blockedAt": nil, "blockedBy": nil, "wallet.balanceMicros": 5_000,
				"wallet.freeRequestsRemaining": 5,
				"counts": map[string]any{"scrapers": 1, "groups": 2, "keys": 3, "openRuns": 2,
					"runsLast30d": 2}}},
	)
}

// A blocked customer is refused with every credential, and gets everything back afterwards.
func TestBlockCustomer(t *testing.T) {
	s := apitest.Start(t)
	const block, unblock = "PUT /api/admin/customers/alice/block",
		"DELETE /api/admin/customers/alice/block"
	call := func(name, who, do string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: who, Do: do, Status: status, Code: code}
	}
	const read = "GET /api/wallet"
	s.Run(t,
		call("a key is no admin", apitest.User, block, 401, "unauthorized"),
		call("nor is every sign-in", apitest.SignIn, block, 401, "unauthorized"),
		call("nor may they unblock", apitest.User, unblock, 401, "unauthorized"),
		apitest.Scenario{Name: "unknown", As: apitest.Admin,
			Do: "PUT /api/admin/customers/carol/block", Status: 400, Code: "not_found",
			Has: map[string]any{"errors.0.field": "ref"}},
		apitest.Scenario{Name: "itself", As: apitest.Admin,
			Do: "PUT /api/admin/customers/root/block", Status: 400, Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "ref"}},
		call("no block to take back", apitest.Admin, unblock, 204, ""),
		call("block", apitest.Admin, block, 204, ""),
		call("again, by its other name", apitest.Admin,
			"POST /api/admin/customers/alice/block", 204, ""),
		call("a key", apitest.User, read, 403, "customer_blocked"),
		call("another", apitest.LLM, read, 403, "customer_blocked"),
		call("a read key", apitest.Reader, read, 403, "customer_blocked"),
		call("a sign-in", apitest.SignIn, read, 403, "customer_blocked"),
		call("what is public", apitest.Nobody, "GET /api/customer/user-agreement", 200, ""),
		call("another customer", apitest.Other, read, 200, ""),
		apitest.Scenario{Name: "an admin for it", As: apitest.Admin, Do: read,
			Header: map[string]string{"X-Customer-Ref": "alice"}, Status: 200},
		apitest.Scenario{Name: "the account", As: apitest.Admin,
			Do: "GET /api/admin/customers/alice", Status: 200,
			Has: map[string]any{"customer.blockedAt": "2026-01-02T03:04:05.000Z",
				"blockedBy": "root"}},
	)
	s.Client.Fail(clienttest.Down())
	s.Run(t, call("a sign-in, without a leader", apitest.SignIn, "GET /api/admin/status", 403,
		"customer_blocked"))
	s.Client.Fail(nil)
	s.Run(t,
		call("unblock", apitest.Admin, unblock, 204, ""),
		call("a key again", apitest.User, read, 200, ""),
		call("a sign-in again", apitest.SignIn, read, 200, ""),
	)
}
