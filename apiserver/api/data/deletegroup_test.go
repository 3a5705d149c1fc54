package data_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// A group is deleted with its scrapers, and with its rows on request. What is affected is counted
// and checked for changes. Running runs are stopped, and another group stays.
func TestDeleteGroup(t *testing.T) { onStores(t, deleteGroups) }

func deleteGroups(t *testing.T, store rowstore.Store) {
	for _, query := range []string{"", "?withData=true"} {
		t.Run(query, func(t *testing.T) { startOn(t, store).deleteGroup(t, query) })
	}
}

func (r *rig) deleteGroup(t *testing.T, query string) {
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	path := "/api/scraper/group/" + r.group.String()
	preview, remove := "POST "+path+"/preview-delete"+query, "DELETE "+path+query
	kept := r.NewGroup(t, "alice", "kept")
	stays := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: kept,
		Spec: model.Scraper{Name: "stays", Type: model.SingleProduct}}
	r.Client.Must(t, stays)
	counts := map[string]any{"openRuns": 0, "scrapers": 2, "categories": 0, "shares": 0,
		"sites": 0, "siteLinks": 0}
	if query != "" {
		counts["rows"] = 8
	}
	r.Run(t,
		apitest.Scenario{Name: "reader", As: apitest.Reader, Do: preview, Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: preview, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "unknown", As: apitest.User, Status: 400, Code: "not_found",
			Do: "POST /api/scraper/group/" + unknown + "/preview-delete" + query},
		apitest.Scenario{Name: "no preview", As: apitest.User, Do: remove, Header: key("1"),
			Status: 409, Code: "PREVIEW_REQUIRED"},
		apitest.Scenario{Name: "preview", As: apitest.User, Do: preview, Status: 200,
			Has: map[string]any{"opName": client.OpDeleteGroup, "previewSummary.entityName": "g",
				"previewSummary.entityType": "GROUP", "previewSummary.cascadeCounts": counts}},
	)
	r.run(t, r.other, `{"n":9}`)
	r.Run(t,
		apitest.Scenario{Name: "a run meanwhile", As: apitest.User, Do: remove, Header: key("2"),
			Status: 409, Code: "CASCADE_COUNT_DRIFT"},
		apitest.Scenario{Name: "preview again", As: apitest.User, Do: preview, Status: 200},
	)
	more := r.scraper(t, "one more")
	r.Run(t, apitest.Scenario{Name: "a scraper meanwhile", As: apitest.User, Do: remove,
		Header: key("3"), Status: 409, Code: "CASCADE_COUNT_DRIFT"})
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: r.shop, List: r.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	r.Client.Dispatch(t, run.Job, 0)
	counts["openRuns"], counts["scrapers"] = 1, 3
	counts["sites"], counts["siteLinks"] = 1, 40
	if query != "" {
		counts["rows"] = 9
	}
	for scraper, links := range map[ids.ID]uint32{more: 40, stays.ID: 7} {
		r.Client.Must(t, client.PutSite{ID: r.IDs.New(), Customer: "alice", Scraper: scraper,
			Name: "s", Version: r.IDs.New(), Links: links})
	}
	shown := r.Call(t, apitest.Scenario{As: apitest.User, Do: preview, Status: 200,
		Has: map[string]any{"previewSummary.cascadeCounts": counts}})
	if !strings.Contains(string(shown.Body), `"This deletes 1 site with 40 links."`) {
		t.Errorf("the site that goes is not told: %s", shown.Body)
	}
	token := shown.Text("token")
	if query == "" {
		remove += "?token=" + token
	} else {
		remove += "&token=" + token
	}
	items := numbers(r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data?jobId=" + r.jobs[0].String()}), "items")
	if query != "" {
		items = ""
	}
	r.Run(t,
		apitest.Scenario{Name: "foreign with the token", As: apitest.Other, Do: remove,
			Header: key("4"), Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "delete", As: apitest.User, Do: remove, Header: key("5"),
			Status: 204},
		apitest.Scenario{Name: "again under its key", As: apitest.User, Do: remove,
			Header: key("5"), Status: 204,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "once more", As: apitest.User, Do: preview, Status: 400,
			Code: "not_found"},
		apitest.Scenario{Name: "its rows as a group", As: apitest.User, Status: 400,
			Do: "GET /api/scraper/data/group/" + r.group.String(), Code: "not_found"},
		apitest.Scenario{Name: "a scraper of it", As: apitest.User,
			Do: "GET /api/scraper/" + r.shop.String(), Status: 404, Code: "scraper_not_found"},
		apitest.Scenario{Name: "another group's", As: apitest.User,
			Do: "GET /api/scraper/" + stays.ID.String(), Status: 200},
		apitest.Scenario{Name: "its runs have left the history", As: apitest.User,
			Do: "GET /api/scraper/load-history", Status: 200,
			Has: map[string]any{"totalElements": 0}},
		apitest.Scenario{Name: "their records stay", As: apitest.User,
			Do: "GET /api/scraper/load-history?withDeleted=true", Status: 200,
			Has: map[string]any{"totalElements": 5}},
	)
	if got := numbers(r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data?jobId=" + r.jobs[0].String()}), "items"); got != items {
		t.Errorf("rows %q are read by a run, want %q", got, items)
	}
	job := r.Client.View().Job(run.Job)
	if job.State != model.Stopped || job.Reason != model.StoppedByCustomer || job.Closed ||
		r.Client.View().Recipe(r.shop, job.Revision) == nil {
		t.Errorf("the run that was under way: %+v", job)
	}
	receipt := model.Receipt{Job: run.Job, Outcome: model.Errored, Last: true}
	if err := r.Client.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
		t.Fatal(err)
	}
	r.Client.CloseRun(t, run.Job)
	if v := r.Client.View(); v.Recipe(r.shop, job.Revision) != nil || !v.Job(run.Job).Closed {
		t.Error("the run is not closed, or has left its recipe")
	}
}
