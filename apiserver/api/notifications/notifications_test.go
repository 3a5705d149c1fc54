package notifications_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// key makes a key for a customer, which causes a notification.
func key(t *testing.T, s *apitest.Server, customer, name string) ids.ID {
	t.Helper()
	id := s.IDs.New()
	s.Client.Must(t, client.MintKey{ID: id, Customer: customer, Prefix: id.String()[17:],
		Name: name, Scope: model.ScopeUser})
	return id
}

// start starts a server whose customers have no unread notices of the keys that every test has.
func start(t *testing.T) *apitest.Server {
	t.Helper()
	s := apitest.Start(t)
	for _, customer := range []string{"alice", "bob"} {
		s.Client.Must(t, client.ReadNotices{Customer: customer})
	}
	return s
}

func newest(s *apitest.Server, customer string) (id ids.ID) {
	s.Client.View().Notices(customer, func(n *client.Notice) bool { id = n.ID; return false })
	return id
}

func TestList(t *testing.T) {
	s := start(t)
	const do = "GET /api/notifications?unread=true"
	s.Run(t,
		apitest.Scenario{Name: "no credential", Do: do, Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "misspelt parameter", As: apitest.User,
			Do: "GET /api/notifications?read=true", Status: 400, Code: "unknown_parameter"},
		apitest.Scenario{Name: "size 0", As: apitest.User, Do: do + "&size=0", Status: 400,
			Code: "invalid_page"},
		apitest.Scenario{Name: "too deep", As: apitest.User, Do: do + "&page=1000000",
			Status: 400, Code: "invalid_page"},
		apitest.Scenario{Name: "none", As: apitest.Reader, Do: do, Status: 200,
			Has: map[string]any{"totalElements": 0, "content": []any{}}})
	var made []ids.ID
	for n := range 3 {
		made = append(made, key(t, s, "alice", fmt.Sprint("key ", n)))
	}
	s.Run(t,
		apitest.Scenario{Name: "newest first", As: apitest.Reader, Do: do + "&size=2",
			Status: 200, Has: map[string]any{"totalElements": 3, "totalPages": 2,
				"content.0.event": "API_KEY_CREATED", "content.0.keyId": made[2].String(),
				"content.0.title":     `The API key "key 2" was created`,
				"content.0.createdAt": "2026-01-02T03:04:05.000Z", "content.0.read": false,
				"content.0.jobId": nil, "content.0.scraperId": nil, "content.0.count": 1,
				"content.1.keyId": made[1].String()},
			Lacks: []string{"content.2"}},
		apitest.Scenario{Name: "the next page", As: apitest.Reader, Do: do + "&size=2&page=1",
			Status: 200, Has: map[string]any{"content.0.keyId": made[0].String()},
			Lacks: []string{"content.1"}},
		apitest.Scenario{Name: "nobody else is told", As: apitest.Other, Do: do, Status: 200,
			Has: map[string]any{"totalElements": 0}},
		apitest.Scenario{Name: "counted", As: apitest.Reader, Do: "GET /api/notifications/unread",
			Status: 200, Has: map[string]any{"unread": 3}})
}

func TestRunsAreTold(t *testing.T) {
	s := start(t)
	scraper := client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice",
		Group: s.NewGroup(t, "alice", "g"), Spec: model.Scraper{Name: "Shop"}}
	s.Client.Must(t, scraper)
	launch := client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "alice",
		Scraper: scraper.ID, Links: 1, List: s.IDs.New(), Tiers: model.TiersOf(model.Plain)}
	s.Client.Must(t, launch)
	s.Client.Dispatch(t, launch.Job, 0)
	if err := s.Client.Settle(t.Context(), []model.Receipt{{Job: launch.Job,
		Outcome: model.Errored, Last: true}}, nil); err != nil {
		t.Fatal(err)
	}
	s.Client.CloseRun(t, launch.Job)
	s.Run(t, apitest.Scenario{Name: "failed", As: apitest.Reader,
		Do: "GET /api/notifications?size=1", Status: 200,
		Has: map[string]any{"content.0.event": "SCRAPER_RUN_FAILED",
			"content.0.jobId": launch.Job.String(), "content.0.scraperId": scraper.ID.String(),
			"content.0.keyId": nil, "content.0.title": `The run of "Shop" failed`,
			"content.0.text": "It read 1 page, and 1 link failed: no page was delivered. " +
				"It cost 0.00 EUR."}})
}

func TestTopUpsAreTold(t *testing.T) {
	s := start(t)
	paid := client.PayTopUp{Session: "cs_1", Payment: "pi_1", Customer: "alice",
		Amount: 10_000_000, Entry: s.IDs.New()}
	s.Client.Must(t, paid)
	s.Run(t, apitest.Scenario{Name: "paid", As: apitest.Reader,
		Do: "GET /api/notifications?size=1", Status: 200,
		Has: map[string]any{"content.0.event": "TOPUP_APPLIED", "content.0.jobId": nil,
			"content.0.transactionId": paid.Entry.String(),
			"content.0.text":          "10.00 EUR was paid in."}})
}

func TestRead(t *testing.T) {
	s := start(t)
	key(t, s, "alice", "one")
	key(t, s, "alice", "two")
	do := "PUT /api/notifications/" + newest(s, "alice").String()
	const read = `{"read":true}`
	s.Run(t,
		apitest.Scenario{Name: "a read key may not", As: apitest.Reader, Do: do, Body: read,
			Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "malformed id", As: apitest.User,
			Do: "PUT /api/notifications/7", Body: read, Status: 400, Code: "invalid_id"},
		apitest.Scenario{Name: "unknown", As: apitest.User,
			Do: "PUT /api/notifications/" + s.IDs.New().String(), Body: read, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "an id of zeros is not all of them", As: apitest.User,
			Do: "PUT /api/notifications/" + ids.ID{}.String(), Body: read, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "another's", As: apitest.Other, Do: do, Body: read, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "not said", As: apitest.User, Do: do, Body: `{}`, Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "read"}},
		apitest.Scenario{Name: "misspelt", As: apitest.User, Do: do,
			Body: `{"read":true,"unread":false}`, Status: 400, Code: "unknown_field"},
		apitest.Scenario{Name: "read", As: apitest.User, Do: do, Body: read, Status: 200,
			Has: map[string]any{"unread": 1}},
		apitest.Scenario{Name: "again", As: apitest.User, Do: do, Body: read, Status: 200,
			Has: map[string]any{"unread": 1}},
		apitest.Scenario{Name: "shown so", As: apitest.User, Do: "GET /api/notifications",
			Status: 200, Has: map[string]any{"content.0.read": true, "content.1.read": false}},
		apitest.Scenario{Name: "unread again", As: apitest.User, Do: do, Body: `{"read":false}`,
			Status: 200, Has: map[string]any{"unread": 2}},
		apitest.Scenario{Name: "all, and a read key may not", As: apitest.Reader,
			Do: "POST /api/notifications/read", Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "all", As: apitest.User, Do: "POST /api/notifications/read",
			Body: `{}`, Status: 200, Has: map[string]any{"unread": 0}},
	)
}
