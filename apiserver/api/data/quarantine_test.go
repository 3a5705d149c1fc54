package data_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// quarantine makes the group hold back odd runs.
func (r *rig) quarantine(t *testing.T) {
	t.Helper()
	r.Run(t, apitest.Scenario{Name: "quarantine on", As: apitest.User,
		Do: "PUT /api/scraper/group", Header: map[string]string{"Idempotency-Key": "q"},
		Body:   fmt.Sprintf(`{"id":"%s","quarantine":true}`, r.group),
		Status: 200, Has: map[string]any{"quarantine": true, "name": "g"}})
}

// delivered makes a run of one page whose links are all settled, but that is not closed.
func (r *rig) delivered(t *testing.T, scraper ids.ID, rows ...string) ids.ID {
	t.Helper()
	run := r.pending(t, scraper)
	page := &model.Page{Job: run, Fetch: r.IDs.New(), Outcome: model.Delivered,
		PriceRow: "tier:plain", Quantity: 1, Last: true}
	for _, row := range rows {
		page.Rows = append(page.Rows, []byte(row))
	}
	receipts, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
		Job: rowstore.Job{ID: run, Customer: "alice", Group: r.group, Scraper: scraper,
			Started: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Client.Dispatch(t, run, 0)
	if err := r.Client.Settle(t.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
		t.Fatal(err)
	}
	return run
}

// In a group with quarantine a run counts once it is COMPLETED, or released if it was held back.
// Its id gives access to it once it has ended, and its record tells why it is held. A stopped run
// is read, too, but never is the last one (decision 45).
func TestQuarantine(t *testing.T) {
	r := start(t)
	lastRun := func(want string) {
		t.Helper()
		for path, member := range map[string]string{"/api/scraper/data/group/" +
			r.group.String() + "?isLastRun=true&scraperId=": "content",
			"/api/scraper/data?isLastRun=true&scraperId=": "items"} {
			a := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
				Do: "GET " + path + r.shop.String()})
			got := strings.Split(numbers(a, member), "")
			slices.Sort(got) // each route has its own order
			if got := strings.Join(got, ""); got != want {
				t.Errorf("%s: rows %s, want %s", path, got, want)
			}
		}
	}
	rowsOf := func(job ids.ID, want string) {
		t.Helper()
		a := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
			Do: "GET /api/scraper/data?jobId=" + job.String()})
		if got := numbers(a, "items"); got != want {
			t.Errorf("rows %s of the run, want %s", got, want)
		}
	}
	r.quarantine(t)
	job := r.delivered(t, r.shop, `{"n":9}`)
	lastRun("678")
	rowsOf(job, "")
	r.Run(t, apitest.Scenario{Name: "no profile yet", As: apitest.User, Do: profileOf(job),
		Status: 409, Code: "job_not_ended"})
	r.Client.HoldRun(t, job, "few rows")
	lastRun("678")
	rowsOf(job, "9")
	release := "POST /api/scraper-job-status/" + job.String() + "/release"
	history := apitest.Scenario{Name: "its record says why", As: apitest.User,
		Do: "GET /api/scraper/load-history?size=1", Status: 200,
		Has: map[string]any{"content.0.quarantineReason": "few rows"}}
	other := r.delivered(t, r.other, `{"title":"x"}`)
	r.Client.CloseRun(t, other)
	merge := "PUT /api/scraper/data/group/" + r.group.String() + "/merge?scraperJobStatusIds=" +
		job.String() + "&scraperJobStatusIds=" + other.String()
	r.share(t)
	r.Run(t, apitest.Scenario{Name: "no merge takes it", As: apitest.User, Do: merge,
		Header: map[string]string{"Idempotency-Key": "m"}, Status: 422, Code: "nothing_merged",
		Has: map[string]any{"detail": "two runs are needed that are the latest COMPLETED ones " +
			"of scrapers of the group; of those that are named, 1 of 2 are"}})
	history.Do += "&filters=" + url.QueryEscape(`{"scraperId":"`+r.shop.String()+`"}`)
	r.Run(t, history,
		apitest.Scenario{Name: "who may only read it cannot release it", As: apitest.Other,
			Do: release, Status: 400, Code: "job_not_found"})
	r.Client.Archive(t, r.store, 0) // wherever its record is
	lastRun("678")
	r.Run(t, apitest.Scenario{Name: "released", As: apitest.User, Do: release, Status: 200,
		Has: map[string]any{"id": job.String(), "quarantineReason": nil}},
		apitest.Scenario{Name: "and once more", As: apitest.User, Do: release, Status: 200})
	lastRun("9")
	r.ended(t, r.shop, model.Stopped)
	lastRun("9")
	stopped := r.delivered(t, r.shop, `{"n":5}`)
	r.Client.Must(t, client.StopRun{Customer: "alice", Job: stopped})
	r.Client.CloseRun(t, stopped)
	lastRun("9")
	rowsOf(stopped, "5")
	whole := r.Call(t, apitest.Scenario{As: apitest.User, Status: 200,
		Do: "GET /api/scraper/data?scraperId=" + r.shop.String()})
	if got := numbers(whole, "items"); got != "12367895" {
		t.Errorf("a read of all rows has %s", got)
	}
}
