package jobs_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

func (r *rig) share(t *testing.T, group ids.ID) {
	t.Helper()
	r.Client.Must(t, client.SignUp{Customer: "bob", Email: "bob@x.test"})
	r.Client.Must(t, client.ShareGroup{Customer: "alice", Group: group,
		Emails: []string{"bob@x.test"}})
}

// Only a filter that names a shared group reads its history. The reader has not launched its runs.
func TestHistoryOfASharedGroup(t *testing.T) {
	r := start(t)
	elsewhere := r.NewGroup(t, "alice", "elsewhere")
	other := r.launch(t, r.newScraper(t, "other", elsewhere), 1)
	job := r.launch(t, r.scraper, 1)
	r.settleUnit(t, job, 0, 3)
	r.Client.CloseRun(t, job)
	r.share(t, r.group)
	history := func(as, filter string, total int, has map[string]any) apitest.Scenario {
		has["totalElements"] = total
		return apitest.Scenario{Name: as + " " + filter, As: as, Status: 200, Has: has,
			Do: "GET /api/scraper/load-history?filters=" + url.QueryEscape(filter)}
	}
	named := `{"groupId":"` + r.group.String() + `"}`
	both := `{"groupId":{"in":["` + r.group.String() + `","` + elsewhere.String() + `"]}}`
	r.Run(t,
		history(apitest.User, named, 1, map[string]any{"content.0.launchedByCustomer": true}),
		history(apitest.User, both, 2, map[string]any{}),
		history(apitest.Other, `{}`, 0, map[string]any{}),
		history(apitest.Other, both, 0, map[string]any{}),
		history(apitest.Other, `{"groupId":"`+elsewhere.String()+`"}`, 0, map[string]any{}),
		history(apitest.Other, `{"groupId":{"in":["`+r.group.String()+
			`"]},"state":"COMPLETED"}`, 1, map[string]any{}),
		history(apitest.Other, `{"$nor":[`+named+`]}`, 0, map[string]any{}),
		history(apitest.Other, named, 1, map[string]any{"content.0.id": job,
			"content.0.itemsQuantity": 3, "content.0.launchedByCustomer": false}),
	)
	r.Run(t, history(apitest.Other, named, 1, map[string]any{"content.0.chargedMicros": nil,
		"content.0.maxChargeMicros": nil}),
		apitest.Scenario{Name: "sorted by charges", As: apitest.Other, Status: 400,
			Code: "invalid_sort", Do: "GET /api/scraper/load-history?sort=chargedMicros&filters=" +
				url.QueryEscape(named)},
		apitest.Scenario{Name: "its owner sorts by charges", As: apitest.User, Status: 200,
			Do: "GET /api/scraper/load-history?sort=chargedMicros&filters=" +
				url.QueryEscape(named)})
	errors := "GET /api/scraper/load-history/group/" + r.group.String() + "/job/"
	r.Run(t,
		apitest.Scenario{Name: "errors", As: apitest.Other, Do: errors + job.String() + "/errors",
			Status: 200},
		apitest.Scenario{Name: "errors elsewhere", As: apitest.Other,
			Do: errors + other.String() + "/errors", Status: 400, Code: "job_not_found"},
	)
	r.Client.Archive(t, r.store, 0)
	r.Run(t, history(apitest.Other, named, 1, map[string]any{"content.0.id": job}))
	r.Client.Must(t, client.RevokeShare{Customer: "alice", Group: r.group, Email: "bob@x.test"})
	r.Run(t, history(apitest.Other, named, 0, map[string]any{}))
}

