package data_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Everything deleted with a scraper is counted, checked for changes, and hidden at once. Anything
// else stays. A running run is stopped.
func TestDeleteWithData(t *testing.T) { onStores(t, deleteWithData) }

func deleteWithData(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	path := "/api/scraper/" + r.shop.String()
	preview, remove := "POST "+path+"/preview-delete", "DELETE "+path
	rows := "GET /api/scraper/data/group/" + r.group.String()
	before := *r.Client.View().Wallet("alice")
	r.Run(t,
		apitest.Scenario{Name: "its rows are counted", As: apitest.User,
			Do: preview + "?withData=true", Status: 200,
			Has: map[string]any{"previewSummary.cascadeCounts": map[string]any{"openRuns": 0,
				"sites": 0, "siteLinks": 0,
				"rows": 6}}},
		apitest.Scenario{Name: "a preview without them is another one", As: apitest.User,
			Do: remove, Header: key("1"), Status: 409, Code: "PREVIEW_REQUIRED"},
	)
	r.run(t, r.shop, `{"n":9}`)
	r.Run(t,
		apitest.Scenario{Name: "a row more", As: apitest.User, Do: remove + "?withData=true",
			Header: key("2"), Status: 409, Code: "CASCADE_COUNT_DRIFT"},
		apitest.Scenario{Name: "and the preview is spent", As: apitest.User,
			Do: remove + "?withData=true", Header: key("3"), Status: 409,
			Code: "PREVIEW_REQUIRED"},
	)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: r.shop, List: r.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	r.Client.Dispatch(t, run.Job, 0)
	token := r.Call(t, apitest.Scenario{As: apitest.User, Do: preview + "?withData=true",
		Status: 200, Has: map[string]any{"previewSummary.cascadeCounts": map[string]any{
			"openRuns": 1, "rows": 7, "sites": 0, "siteLinks": 0}}}).Text("token")
	r.Run(t,
		apitest.Scenario{Name: "foreign", As: apitest.Other,
			Do: remove + "?withData=true&token=" + token, Header: key("4"), Status: 404,
			Code: "scraper_not_found"},
		apitest.Scenario{Name: "another query", As: apitest.User, Do: remove + "?token=" + token,
			Header: key("5"), Status: 409, Code: "PREVIEW_REQUIRED"},
		apitest.Scenario{Name: "delete", As: apitest.User,
			Do: remove + "?withData=true&token=" + token, Header: key("6"), Status: 204},
		apitest.Scenario{Name: "again under its key", As: apitest.User,
			Do: remove + "?withData=true&token=" + token, Header: key("6"), Status: 204,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "once more", As: apitest.User, Do: remove + "?withData=true",
			Header: key("7"), Status: 404, Code: "scraper_not_found"},
		apitest.Scenario{Name: "another's rows stay", As: apitest.User, Do: rows, Status: 200,
			Has: map[string]any{"totalElements": 2}},
		apitest.Scenario{Name: "its last run, too", As: apitest.User, Do: rows + "?isLastRun=true",
			Status: 200, Has: map[string]any{"totalElements": 2}},
		apitest.Scenario{Name: "nobody reads by the run", As: apitest.User,
			Do: "GET /api/scraper/data?jobId=" + r.jobs[0].String(), Status: 200,
			Has: map[string]any{"items": []any{}, "hasMore": false}},
		apitest.Scenario{Name: "its runs have left the history", As: apitest.User,
			Do: "GET /api/scraper/load-history", Status: 200,
			Has: map[string]any{"totalElements": 1}},
		apitest.Scenario{Name: "its runs are kept", As: apitest.User,
			Do: "GET /api/scraper/load-history?withDeleted=true", Status: 200,
			Has: map[string]any{"totalElements": 5}},
	)
	job := r.Client.View().Job(run.Job)
	if job.State != model.Stopped || job.Reason != model.StoppedByCustomer || job.Closed {
		t.Errorf("the run that was under way: %+v", job)
	}
	if r.Client.View().Recipe(r.shop, job.Revision) == nil {
		t.Error("what is under way has no recipe any more")
	}
	after := *r.Client.View().Wallet("alice")
	if before.Free+before.FreeHeld < after.Free || after.Balance() > before.Balance() {
		t.Errorf("something was given back: %+v, %+v before", after, before)
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
