package main

import (
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// A scraper has its group: another group is sent only if it is named, and is never created.
func TestRunOfAScraperIsInItsGroup(t *testing.T) {
	b := newShell(t)
	b.in = "https://a.example/1\n"
	again := []string{"run", "--url-file", "-", "--scraper", apitest.ScraperID}
	b.shoal(again...).want(t, terminal.ExitOK)
	query := queryOf(t, b.api, "POST /api/scraper/url-list-run")
	if query.Has("groupId") || b.api.Asked("PUT /api/scraper/group") {
		t.Errorf("query %v, calls %q", query, b.api.Calls)
	}
	b.api.Calls = nil
	b.shoal(append(again, "--group", "news")...).want(t, terminal.ExitOK)
	query = queryOf(t, b.api, "POST /api/scraper/url-list-run")
	if query.Get("groupId") != apitest.GroupID {
		t.Errorf("query %v", query)
	}
	b.shoal(append(again, "--group", "nosuch")...).want(t, terminal.ExitFailed, "nosuch")
	b.api.Calls = nil
	b.api.Scrapers = []map[string]any{{"id": apitest.ScraperID, "name": "list"}}
	b.shoal("run", "--url-file", "-", "--scraper", "list").want(t, terminal.ExitOK)
	query = queryOf(t, b.api, "POST /api/scraper/url-list-run")
	if query.Get("scraperId") != apitest.ScraperID {
		t.Errorf("query %v", query)
	}
	b.shoal("run", "--url-file", "-", "--scraper", "nosuch").want(t, terminal.ExitFailed, "nosuch")
}

// A run is found among any number of later ones, also if its scraper is gone.
func TestARunIsFoundByItsID(t *testing.T) {
	b := newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("COMPLETED", map[string]any{"id": apitest.SavedID}),
		apitest.Job("STOPPED", nil)}
	b.shoal("job", apitest.RunID).want(t, terminal.ExitRunStopped, "STOPPED")
	if !b.api.Asked("GET /api/scraper/load-history/all?cursor=1&") {
		t.Errorf("calls %q", b.api.Calls)
	}
	b.shoal("job", "66f0c2a1b7d4e8f900000000").want(t, terminal.ExitFailed, "no run")
}
