package e2e

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

// The sound runs of a list, and the odd run after them, which reads a few of its addresses.
const soundPages, oddPages, soundRuns = 20, 2, 4

// TestCrashesOfQuarantine kills the process around the end of an odd run in a group with
// quarantine. The run is held back once and reported once. It does not become the last run until it
// is released, and the books are unchanged.
func TestCrashesOfQuarantine(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"leader.before_seal", "leader.before_close",
		"leader.after_close", "raft.before_apply:6"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, run := newQuarantined(t)
			c.bring(crash.At + "=" + point)
			odd := c.few(run)
			c.survive("follow", func(ctx context.Context) error {
				_, err := c.Report(ctx, odd)
				return err
			})
			if len(c.Deaths) == 0 {
				t.Error("nobody has died")
			}
			if why := c.heldFor(odd.JobID); !strings.HasPrefix(why, "2 rows, where the last runs") {
				t.Errorf("it is held back for %q", why)
			}
			c.awaitRows(odd.JobID, oddPages)
			if rows := c.lastRows(run.ScraperID); rows != soundPages {
				t.Errorf("the last run has %d rows while the odd one is held back", rows)
			}
			if told := c.toldOf("RUN_ANOMALY", odd.JobID); told != 1 {
				t.Errorf("it was told %d times", told)
			}
			for range 2 {
				c.survive("release", func(ctx context.Context) error {
					return c.Again(suite.NewKey()).Call(ctx, "POST",
						"/api/scraper-job-status/"+odd.JobID+"/release", nil, nil, nil)
				})
			}
			if why := c.heldFor(odd.JobID); why != "" {
				t.Errorf("released, it is held back for %q", why)
			}
			if rows := c.lastRows(run.ScraperID); rows != oddPages {
				t.Errorf("the last run has %d rows after the release", rows)
			}
			suite.CheckWallet(t, c.Client)
			c.CheckBooks()
		})
	}
}

// newQuarantined is a stopped product, with some runs of a list in a group with quarantine. All but
// the newest have left the state.
func newQuarantined(t *testing.T) (*crashCase, suite.Launched) {
	t.Helper()
	web := newWeb(t, synthweb.Config{Hosts: soundPages, PagesPerHost: 2, PageBytes: []int{2500}})
	args := append(append(suite.Fast(), "--no-rate-limits"), suite.AtOnce(1)...)
	c := &crashCase{service: &service{single: newSingle(t, args, web)}}
	c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
	c.bring()
	c.Fill(c.Client, suite.Plenty)
	urls := slices.Collect(web.URLs(soundPages))
	run := suite.ProductOrder(c.Client, urls).Launch(t)
	suite.Must(c.Report(suite.Within(t, suite.Patience), run))(t)
	var scraper struct{ GroupRef string }
	if err := c.Call(t.Context(), "GET", "/api/scraper/"+run.ScraperID, nil, nil,
		&scraper); err != nil {
		t.Fatal(err)
	}
	if err := c.Again(suite.NewKey()).Call(t.Context(), "PUT", "/api/scraper/group", nil,
		map[string]any{"id": scraper.GroupRef, "quarantine": true}, nil); err != nil {
		t.Fatal(err)
	}
	for range soundRuns - 1 {
		next := c.relaunch(run)
		suite.Must(c.Report(suite.Within(t, suite.Patience), next))(t)
		if why := c.heldFor(next.JobID); why != "" {
			t.Fatalf("a sound run is held back: %s", why)
		}
	}
	if rows := c.lastRows(run.ScraperID); rows != soundPages {
		t.Fatalf("the last run has %d rows", rows)
	}
	c.Down(t)
	return c, run
}

// few reruns a list's first addresses.
func (c *crashCase) few(run suite.Launched) (odd suite.Launched) {
	c.T.Helper()
	key := suite.NewKey()
	c.survive("launch", func(ctx context.Context) error {
		return c.Again(key).Call(ctx, "POST", "/api/scraper/url-list-run", nil,
			map[string]any{"scraperId": run.ScraperID, "force": true,
				"urls": slices.Collect(c.Web.URLs(oddPages))}, &odd)
	})
	return odd
}

// heldFor returns why a run is held back, "" if it is not.
func (c *crashCase) heldFor(job string) (why string) {
	c.T.Helper()
	var page struct {
		Content []struct{ ID, QuarantineReason string }
	}
	c.survive("history", func(ctx context.Context) error {
		return c.Call(ctx, "GET", "/api/scraper/load-history", url.Values{"size": {"50"}}, nil,
			&page)
	})
	for _, record := range page.Content {
		if record.ID == job {
			return record.QuarantineReason
		}
	}
	c.T.Errorf("run %s is not in the history", job)
	return ""
}

// lastRows returns how many rows the last run of a scraper has.
func (c *crashCase) lastRows(scraper string) int {
	c.T.Helper()
	var page struct{ Items []map[string]any }
	c.survive("last run", func(ctx context.Context) error {
		return c.Call(ctx, "GET", "/api/scraper/data", url.Values{"isLastRun": {"true"},
			"scraperId": {scraper}, "limit": {"100"}}, nil, &page)
	})
	return len(page.Items)
}

// toldOf returns how often an event of a run was reported.
func (c *crashCase) toldOf(event, job string) (count int) {
	c.T.Helper()
	var page struct {
		Content []struct{ Event, JobID string }
	}
	c.survive("notices", func(ctx context.Context) error {
		return c.Call(ctx, "GET", "/api/notifications", nil, nil, &page)
	})
	for _, notice := range page.Content {
		if notice.Event == event && notice.JobID == job {
			count++
		}
	}
	return count
}