// All runs of a shared group can be read by cursor and as a file, from the state and the history.
// Only the owner sees what they cost.
func TestAllRunsOfASharedGroup(t *testing.T) {
	r := start(t)
	elsewhere := r.NewGroup(t, "alice", "elsewhere")
	r.launch(t, r.newScraper(t, "other", elsewhere), 1)
	const runs = 7
	for range runs { // the first ones are free
		r.Clock.Advance(time.Millisecond)
		job := r.launch(t, r.scraper, 1)
		r.settleUnit(t, job, 0, 1)
		r.Client.CloseRun(t, job)
	}
	r.share(t, r.group)
	all := "GET /api/scraper/load-history/all?groupId=" + r.group.String()
	for keep := 3; keep >= 0; keep -= 3 {
		seen, query := 0, ""
		for more := true; more; {
			a := r.Call(t, apitest.Scenario{As: apitest.Other, Do: all + "&limit=3" + query})
			items, is := a.At("items")
			if !is {
				t.Fatalf("%s", a.Body)
			}
			for _, item := range items.([]any) {
				run := item.(map[string]any)
				if run["groupId"] != r.group.String() || run["chargedMicros"] != nil ||
					run["maxChargeMicros"] != nil || run["launchedByCustomer"] != false {
					t.Errorf("a reader sees %v", run)
				}
				seen++
			}
			has, _ := a.At("hasMore")
			more = has == true
			query = "&cursor=" + url.QueryEscape(a.Text("nextCursor"))
		}
		if seen != runs {
			t.Errorf("%d runs are read, with %d in the state", seen, keep)
		}
		r.Client.Archive(t, r.store, keep)
	}
	file := string(r.Call(t, apitest.Scenario{As: apitest.Other, Do: all + "&format=jsonl"}).Body)
	if strings.Count(file, "\n") != runs || strings.Count(file, `"chargedMicros":null`) != runs {
		t.Errorf("as a file: %s", file)
	}
	r.Run(t, apitest.Scenario{Name: "its owner", As: apitest.User, Do: all, Status: 200,
		Has: map[string]any{"items.0.chargedMicros": 150, "items.0.maxChargeMicros": 1000}})
	empty := map[string]any{"items": []any{}, "hasMore": false}
	foreign := "GET /api/scraper/load-history/all?groupId=" + elsewhere.String()
	missing := "GET /api/scraper/load-history/all?groupId=" + r.IDs.New().String()
	r.Run(t, apitest.Scenario{Name: "foreign", As: apitest.Other, Do: foreign, Status: 200,
		Has: empty},
		apitest.Scenario{Name: "missing", As: apitest.Other, Do: missing, Status: 200, Has: empty})
	first := r.Call(t, apitest.Scenario{As: apitest.Other, Do: all + "&limit=2"})
	r.Client.Must(t, client.RevokeShare{Customer: "alice", Group: r.group, Email: "bob@x.test"})
	r.Run(t, apitest.Scenario{Name: "revoked", As: apitest.Other, Status: 200, Has: empty,
		Do: all + "&cursor=" + url.QueryEscape(first.Text("nextCursor"))})
}

// A stream serves readers of the run, and ends before it shows anything newer than a revocation.
func TestStreamOfASharedGroup(t *testing.T) {
	r := start(t)
	job := r.launch(t, r.scraper, 4)
	r.share(t, r.group)
	for n, path := range []string{"/api/scraper-job-status/" + job.String() + "/stream",
		"/api/scraper/" + r.scraper.String() + "/stream-job-status"} {
		f := r.openAs(t, apitest.Other, path)
		if _, data := f.next(); data["state"] != "RUNNING" || data["chargedMicros"] != nil {
			t.Errorf("%s begins with %v", path, data)
		}
		r.settleUnit(t, job, uint32(2*n), 1)
		r.tick(t, func() {
			if _, data := f.next(); data["totalRequests"] != float64(2*n+1) {
				t.Errorf("%s goes on with %v", path, data)
			}
		})
		r.Client.Must(t, client.RevokeShare{Customer: "alice", Group: r.group,
			Email: "bob@x.test"})
		r.settleUnit(t, job, uint32(2*n+1), 1)
		r.tick(t, func() { f.expect("null") })
		r.Client.Must(t, client.ShareGroup{Customer: "alice", Group: r.group,
			Emails: []string{"bob@x.test"}})
	}
}
