package data_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// receiptOf is the request for a row's receipt.
func receiptOf(id string) string { return "GET /api/scraper/data/" + id + "/receipt" }

// A row leads to the full record of its own page. Only the owner sees prices.
func TestReceipt(t *testing.T) { onStores(t, readReceipts) }

func readReceipts(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: r.shop, List: r.IDs.New(), Links: 2, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	page := &model.Page{Job: run.Job, Unit: model.Unit{Seq: 1, Page: 2}, Fetch: r.IDs.New(),
		Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 2, Status: 200,
		URL: "https://shop.test/a", Final: "https://shop.test/b", Bytes: 1_234, Millis: 56,
		At: 1_767_323_045_678_000, Rows: [][]byte{[]byte(`{"n":1}`), []byte(`{"n":2}`)},
		BodyHash: []byte{0xde, 0xad},
		Tries: []model.Try{{Tier: model.Plain, Code: "blocked", Status: 403, Millis: 7},
			{Tier: model.Super, Status: 200, Millis: 49}}}
	failed := &model.Page{Job: run.Job, Fetch: r.IDs.New(), Outcome: model.Errored,
		Code: "timeout", Last: true}
	job := rowstore.Job{ID: run.Job, Customer: "alice", Group: r.group, Scraper: r.shop,
		Started: 1}
	if _, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Job: job, Page: page},
		{Job: job, Page: failed}}); err != nil {
		t.Fatal(err)
	}
	row := model.RowID{Job: run.Job, Unit: page.Unit, Place: 1}
	missing := func(name, id string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: receiptOf(id), Status: 400,
			Code: "not_found", Has: map[string]any{"errors.0.field": "rowId"}}
	}
	with := func(change func(id *model.RowID)) string {
		id := row
		change(&id)
		return id.String()
	}
	whole := map[string]any{"rowId": row.String(), "jobId": run.Job.String(),
		"scraperId": r.shop.String(), "groupId": r.group.String(), "url": "https://shop.test/a",
		"finalUrl": "https://shop.test/b", "status": 200, "durationMillis": 56, "bytes": 1_234,
		"scrapedAt": "2026-01-02T03:04:05.678Z", "rows": 2, "tier": "super",
		"tries.0": map[string]any{"tier": "plain", "code": "blocked", "status": 403.0,
			"durationMillis": 7.0},
		"tries.1": map[string]any{"tier": "super", "code": nil, "status": 200.0,
			"durationMillis": 49.0},
		"bodySha256": "dead"}
	own := map[string]any{"price": map[string]any{"rowKey": "tier:plain", "label": "Plain",
		"quantity": 2.0, "unitPriceMicros": 150.0, "amountMicros": 300.0}}
	foreign := map[string]any{"price": nil}
	for member, value := range whole {
		own[member], foreign[member] = value, value
	}
	r.Run(t,
		apitest.Scenario{Name: "whole", As: apitest.Reader, Do: receiptOf(row.String()),
			Status: 200, Has: own},
		missing("of an error", model.RowID{Job: run.Job}.String()),
		missing("behind the page's last row", with(func(id *model.RowID) { id.Place = 2 })),
		missing("of another page", with(func(id *model.RowID) { id.Unit.Page = 1 })),
		missing("of no run", with(func(id *model.RowID) { id.Job = ids.ID{1} })),
		apitest.Scenario{Name: "malformed", As: apitest.User, Do: receiptOf(unknown), Status: 400,
			Code: "invalid_id", Has: map[string]any{"errors.0.field": "rowId"}},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: receiptOf(row.String()),
			Status: 400, Code: "not_found"})
	r.share(t)
	r.Run(t, apitest.Scenario{Name: "shared", As: apitest.Other, Do: receiptOf(row.String()),
		Status: 200, Has: foreign})
}

// A receipt is gone when its row is: with the rows of its run, its scraper or its group.
func TestReceiptGoesWithItsRow(t *testing.T) { onStores(t, loseReceipt) }

func loseReceipt(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	row := func(job int) string { return model.RowID{Job: r.jobs[job]}.String() }
	read := func(job, status int) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: "row", As: apitest.User, Do: receiptOf(row(job)),
			Status: status})
	}
	key := map[string]string{"Idempotency-Key": "k"}
	drop := func(path, preview string) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: "preview", As: apitest.User, Do: "POST " + preview,
			Status: 200}, apitest.Scenario{Name: "delete", As: apitest.User, Do: "DELETE " + path,
			Header: key, Status: 204})
	}
	for job := range r.jobs {
		read(job, 200)
	}
	query := "?scraperJobStatusId=" + r.jobs[0].String()
	drop("/api/scraper/data"+query, "/api/scraper/data/preview-delete"+query)
	read(0, 400)
	other := "/api/scraper/" + r.other.String()
	drop(other+"?withData=true", other+"/preview-delete?withData=true")
	read(1, 400)
	read(2, 200)
	// The same holds if rows are gone and the state no longer records their removal.
	r.run(t, r.shop, `{"n":9}`)
	read(3, 200)
	if err := r.store.DeleteJob(t.Context(), r.jobs[3], false); err != nil {
		t.Fatal(err)
	}
	read(3, 400)
	group := "/api/scraper/group/" + r.group.String()
	drop(group+"?withData=true", group+"/preview-delete?withData=true")
	read(2, 400)
}
