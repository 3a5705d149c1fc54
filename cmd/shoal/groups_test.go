package main

import (
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// A name that several groups share selects none of them; the error names their ids.
func TestGroupsThatShareAName(t *testing.T) {
	b := newShell(t)
	b.api.AddGroup(apitest.SavedID, "news")
	for _, args := range [][]string{{"group", "run", "news"}, {"jobs", "--group", "news"},
		{"rows", "--group", "news"},
		{"run", "--group", "news", "--url-file", "-", "--field", "a=b"}} {
		b.shoal(args...).want(t, terminal.ExitFailed, `2 groups are named "news"`,
			apitest.GroupID+", "+apitest.SavedID)
		if last := b.api.Calls[len(b.api.Calls)-1]; last != "GET /api/scraper/group/list" {
			t.Errorf("%v: the last call is %s", args, last)
		}
	}
	b.shoal("group", "run", apitest.GroupID).want(t, terminal.ExitOK, apitest.RunID)
	for range 6 {
		b.api.AddGroup(apitest.RunID, "news")
	}
	b.shoal("group", "run", "news").want(t, terminal.ExitFailed, "8 groups", "and 3 more")
}
