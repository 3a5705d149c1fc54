package data_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Two calls delete a run's rows. Nobody sees them then, the run before becomes the scraper's last,
// and the history only lists the run if deleted ones are requested. It does not matter which runs
// have left the state.
func TestDeleteRun(t *testing.T) {
	for keep := range 4 {
		t.Run(fmt.Sprint("kept ", keep), func(t *testing.T) {
			onStores(t, func(t *testing.T, store rowstore.Store) {
				r := startOn(t, store)
				r.Client.Archive(t, r.store, keep)
				r.deleteLast(t)
			})
		})
	}
}

func (r *rig) deleteLast(t *testing.T) {
	key := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	first, last := r.jobs[0].String(), r.jobs[2].String()
	const path = "/api/scraper/data"
	of := "?scraperJobStatusId="
	preview, remove := "POST "+path+"/preview-delete", "DELETE "+path
	group := "GET /api/scraper/data/group/" + r.group.String()
	history := "GET /api/scraper/load-history"
	before := *r.Client.View().Wallet("alice")
	r.Run(t,
		apitest.Scenario{Name: "no run", As: apitest.User, Do: preview, Status: 400,
			Code: "invalid_request"},
		apitest.Scenario{Name: "no id", As: apitest.User, Do: preview + of + "x", Status: 400,
			Code: "invalid_id"},
		apitest.Scenario{Name: "unknown", As: apitest.User, Do: preview + of + unknown,
			Status: 400, Code: "job_not_found"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: preview + of + last, Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "reader", As: apitest.Reader, Do: preview + of + last, Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "no preview", As: apitest.User, Do: remove + of + last,
			Header: key("1"), Status: 409, Code: "PREVIEW_REQUIRED"},
	)
	token := r.Call(t, apitest.Scenario{As: apitest.User, Do: preview + of + last, Status: 200,
		Has: map[string]any{"opName": client.OpDeleteRun,
			"previewSummary.entityName": "shop", "previewSummary.entityType": "RUN",
			"previewSummary.cascadeCounts": map[string]any{"openRuns": 0, "rows": 3}}}).
		Text("token")
	r.Run(t,
		apitest.Scenario{Name: "another run", As: apitest.User,
			Do: remove + of + first + "&token=" + token, Header: key("2"), Status: 409,
			Code: "PREVIEW_REQUIRED"},
		apitest.Scenario{Name: "foreign with the token", As: apitest.Other,
			Do: remove + of + last + "&token=" + token, Header: key("3"), Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "delete", As: apitest.User,
			Do: remove + of + last + "&token=" + token, Header: key("4"), Status: 204},
		apitest.Scenario{Name: "again under its key", As: apitest.User,
			Do: remove + of + last + "&token=" + token, Header: key("4"), Status: 204,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "once more", As: apitest.User, Do: preview + of + last,
			Status: 400, Code: "job_not_found"},
		apitest.Scenario{Name: "the group's rows", As: apitest.User, Do: group, Status: 200,
			Has: map[string]any{"totalElements": 5}},
		apitest.Scenario{Name: "its own", As: apitest.User,
			Do: "GET " + path + "?jobId=" + last, Status: 200,
			Has: map[string]any{"items": []any{}, "hasMore": false}},
		apitest.Scenario{Name: "it has left the history", As: apitest.User, Do: history,
			Status: 200, Has: map[string]any{"totalElements": 2}},
		apitest.Scenario{Name: "its record is kept", As: apitest.User,
			Do: history + "?withDeleted=true", Status: 200,
			Has: map[string]any{"totalElements": 3, "content.0.id": last}},
	)
	latest := "GET " + path + "?isLastRun=true&scraperId=" + r.shop.String()
	if got := numbers(r.Call(t, apitest.Scenario{As: apitest.User, Do: latest, Status: 200}),
		"items"); got != "123" {
		t.Errorf("rows %s are of the last run", got)
	}
	if after := *r.Client.View().Wallet("alice"); after.Balance() != before.Balance() {
		t.Errorf("the balance is %d and was %d", after.Balance(), before.Balance())
	}
	r.Call(t, apitest.Scenario{As: apitest.User, Do: preview + of + first, Status: 200})
	r.Call(t, apitest.Scenario{As: apitest.User, Do: remove + of + first, Header: key("5"),
		Status: 204})
	r.Client.Archive(t, r.store, 0) // runs that leave the state from now on are deleted ones
	if got := numbers(r.Call(t, apitest.Scenario{As: apitest.User, Do: latest, Status: 200}),
		"items"); got != "" {
		t.Errorf("rows %s are of a last run that there is not", got)
	}
	r.Run(t, apitest.Scenario{Name: "one is left", As: apitest.User, Do: history + "?size=1",
		Status: 200, Has: map[string]any{"totalElements": 1,
			"content.0.id": r.jobs[1].String()}})
}

// A running run is stopped, and rows that arrive until it is closed are hidden, too. A preview from
// before its end is no longer valid.
func TestDeleteRunUnderWay(t *testing.T) { onStores(t, deleteUnderWay) }

func deleteUnderWay(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: r.shop, List: r.IDs.New(), Links: 2, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	r.Client.Dispatch(t, run.Job, 0)
	of := "?scraperJobStatusId=" + run.Job.String()
	preview, remove := "POST /api/scraper/data/preview-delete"+of, "DELETE /api/scraper/data"+of
	r.Run(t,
		apitest.Scenario{Name: "preview", As: apitest.User, Do: preview, Status: 200,
			Has: map[string]any{"previewSummary.cascadeCounts": map[string]any{"openRuns": 1,
				"rows": 0}}},
		apitest.Scenario{Name: "delete", As: apitest.User, Do: remove,
			Header: map[string]string{"Idempotency-Key": "1"}, Status: 204},
	)
	if job := r.Client.View().Job(run.Job); job.State != model.Stopped ||
		job.Reason != model.StoppedByCustomer || job.Closed {
		t.Errorf("the run: %+v", job)
	}
	latest := "GET /api/scraper/data?isLastRun=true&scraperId=" + r.shop.String()
	if got := numbers(r.Call(t, apitest.Scenario{As: apitest.User, Do: latest, Status: 200}),
		"items"); got != "678" {
		t.Errorf("rows %s are of the last run", got)
	}
	next := r.jobs[2].String()
	r.Run(t,
		apitest.Scenario{Name: "another", As: apitest.User,
			Do:     "POST /api/scraper/data/preview-delete?scraperJobStatusId=" + next,
			Status: 200},
		apitest.Scenario{Name: "goes as well", As: apitest.User, Status: 204,
			Do:     "DELETE /api/scraper/data?scraperJobStatusId=" + next,
			Header: map[string]string{"Idempotency-Key": "2"}},
	)
}
