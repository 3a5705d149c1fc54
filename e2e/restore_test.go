package e2e

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/testkit/recount"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

// TestRunsOfARestoredStateEnd restores a backup from the middle of a run that ended meanwhile, by itself or stopped: it is
// open again, and the row store takes no more of its pages. It ends all the same, exact by what the restored ledger says.
func TestRunsOfARestoredStateEnd(t *testing.T) {
	pages := synthweb.Config{Seed: 3, Hosts: 40, PagesPerHost: 25, PageBytes: []int{2000}, MaxLatency: 20 * time.Millisecond,
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 90}, {Class: synthweb.NotFound, Weight: 5},
			{Class: synthweb.Empty, Weight: 5}}}
	chains := synthweb.Config{Seed: 5, Hosts: 40, PagesPerHost: 5, ChainPages: 6, ItemsPerPage: 3, PageBytes: []int{2000},
		MaxLatency: 20 * time.Millisecond, Mix: synthweb.Mix{{Class: synthweb.Listing, Weight: 100}}}
	for name, k := range map[string]struct {
		web    synthweb.Config
		chains bool
		stop   bool
		poor   bool // the money for most of it comes after the backup
	}{
		"pages, done":     {web: pages},
		"pages, stopped":  {web: pages, stop: true},
		"pages, poor":     {web: pages, poor: true},
		"chains, done":    {web: chains, chains: true},
		"chains, stopped": {web: chains, chains: true, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pace := fetcher.Pace{Rate: 6, Connections: 2}
			web := newWeb(t, k.web)
			c := newCluster(t, web, 1, func(settings *controlplane.Config, config *fetcher.Config) {
				settings.HostRate, settings.MaxHostRate = pace.Rate, pace.Rate
				config.Pace, config.MaxPace = pace, pace
			})
			if k.poor {
				c.fill(t, 250*suite.PlainPrice)
			} else {
				c.fill(t, suite.Plenty)
			}
			urls := slices.Collect(web.URLs(k.web.Hosts * k.web.PagesPerHost))
			order := suite.ProductOrder(c.Client, urls)
			if k.chains {
				order = suite.ListingOrder(c.Client, urls, suite.NextLink())
			}
			run := order.Launch(t)
			suite.Begun(t, c.Client, run, 150)
			var file bytes.Buffer
			if err := c.saves.Backup(suite.Within(t, suite.Patience), &file); err != nil {
				t.Fatal(err)
			}
			if k.poor {
				c.fill(t, suite.Plenty)
			}
			if k.stop {
				suite.Begun(t, c.Client, run, 400)
				if err := c.StopRun(suite.Within(t, suite.Patience), run.ScraperID); err != nil {
					t.Fatal(err)
				}
			}
			before := suite.Must(c.Report(suite.Within(t, suite.Patience), run))(t)
			if _, err := c.saves.Restore(suite.Within(t, suite.Patience), &file, false); err != nil {
				t.Fatal(err)
			}
			if job := suite.Must(c.Job(t.Context(), run))(t); job.State != string(model.Running) {
				t.Fatalf("after the restore the run is %s", job.State)
			}
			c.checkRestored(t, order, run, web, k.stop || k.poor, before)
		})
	}
}

// checkRestored waits for the end of a run that had ended before, and makes both recounts.
func (c *cluster) checkRestored(t *testing.T, order suite.Order, run suite.Launched, web *synthweb.Web, partial bool,
	before recount.Reported) {
	t.Helper()
	after := suite.Must(c.Report(suite.Within(t, suite.Patience), run))(t)
	suite.CheckWallet(t, c.Client)
	counted := suite.Must(billing.Recount(t.Context(), c.control.View(), c.store))(t)
	if len(counted) != 1 || !counted[0].Equal() {
		t.Errorf("the product's own recount: %+v", counted)
	}
	if -after.Entry.AmountMicros > -before.Entry.AmountMicros || len(after.Rows) > len(before.Rows) {
		t.Errorf("%d rows for %d, before the restore %d for %d", len(after.Rows), after.Entry.AmountMicros,
			len(before.Rows), before.Entry.AmountMicros)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	after.Records = suite.Must(readRecords(t.Context(), c.data, run.JobID))(t)
	t.Log(suite.Check(t, recount.Run{Web: web, URLs: order.URLs, Pagination: order.Pagination, Price: suite.PlainPrice,
		Free: suite.FreeGrant, Lossy: true, Partial: partial}, after))
}
