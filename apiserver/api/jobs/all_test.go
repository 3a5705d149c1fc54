package jobs_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// TestAll reads all runs page by page, while runs leave the state and new ones are launched.
func TestAll(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	var want []string
	for range 7 {
		r.Clock.Advance(time.Millisecond)
		job := r.launch(t, r.scraper, 1)
		r.settleUnit(t, job, 0, 1)
		r.Client.CloseRun(t, job)
		want = append(want, job.String())
	}
	slices.Reverse(want)
	var got []string
	path, query := "/api/scraper/load-history/all", "?limit=2"
	for keep := 3; ; keep-- {
		answer := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: "GET " + path + query}).Body
		var page struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
			NextCursor *string `json:"nextCursor"`
			HasMore    bool    `json:"hasMore"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		for _, item := range page.Items {
			got = append(got, item.ID)
		}
		if page.HasMore != (page.NextCursor != nil) {
			t.Fatalf("a page that says %s", answer)
		}
		if !page.HasMore {
			break
		}
		query = "?limit=2&cursor=" + url.QueryEscape(*page.NextCursor)
		r.Client.Archive(t, r.store, max(keep, 0))
		r.Clock.Advance(time.Millisecond)
		r.launch(t, r.newScraper(t, page.Items[0].ID, r.group), 1)
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	r.CheckExports(t, path)
	r.Run(t, apitest.Scenario{Name: "another's cursor", As: apitest.Reader,
		Do: "GET " + path + "?cursor=AAAA", Status: 400, Code: "invalid_cursor"})
}
