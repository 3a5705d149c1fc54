package e2e

import (
	"bytes"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/billing"
	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/recount"
	"shoal.dev/shoal/testkit/synthweb"
)

// TestRunsOfARestoredStateEnd restores a backup from the middle of a run that has ended since, on
// its own or by a stop. It is open again, and the row store accepts no more of its pages. It still
// ends, exact by the restored ledger.
func TestRunsOfARestoredStateEnd(t *testing.T) {
	t.Parallel()
	pages := synthweb.Config{Seed: 3, Hosts: 40, PagesPerHost: 25, PageBytes: []int{2000},
		MaxLatency: 20 * time.Millisecond,
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 90},
			{Class: synthweb.NotFound, Weight: 5},
			{Class: synthweb.Empty, Weight: 5}}}
	chains := synthweb.Config{Seed: 5, Hosts: 40, PagesPerHost: 5, ChainPages: 6, ItemsPerPage: 3,
		PageBytes:  []int{2000},
		MaxLatency: 20 * time.Millisecond,
		Mix:        synthweb.Mix{{Class: synthweb.Listing, Weight: 100}}}
	for name, k := range map[string]struct {
		web    synthweb.Config
		chains bool
		stop   bool
		poor   bool // money for most of it comes after the backup
	}{
		"pages, done":     {web: pages},
		"pages, stopped":  {web: pages, stop: true},
		"pages, poor":     {web: pages, poor: true},
		"chains, done":    {web: chains, chains: true},
		"chains, stopped": {web: chains, chains: true, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pace := fetcher.Pace{Rate: 3, Connections: 2}
			web := newWeb(t, k.web)
			c := newCluster(t, web, 1, func(settings *controlplane.Config, config *fetcher.Config) {
				settings.HostRate, settings.MaxHostRate = pace.Rate, pace.Rate
				settings.RestoreGrace = 0 // what is beyond the ledger goes at once
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
			func() { // on a busy machine the money would run out meanwhile
				defer web.Hold()()
				if err := c.saves.Backup(suite.Within(t, suite.Patience), &file); err != nil {
					t.Fatal(err)
				}
				if k.poor {
					c.fill(t, suite.Plenty)
				}
			}()
			if k.stop {
				suite.Begun(t, c.Client, run, 400)
				if err := c.StopRun(suite.Within(t, suite.Patience), run.ScraperID); err != nil {
					t.Fatal(err)
				}
			}
			before := suite.Must(c.Report(suite.Within(t, suite.Patience), run))(t)
			if _, err := c.saves.Restore(suite.Within(t, suite.Patience), &file,
				client.RestoreOptions{}); err != nil {
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
func (c *cluster) checkRestored(t *testing.T, order suite.Order, run suite.Launched,
	web *synthweb.Web, partial bool,
	before recount.Reported) {
	t.Helper()
	after := suite.Must(c.Report(suite.Within(t, suite.Patience), run))(t)
	suite.CheckWallet(t, c.Client)
	equal := 0
	for run, err := range billing.Recount(t.Context(), c.control.View(),
		client.NewHistory(c.store), c.store) {
		if err != nil || !run.Equal() {
			t.Errorf("the product's own recount: %+v, %v", run, err)
		}
		equal++
	}
	if equal != 1 {
		t.Errorf("%d runs were recounted", equal)
	}
	if -after.Entry.AmountMicros > -before.Entry.AmountMicros ||
		len(after.Rows) > len(before.Rows) {
		t.Errorf("%d rows for %d, before the restore %d for %d", len(after.Rows),
			after.Entry.AmountMicros,
			len(before.Rows), before.Entry.AmountMicros)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	after.Records = suite.Must(readRecords(t.Context(), c.data, run.JobID))(t)
	t.Log(suite.Check(t, recount.Run{Web: web, URLs: order.URLs, Pagination: order.Pagination,
		Price: suite.PlainPrice,
		Free:  suite.FreeGrant, Lossy: true, Partial: partial}, after))
}

// history is a cluster that is restored repeatedly, and the truth when the right backup was taken.
type history struct {
	*cluster
	t      *testing.T
	runs   []suite.Launched   // before the backup
	truth  []recount.Reported // of runs
	wallet recount.Wallet
	rows   int // of the first run's scraper
}

func (h *history) save() []byte {
	h.t.Helper()
	var file bytes.Buffer
	if err := h.saves.Backup(suite.Within(h.t, suite.Patience), &file); err != nil {
		h.t.Fatal(err)
	}
	return file.Bytes()
}

func (h *history) restore(file []byte) client.Changes {
	h.t.Helper()
	return suite.Must(h.saves.Restore(suite.Within(h.t, suite.Patience), bytes.NewReader(file),
		client.RestoreOptions{}))(h.t).Changes
}

// work reruns the first scraper's list.
func (h *history) work() {
	h.t.Helper()
	run := suite.Must(h.RunAgain(suite.Within(h.t, suite.Patience), h.runs[0].ScraperID, true))(h.t)
	suite.Must(h.Report(suite.Within(h.t, suite.Patience), run))(h.t)
}

// read counts the rows of the first run's scraper, over all its runs.
func (h *history) read() int {
	h.t.Helper()
	var page struct{ Items []any }
	query := url.Values{"scraperId": {h.runs[0].ScraperID}, "limit": {"1000"}}
	if err := h.Call(h.t.Context(), "GET", "/api/scraper/data", query, nil, &page); err != nil {
		h.t.Fatal(err)
	}
	return len(page.Items)
}

// recounted requires that many undone runs, and every other one equal.
func (h *history) recounted(undone int) {
	h.t.Helper()
	for run, err := range billing.Recount(h.t.Context(), h.control.View(),
		client.NewHistory(h.store), h.store) {
		switch {
		case err != nil:
			h.t.Fatal(err)
		case run.Undone:
			undone--
			if run.RecountItems == 0 {
				h.t.Errorf("nothing is stored of the undone run %+v", run)
			}
		case !run.Equal():
			h.t.Errorf("recount: %+v", run)
		}
	}
	if undone != 0 {
		h.t.Errorf("%d undone runs are missing", undone)
	}
}

// check compares everything with the truth at the backup.
func (h *history) check(undone int) {
	h.t.Helper()
	for i, run := range h.runs {
		now := suite.Must(h.Report(suite.Within(h.t, suite.Patience), run))(h.t)
		if diff := cmp.Diff(h.truth[i], now); diff != "" {
			h.t.Errorf("run %d: %s", i, diff)
		}
	}
	if wallet := suite.Must(h.Wallet(h.t.Context()))(h.t); !cmp.Equal(wallet, h.wallet) {
		h.t.Errorf("wallet %+v, want %+v", wallet, h.wallet)
	}
	if rows := h.read(); rows != h.rows {
		h.t.Errorf("%d rows, want %d", rows, h.rows)
	}
	suite.CheckWallet(h.t, h.Client)
	h.recounted(undone)
}

// TestTheWrongFileFirstLosesNothing restores a backup that is too old, works on, and then restores
// the right one, twice. Everything is as it was at that backup. Meanwhile nobody reads a row of an
// undone run.
func TestTheWrongFileFirstLosesNothing(t *testing.T) {
	t.Parallel()
	pages := synthweb.Config{Seed: 7, Hosts: 40, PagesPerHost: 25, PageBytes: []int{2000},
		MaxLatency: 20 * time.Millisecond,
		Mix: synthweb.Mix{{Class: synthweb.Product, Weight: 95},
			{Class: synthweb.NotFound, Weight: 5}}}
	pace := fetcher.Pace{Rate: 3, Connections: 2}
	web := newWeb(t, pages)
	h := &history{t: t, cluster: newCluster(t, web, 1,
		func(settings *controlplane.Config, config *fetcher.Config) {
			settings.HostRate, settings.MaxHostRate = pace.Rate, pace.Rate
			config.Pace, config.MaxPace = pace, pace
		})}
	h.fill(t, 250*suite.PlainPrice)
	urls := slices.Collect(web.URLs(pages.Hosts * pages.PagesPerHost))
	note := func(run suite.Launched) {
		h.runs = append(h.runs, run)
		h.truth = append(h.truth, suite.Must(h.Report(suite.Within(t, suite.Patience), run))(t))
	}
	note(suite.ProductOrder(h.Client, urls[:60]).Launch(t))
	first := h.read()
	stopped := suite.ProductOrder(h.Client, urls).Launch(t)
	suite.Begun(t, h.Client, stopped, 100)
	var wrong []byte
	func() { // on a busy machine the money would run out meanwhile
		defer web.Hold()()
		wrong = h.save()
		// this pays most of what the run reads, and the wrong state lacks it
		h.fill(t, suite.Plenty)
	}()
	suite.Begun(t, h.Client, stopped, 250)
	if err := h.StopRun(suite.Within(t, suite.Patience), stopped.ScraperID); err != nil {
		t.Fatal(err)
	}
	note(stopped)
	note(suite.Must(h.RunAgain(suite.Within(t, suite.Patience), h.runs[0].ScraperID, true))(t))
	h.rows, h.wallet = h.read(), suite.Must(h.Wallet(t.Context()))(t)
	right := h.save()
	h.work()

	changes := h.restore(wrong)
	if changes.Undone != 2 || changes.Reopened != 1 || changes.Balance >= changes.BalanceBefore {
		t.Errorf("changes: %+v", changes)
	}
	if rows := h.read(); rows != first || h.rows <= first {
		t.Errorf("%d rows are read after the restore, want %d", rows, first)
	}
	// its money runs out
	for job := suite.Must(h.Job(t.Context(), stopped))(t); job.State == string(model.Running); {
		job = suite.Must(h.Job(t.Context(), stopped))(t)
	}
	h.recounted(2)
	h.fill(t, suite.Plenty)
	h.work()
	for undone := range 2 {
		h.restore(right)
		h.check(2 + undone)
		h.work()
	}
}
