package data_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func odditiesOf(job ids.ID) string {
	return "GET /api/scraper/data/oddities?jobId=" + job.String()
}

// A run is compared with earlier runs that are complete and still have their rows.
func TestOddities(t *testing.T) {
	r := start(t)
	scraper := r.scraper(t, "judged")
	add := func(rows int, price string) ids.ID {
		t.Helper()
		var some []string
		for n := range rows {
			some = append(some, fmt.Sprintf(`{"price":%s,"n":%d}`, price, n))
		}
		r.run(t, scraper, some...)
		return r.jobs[len(r.jobs)-1]
	}
	first, second := add(12, "10"), add(13, "11")
	for range 200 { // which are not compared with
		r.ended(t, scraper, model.Stopped)
	}
	third := add(12, "10")
	sound, odd := add(14, "12"), add(12, `"ask us"`)
	open := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: scraper, List: r.IDs.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, open)
	refused := func(name, as, do, code string, status int) apitest.Scenario {
		return apitest.Scenario{Name: name, As: as, Do: do, Status: status, Code: code}
	}
	found := map[string]any{"jobId": odd.String(), "oddities": []any{map[string]any{
		"aspect": "TYPES", "field": "price",
		"text": "0% of the values are numbers, where it was 100%"}},
		"comparedWith": []any{sound.String(), third.String(), second.String(), first.String()}}
	r.Run(t,
		refused("no run", apitest.User, odditiesOf(ids.ID{1}), "job_not_found", 400),
		refused("open", apitest.User, odditiesOf(open.Job), "job_not_ended", 409),
		refused("foreign", apitest.Other, odditiesOf(odd), "job_not_found", 400),
		apitest.Scenario{Name: "too few before it", As: apitest.User, Do: odditiesOf(third),
			Status: 200, Has: map[string]any{"oddities": []any{},
				"comparedWith": []any{second.String(), first.String()}}},
		apitest.Scenario{Name: "sound", As: apitest.User, Do: odditiesOf(sound), Status: 200,
			Has: map[string]any{"oddities": []any{}}},
		apitest.Scenario{Name: "odd", As: apitest.Reader, Do: odditiesOf(odd), Status: 200,
			Has: found})
	r.share(t)
	r.Run(t, apitest.Scenario{Name: "shared", As: apitest.Other, Do: odditiesOf(odd), Status: 200,
		Has: found})
	if err := r.store.DeleteJob(t.Context(), third, false); err != nil {
		t.Fatal(err)
	}
	r.Run(t, refused("its rows are gone", apitest.User, odditiesOf(third), "rows_gone", 400),
		apitest.Scenario{Name: "without it", As: apitest.User, Do: odditiesOf(odd), Status: 200,
			Has: map[string]any{"comparedWith": []any{sound.String(), second.String(),
				first.String()}}})
}
