package jobs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestSpans lists runs by time of queueing, wherever they are stored.
func TestSpans(t *testing.T) {
	r := start(t)
	var runs []string
	var times []time.Time
	for i := range 7 {
		if i%3 != 2 { // some at the same time
			r.Clock.Advance(time.Second)
		}
		scraper := r.newScraper(t, string(rune('a'+i)), r.group)
		job := r.launch(t, scraper, 1)
		times = append(times, r.Clock.Now().UTC())
		r.settleUnit(t, job, 0, 1)
		r.Client.CloseRun(t, job)
		runs = append(runs, job.String())
	}
	slices.SortFunc(runs, func(a, b string) int { return strings.Compare(b, a) }) // ids sort by
	slices.Reverse(times)                                                         // their second
	for _, keep := range []int{7, 3, 0} {
		r.Client.Archive(t, r.store, keep)
		r.CheckSpans(t, "/api/scraper/load-history", runs, times)
		r.CheckSpans(t, "/api/scraper/load-history/all", runs, times)
	}
	from := times[3].Format(time.RFC3339Nano)
	r.Run(t, apitest.Scenario{Name: "with a filter and another order", As: apitest.Reader,
		Do: "GET /api/scraper/load-history?sort=queued:asc&withDeleted=true&from=" + from +
			"&filters=%7B%22groupId%22:%22" + r.group.String() + "%22%7D", Status: 200,
		Has: map[string]any{"totalElements": 4, "content.3.id": runs[0]}})
	var first string
	r.Run(t, apitest.Scenario{Name: "a page", As: apitest.Reader,
		Do: "GET /api/scraper/load-history/all?limit=1&from=" + from, Status: 200,
		Check: func(_ *testing.T, a apitest.Answer) {
			first, _ = a.JSON.(map[string]any)["nextCursor"].(string)
		}})
	r.Run(t, apitest.Scenario{Name: "a cursor of another span", As: apitest.Reader,
		Do: "GET /api/scraper/load-history/all?limit=1&cursor=" + first, Status: 400,
		Code: "invalid_cursor"})
}
