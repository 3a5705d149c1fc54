package admin_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/work"
)

func TestWork(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: "GET /api/admin/work",
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "no such state", As: apitest.Admin,
			Do: "GET /api/admin/work?state=LOST", Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "too deep", As: apitest.Admin,
			Do: "GET /api/admin/work?page=501&size=200", Status: 400, Code: "invalid_page"},
		apitest.Scenario{Name: "nothing is open", As: apitest.Admin, Do: "GET /api/admin/work",
			Status: 200, Has: map[string]any{"content": []any{}, "totalElements": 0}},
	)
	boot := s.IDs.New()
	s.Client.Must(t, client.RegisterNode{Name: "i1", Boot: boot})
	enqueue := func(kind, customer string) ids.ID {
		item := client.EnqueueWork{ID: s.IDs.New(), Kind: kind, Customer: customer}
		s.Client.Must(t, item)
		return item.ID
	}
	table := client.Work(s.Client, "i1", boot)
	exchange := func(turn work.Turn) {
		t.Helper()
		if turn.Lease = time.Minute; table.Exchange(t.Context(), turn) != nil {
			t.Fatal("the turn failed")
		}
	}
	given := enqueue(work.Expire, "alice")
	exchange(work.Turn{Wants: []work.Want{{Kind: work.Expire, Most: 1, PerCustomer: 1}}})
	exchange(work.Turn{Reports: []work.Report{{ID: given, Epoch: 1, End: work.GivenUp,
		Error: "the row store is gone"}}})
	old := enqueue(work.Orphans, "")
	s.Clock.Advance(time.Hour)
	young := enqueue(work.Recount, "")
	exchange(work.Turn{Wants: []work.Want{{Kind: work.Recount, Most: 1, PerCustomer: 1}}})
	s.Run(t,
		apitest.Scenario{Name: "all", As: apitest.Admin, Do: "GET /api/admin/work", Status: 200,
			Has: map[string]any{"totalElements": 3,
				"content.0.id": given.String(), "content.0.state": "FAILED",
				"content.0.customerRef": "alice", "content.0.failures": 1,
				"content.0.error": "the row store is gone", "content.0.stoodStillMillis": 0,
				"content.1.id": old.String(), "content.1.state": "READY",
				"content.1.customerRef": nil, "content.1.node": nil,
				"content.1.stoodStillMillis": 3_600_000,
				"content.2.id":               young.String(), "content.2.state": "HELD",
				"content.2.node": "i1", "content.2.error": nil}},
		apitest.Scenario{Name: "the second", As: apitest.Admin,
			Do: "GET /api/admin/work?page=1&size=1", Status: 200,
			Has: map[string]any{"totalPages": 3, "content.0.id": old.String()}},
	)
	for query, want := range map[string]ids.ID{"state=HELD": young, "kind=orphans": old,
		"customerRef=alice": given, "kind=expire&state=FAILED": given} {
		s.Run(t, apitest.Scenario{Name: query, As: apitest.Admin,
			Do: fmt.Sprint("GET /api/admin/work?", query), Status: 200,
			Has: map[string]any{"totalElements": 1, "content.0.id": want.String()}})
	}
}
