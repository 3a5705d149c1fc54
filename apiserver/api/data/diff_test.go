package data_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// diffOf is the request that compares two runs.
func diffOf(from, to ids.ID, query ...string) string {
	return "GET /api/scraper/data/diff?" + strings.Join(append([]string{"from=" + from.String(),
		"to=" + to.String()}, query...), "&")
}

func TestDiff(t *testing.T) {
	r := start(t)
	r.run(t, r.shop, `{"sku":"a","price":1}`, `{"sku":"b","price":2}`, `{"sku":"c","price":3}`)
	r.run(t, r.shop, `{"sku":"c","price":3}`, `{"sku":"d","price":4}`, `{"sku":"a","price":9}`)
	from, to := r.jobs[3], r.jobs[4]
	open := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: r.shop, List: r.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, open)
	refused := func(name, do, code, field string, status int) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: do, Status: status, Code: code,
			Has: map[string]any{"errors.0.field": field}}
	}
	key := map[string]any{"from": from.String(), "to": to.String(), "key.0": "sku",
		"summary": map[string]any{"added": 1.0, "removed": 1.0, "changed": 1.0,
			"unchanged": 1.0},
		"items.0.change": "ADDED", "items.0.before": nil, "items.0.after.sku": "d",
		"items.0.changed": []any{},
		"items.1.change":  "CHANGED", "items.1.before.price": 1, "items.1.after.price": 9,
		"items.1.changed": []any{"price"},
		"items.2.change":  "REMOVED", "items.2.before.sku": "b", "items.2.after": nil,
		"hasMore": false, "nextCursor": nil}
	r.Run(t,
		refused("nothing named", "GET /api/scraper/data/diff?to="+to.String(),
			"invalid_request", "from", 400),
		refused("no id", "GET /api/scraper/data/diff?from=x&to="+to.String(), "invalid_id",
			"from", 400),
		refused("missing", diffOf(from, ids.ID{1}), "job_not_found", "to", 400),
		refused("the same", diffOf(from, from), "invalid_request", "to", 400),
		refused("another scraper's", diffOf(r.jobs[1], to), "invalid_request", "to", 400),
		refused("open", diffOf(from, open.Job), "job_not_ended", "to", 409),
		refused("too many keys", diffOf(from, to, "key=a,b,c,d,e,f"), "invalid_request", "key",
			400),
		refused("no field", diffOf(from, to, "key=%22"), "invalid_request", "key", 400),
		refused("a key that no row has", diffOf(from, to, "key=skuu"), "invalid_request", "key",
			400),
		refused("such a key as lines", diffOf(from, to, "key=skuu", "format=jsonl"),
			"invalid_request", "key", 400),
		refused("no cursor", diffOf(from, to, "cursor=x"), "invalid_cursor", "cursor", 400),
		apitest.Scenario{Name: "foreign", As: apitest.Other, Do: diffOf(from, to), Status: 400,
			Code: "job_not_found"},
		apitest.Scenario{Name: "by a key", As: apitest.Reader, Do: diffOf(from, to, "key=sku"),
			Status: 200, Has: key},
		apitest.Scenario{Name: "by the likely key", As: apitest.User, Do: diffOf(from, to),
			Status: 200, Has: key},
		apitest.Scenario{Name: "only some fields", As: apitest.User,
			Do: diffOf(from, to, "key=sku", "fields=sku"), Status: 200,
			Has: map[string]any{"summary.changed": 0, "summary.unchanged": 2}},
	)
	a := r.Call(t, apitest.Scenario{As: apitest.User, Do: diffOf(from, to, "limit=2"),
		Status: 200, Has: map[string]any{"hasMore": true}})
	r.Run(t,
		apitest.Scenario{Name: "the next page", As: apitest.User,
			Do: diffOf(from, to, "cursor="+a.Text("nextCursor")), Status: 200,
			Has: map[string]any{"items.0.change": "REMOVED", "hasMore": false, "summary": nil}},
		apitest.Scenario{Name: "and once more", As: apitest.User,
			Do: diffOf(from, to, "cursor="+a.Text("nextCursor")), Status: 200,
			Has: map[string]any{"items.0.change": "REMOVED", "hasMore": false, "summary": nil}},
		refused("a cursor of another comparison",
			diffOf(to, from, "cursor="+a.Text("nextCursor")), "invalid_cursor", "cursor", 400))
	lines := r.Call(t, apitest.Scenario{As: apitest.User, Do: diffOf(from, to, "format=jsonl"),
		Status: 200})
	if got := strings.Count(string(lines.Body), "\n"); got != 3 {
		t.Errorf("%d lines: %s", got, lines.Body)
	}
	table := r.Call(t, apitest.Scenario{As: apitest.User, Do: diffOf(from, to, "format=csv"),
		Status: 200})
	if !strings.HasPrefix(string(table.Body), "change,changed,before,after\nADDED,[],,") {
		t.Errorf("as a table: %s", table.Body)
	}
	r.share(t)
	r.Run(t, apitest.Scenario{Name: "shared", As: apitest.Other, Do: diffOf(from, to),
		Status: 200, Has: key})
}

// Deleted rows do not count as rows that a run removed.
func TestDiffOfRowsThatAreGone(t *testing.T) {
	r := start(t)
	query := "?scraperJobStatusId=" + r.jobs[0].String()
	gone := func(name string, from, to ids.ID, field string) {
		t.Helper()
		r.Run(t, apitest.Scenario{Name: name, As: apitest.User, Do: diffOf(from, to), Status: 400,
			Code: "rows_gone", Has: map[string]any{"errors.0.field": field}})
	}
	r.Run(t, apitest.Scenario{Name: "before", As: apitest.User, Do: diffOf(r.jobs[0], r.jobs[2]),
		Status: 200, Has: map[string]any{"key": []any{}, "summary.changed": 3}},
		apitest.Scenario{Name: "preview", As: apitest.User,
			Do: "POST /api/scraper/data/preview-delete" + query, Status: 200},
		apitest.Scenario{Name: "delete", As: apitest.User, Do: "DELETE /api/scraper/data" + query,
			Header: map[string]string{"Idempotency-Key": "k"}, Status: 204})
	gone("hidden", r.jobs[0], r.jobs[2], "from")
	gone("of the newer run", r.jobs[2], r.jobs[0], "to")
	r.run(t, r.shop, `{"n":1}`)
	if err := r.store.DeleteJob(t.Context(), r.jobs[2], false); err != nil {
		t.Fatal(err)
	}
	gone("replaced", r.jobs[2], r.jobs[3], "from")
}
