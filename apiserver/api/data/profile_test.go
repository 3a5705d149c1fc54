package data_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

func profileOf(job ids.ID) string { return "GET /api/scraper/data/profile?jobId=" + job.String() }

// A profile comes from the sums of the pages, or from all rows if a page has no sums.
func TestProfile(t *testing.T) {
	r := start(t)
	want := map[string]any{"jobId": r.jobs[2].String(), "scraperId": r.shop.String(), "rows": 3,
		"moreFields": false, "fields.0.name": "n", "fields.0.filled": 3, "fields.0.fillRate": 1,
		"fields.0.types": map[string]any{"number": 3.0}, "fields.0.min": 6, "fields.0.max": 8,
		"fields.0.histogram": []any{map[string]any{"from": 6.0, "to": 6.125, "count": 1.0},
			map[string]any{"from": 7.0, "to": 7.125, "count": 1.0},
			map[string]any{"from": 8.0, "to": 8.25, "count": 1.0}}, "fields.1.histogram": []any{},
		"fields.0.mean": 7, "fields.0.meanLength": nil, "fields.0.distinct": 3,
		"fields.0.distinctExact": true, "fields.0.examples": []any{6.0, 7.0, 8.0},
		"fields.0.exampleUrl": nil, "fields.1.name": "name", "fields.1.filled": 2,
		"fields.1.types": map[string]any{"text": 2.0}, "fields.1.min": nil,
		"fields.1.meanLength": 1, "fields.1.examples": []any{"f", "h"}}
	r.Run(t,
		apitest.Scenario{Name: "of rows", As: apitest.Reader, Do: profileOf(r.jobs[2]),
			Status: 200, Has: want},
		apitest.Scenario{Name: "no run named", As: apitest.User,
			Do: "GET /api/scraper/data/profile", Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "missing", As: apitest.User, Do: profileOf(ids.ID{1}), Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: profileOf(r.jobs[2]), Status: 400,
			Code: "job_not_found"})
	r.share(t)
	r.Run(t, apitest.Scenario{Name: "shared", As: apitest.Other, Do: profileOf(r.jobs[2]),
		Status: 200, Has: want})
	if err := r.store.DeleteJob(t.Context(), r.jobs[2], false); err != nil {
		t.Fatal(err)
	}
	r.Run(t, apitest.Scenario{Name: "of rows that are gone", As: apitest.User,
		Do: profileOf(r.jobs[2]), Status: 400, Code: "rows_gone"})
}

// Only the sums of the record that stands count, so a page that is stored twice counts once.
func TestProfileOfSums(t *testing.T) {
	r := start(t)
	put := func(unit uint32, rows ...string) {
		t.Helper()
		page := &model.Page{Job: r.jobs[1], Unit: model.Unit{Seq: unit}, Fetch: r.IDs.New(),
			Outcome: model.Delivered, Last: true}
		var sums profile.Sums
		for _, row := range rows {
			sums.Add([]byte(row))
			page.Rows = append(page.Rows, []byte(row))
		}
		page.Sums = sums.Append(nil)
		if _, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
			Job: rowstore.Job{ID: r.jobs[1], Customer: "alice", Group: r.group,
				Scraper: r.other, Started: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(10, `{"n":6}`, `{"n":"7.5"}`)
	put(10, `{"n":100}`)
	all := map[string]any{"rows": 4, "fields.0.min": 4, "fields.0.max": 7.5,
		"fields.0.types":       map[string]any{"number": 3.0, "numericText": 1.0},
		"fields.0.histogram.3": map[string]any{"from": 7.5, "to": 7.625, "count": 1.0},
		"fields.1.name":        "name", "fields.1.fillRate": 0.5}
	r.Run(t, apitest.Scenario{Name: "some pages have sums", As: apitest.User,
		Do: profileOf(r.jobs[1]), Status: 200, Has: all})
	if err := r.store.DeleteJob(t.Context(), r.jobs[1], true); err != nil {
		t.Fatal(err)
	}
	put(10, `{"n":6}`, `{"n":"7.5"}`)
	put(10, `{"n":100}`)
	put(11, `{"n":1,"sku":"a"}`)
	r.Run(t, apitest.Scenario{Name: "all pages have sums", As: apitest.User,
		Do: profileOf(r.jobs[1]), Status: 200, Has: map[string]any{"rows": 3, "fields.0.min": 1,
			"fields.0.max": 7.5, "fields.0.distinct": 3, "fields.1.filled": 1}})
}
