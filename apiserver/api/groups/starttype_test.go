package groups_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func TestStartType(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	add := func(id ids.ID, name, schedule string) ids.ID {
		s.Client.Must(t, client.PutScraper{Create: true, ID: id, Customer: "alice", Group: group,
			Spec: model.Scraper{Name: name, Type: model.SingleProduct, Schedule: schedule,
				SourceConfig: model.SourceConfig{URL: "https://shop.test/"}}})
		return id
	}
	plain, own := add(ids.ID{1}, "plain", ""), add(ids.ID{2}, "own", "5 5 * * *")
	path := "PUT /api/scraper/group/" + group.String() + "/start-type/"
	s.Run(t,
		apitest.Scenario{Name: "no key", As: apitest.User, Do: path + "DAILY", Status: 400,
			Code: "idempotency_key_required"},
		apitest.Scenario{Name: "unknown type", As: apitest.User, Do: path + "HOURLY",
			Header: key("1"), Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: path + "DAILY", Header: key("1"),
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "daily", As: apitest.User, Do: path + "DAILY", Header: key("2"),
			Status: 200, Has: map[string]any{
				"0": map[string]any{"scraperId": plain.String(), "startType": "DAILY",
					"schedule": "", "nextStart": nil},
				"1.scraperId": own.String(), "1.schedule": "5 5 * * *"}, Lacks: []string{"2"}},
		apitest.Scenario{Name: "zone", As: apitest.User, Do: "PUT /api/scraper/group",
			Header: key("3"), Status: 200, Has: map[string]any{"scheduleTimezone": "Asia/Tokyo"},
			Body: fmt.Sprintf(`{"id":%q,"scheduleTimezone":"Asia/Tokyo"}`, group)},
		apitest.Scenario{Name: "no zone", As: apitest.User, Do: "PUT /api/scraper/group",
			Header: key("4"), Status: 400, Code: "invalid_request",
			Body: fmt.Sprintf(`{"id":%q,"scheduleTimezone":"Mars/Base"}`, group)},
	)
	if known := s.Client.View().Schedule(group); known == nil || known.Zone != "Asia/Tokyo" {
		t.Fatalf("%+v", known)
	}
	s.Client.StartDue(t, group)
	s.Client.StartDue(t, group) // the next one is known now
	s.Run(t, apitest.Scenario{Name: "list", As: apitest.Reader, Do: "GET /api/scraper/group/list",
		Status: 200, Has: map[string]any{"0.nextStart": "2026-01-02T03:04:05.002Z",
			"0.scraperCount": 2, "0.startType": "DAILY"}},
		apitest.Scenario{Name: "paused", As: apitest.User, Do: path + "NONE", Header: key("5"),
			Status: 200, Has: map[string]any{"0.nextStart": nil, "1.nextStart": nil,
				"1.startType": "NONE"}})
}

// A group of many scrapers is answered as it is read.
func TestStartTypeOfALargeGroup(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	const scrapers = 2_500
	for n := range scrapers {
		s.Client.Must(t, client.PutScraper{Create: true, ID: s.IDs.New(), Customer: "alice",
			Group: group, Spec: model.Scraper{Name: fmt.Sprint(n), Type: model.SingleProduct}})
	}
	s.Run(t, apitest.Scenario{Name: "all", As: apitest.User, Header: key("k"), Status: 200,
		Do: "PUT /api/scraper/group/" + group.String() + "/start-type/WEEKLY",
		Check: func(t *testing.T, a apitest.Answer) {
			seen := map[string]bool{}
			for _, one := range a.JSON.([]any) {
				seen[one.(map[string]any)["scraperId"].(string)] = true
			}
			if len(seen) != scrapers {
				t.Errorf("%d scrapers", len(seen))
			}
		}})
}
