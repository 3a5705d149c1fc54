package scrapers_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// deliver runs a scraper of alice's: one link is delivered with items rows, or fails if items is 0.
func deliver(t *testing.T, s *apitest.Server, scraper ids.ID, items uint32) {
	t.Helper()
	run := client.LaunchRun{Job: s.IDs.New(), Entry: s.IDs.New(), Customer: "alice",
		Scraper: scraper, List: s.IDs.New(),
		Links: 1, Tiers: model.TiersOf(model.Plain)}
	s.Client.Must(t, run)
	s.Client.Dispatch(t, run.Job, 0)
	receipt := model.Receipt{Job: run.Job, Outcome: model.Delivered, PriceRow: "tier:plain",
		Quantity: 1, Items: items, Last: true}
	if items == 0 {
		receipt = model.Receipt{Job: run.Job, Outcome: model.Errored, Last: true}
	}
	if err := s.Client.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
		t.Fatal(err)
	}
	s.Client.CloseRun(t, run.Job)
}

func TestGet(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	group := s.NewGroup(t, "alice", "g")
	made := s.Call(t, apitest.Scenario{As: apitest.User, Do: put, Header: key("1"),
		Body: body(group)})
	id, err := ids.Parse(made.Text("id"))
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, s, id, 7)
	deliver(t, s, id, 0)
	deliver(t, s, id, 2)
	for _, path := range []string{"GET /api/scraper/", "GET /api/scraper/v2/"} {
		s.Run(t,
			apitest.Scenario{Name: "own", As: apitest.Reader, Do: path + id.String(), Status: 200,
				Has: map[string]any{"name": "shop", "lastRunState": "COMPLETED"}},
			apitest.Scenario{Name: "malformed", As: apitest.User, Do: path + "x1", Status: 400,
				Code: "invalid_id"},
			apitest.Scenario{Name: "unknown", As: apitest.User,
				Do: path + "0123456789abcdef01234567", Status: 404,
				Code: "scraper_not_found"},
			apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path + id.String(),
				Status: 404, Code: "scraper_not_found"},
		)
	}
	for _, keep := range []int{3, 1, 0} { // runs in the state; the others are in the archive
		s.Client.Archive(t, store, keep)
		s.Run(t, apitest.Scenario{Name: "statistics", As: apitest.User,
			Do: "GET /api/scraper/v2/" + id.String(), Status: 200,
			Has: map[string]any{"configValid": true, "group.name": "g",
				"lastRunState": "COMPLETED", "runStats": map[string]any{"lastNRuns": 3,
					"successes": 2, "failures": 1, "avgRows": 3}}})
	}
}
