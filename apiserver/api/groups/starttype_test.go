package groups_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/schedule"
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
	s.Client.Must(t, client.PutScraper{Create: true, ID: ids.ID{3}, Customer: "alice",
		Group: group, Spec: model.Scraper{Name: "list", Type: model.SingleProduct}, ListRun: true})
	first, _ := new(schedule.Zones).Of(group, true, "DAILY", "")
	next, _ := first.Next(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	withGroup := next.Format("2006-01-02T15:04:05.000Z")
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
					"schedule": "", "nextStart": withGroup},
				"1.scraperId": own.String(), "1.schedule": "5 5 * * *",
				"1.nextStart": "2026-01-02T05:05:00.000Z",
				"2.nextStart": nil}, Lacks: []string{"3"}}, // a list run has no start address
		apitest.Scenario{Name: "no start yet", As: apitest.Reader,
			Do: "GET /api/scraper/group/" + group.String() + "/starts", Status: 200,
			Has: map[string]any{"scraperId": nil, "groupId": group.String(), "startType": "DAILY",
				"nextStart": withGroup}, Lacks: []string{"starts.0"}},
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
	s.Client.StartDue(t, group) // the next start is known now
	s.Run(t, apitest.Scenario{Name: "list", As: apitest.Reader, Do: "GET /api/scraper/group/list",
		Status: 200, Has: map[string]any{"0.nextStart": "2026-01-02T03:04:05.002Z",
			"0.scraperCount": 3, "0.startType": "DAILY"}},
		apitest.Scenario{Name: "paused", As: apitest.User, Do: path + "NONE", Header: key("5"),
			Status: 200, Has: map[string]any{"0.nextStart": nil, "1.nextStart": nil,
				"1.startType": "NONE"}})
}

func TestStarts(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	s.Client.Must(t, client.PutScraper{Create: true, ID: ids.ID{1}, Customer: "alice",
		Group: group, Spec: model.Scraper{Name: "plain", Type: model.SingleProduct}})
	s.Client.Must(t, client.PutScraper{Create: true, ID: ids.ID{2}, Customer: "alice",
		Group: group, Spec: model.Scraper{Name: "own", Type: model.SingleProduct,
			Schedule: "5 5 * * *", ScheduleTimezone: "Asia/Tokyo"}})
	s.Client.Must(t, client.PutStartType{Customer: "alice", Group: group, StartType: "WEEKLY"})
	item := s.Client.StartDue(t, group)
	ofGroup := "GET /api/scraper/group/" + group.String() + "/starts"
	plain := "GET /api/scraper/" + ids.ID{1}.String() + "/starts"
	s.Run(t,
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: ofGroup, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "foreign scraper", As: apitest.Other, Do: plain, Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "under way", As: apitest.Reader, Do: ofGroup, Status: 200,
			Has: map[string]any{"starts.0.outcome": "STARTING", "starts.0.reason": nil,
				"starts.0.at": "2026-01-02T03:04:05.000Z"}},
		apitest.Scenario{Name: "own", As: apitest.Reader, Status: 200,
			Do: "GET /api/scraper/" + ids.ID{2}.String() + "/starts",
			Has: map[string]any{"schedule": "5 5 * * *", "scheduleTimezone": "Asia/Tokyo",
				"nextStart": "2026-01-02T20:05:00.000Z"}, Lacks: []string{"starts.0"}})
	s.Client.Must(t, client.LaunchRuns{Customer: "alice", Group: group,
		Item: &client.LaunchItem{ID: item, Done: true},
		Skipped: []client.SkippedScraper{{Scraper: ids.ID{1}, Reason: client.SkipPlan},
			{Scraper: ids.ID{3}, Reason: client.SkipRunning}}})
	s.Run(t,
		apitest.Scenario{Name: "refused", As: apitest.Reader, Do: plain, Status: 200,
			Has: map[string]any{"scraperId": ids.ID{1}.String(), "startType": "WEEKLY",
				"starts.0.outcome": "SKIPPED", "starts.0.skipped": 2, "starts.0.launched": 0,
				"starts.0.missed": 0, "starts.0.reason": "FEATURE_NOT_IN_PLAN"}},
		apitest.Scenario{Name: "told", As: apitest.Reader, Do: "GET /api/notifications",
			Status: 200, Has: map[string]any{"content.0.event": "SCHEDULED_START_REFUSED",
				"content.0.groupId": group.String(), "content.0.jobId": nil,
				"content.0.count": 1,
				"content.0.text": "2 scrapers of the group did not start: your plan does not " +
					"include scheduled starts. Change the plan."}})
}

// The scrapers of a large group are streamed.
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
