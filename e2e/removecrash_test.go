package e2e

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/crash"
)

// TestCrashesOfRemoval kills the process at each point of removing what was deleted with a scraper.
// In the end the row store has none of its rows and all its page records, and the books are
// unchanged.
func TestCrashesOfRemoval(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"work.remove.before_delete:1", "work.remove.after_delete:1",
		"work.remove.before_delete:2", "work.remove.before_forget:1"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, first, second := newRepeated(t)
			c.bring(crash.At + "=" + point)
			paid := suite.Must(c.Wallet(t.Context()))(t).BalanceMicros
			path, data := "/api/scraper/"+first.ScraperID, url.Values{"withData": {"true"}}
			var preview struct {
				PreviewSummary struct{ CascadeCounts map[string]int }
			}
			err := c.Call(t.Context(), "POST", path+"/preview-delete", data, nil, &preview)
			if err != nil {
				t.Fatal(err)
			}
			if n := preview.PreviewSummary.CascadeCounts["rows"]; n != 2*retainedPages {
				t.Errorf("%d rows are counted", n)
			}
			key := suite.NewKey()
			c.survive("delete", func(ctx context.Context) error {
				return c.Again(key).Call(ctx, "DELETE", path, data, nil, nil)
			})
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			c.awaitRows(first.JobID, 0)
			c.awaitRows(second.JobID, 0)
			suite.CheckWallet(t, c.Client)
			wallet := suite.Must(c.Wallet(t.Context()))(t)
			runs, differ, err := c.Admin().RecountOfProduct(t.Context())
			if err != nil || runs != 2 || differ > 0 || wallet.BalanceMicros != paid {
				t.Errorf("%d of %d runs differ, %v; the balance is %d and was %d", differ, runs,
					err, wallet.BalanceMicros, paid)
			}
			c.awaitRemoved(first, second)
		})
	}
}

// TestCrashesOfRunRemoval kills the process at each point of removing a deleted run's rows. In the
// end that run has no rows and all its page records. The previous run and the books are unchanged.
func TestCrashesOfRunRemoval(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"work.remove.before_delete:1", "work.remove.after_delete:1",
		"work.remove.before_forget:1"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, first, second := newRepeated(t)
			c.bring(crash.At + "=" + point)
			paid := suite.Must(c.Wallet(t.Context()))(t).BalanceMicros
			run := url.Values{"scraperJobStatusId": {second.JobID}}
			const path = "/api/scraper/data"
			err := c.Call(t.Context(), "POST", path+"/preview-delete", run, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			key := suite.NewKey()
			c.survive("delete", func(ctx context.Context) error {
				return c.Again(key).Call(ctx, "DELETE", path, run, nil, nil)
			})
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			c.awaitRows(second.JobID, 0)
			c.awaitRows(first.JobID, retainedPages)
			suite.CheckWallet(t, c.Client)
			wallet := suite.Must(c.Wallet(t.Context()))(t)
			runs, differ, err := c.Admin().RecountOfProduct(t.Context())
			if err != nil || runs != 2 || differ > 0 || wallet.BalanceMicros != paid {
				t.Errorf("%d of %d runs differ, %v; the balance is %d and was %d", differ, runs,
					err, wallet.BalanceMicros, paid)
			}
			c.awaitHeld(1, first, second)
		})
	}
}

// awaitRemoved waits until no rows of the runs are left, and checks their records.
func (c *crashCase) awaitRemoved(runs ...suite.Launched) {
	c.T.Helper()
	c.awaitHeld(0, runs...)
}

// TestCrashesOfGroupRemoval kills the process at each point of removing a deleted group, with more
// scrapers than one command removes.
func TestCrashesOfGroupRemoval(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"work.remove.before_members:1", "work.remove.before_delete:1",
		"work.remove.after_delete:2", "work.remove.before_forget:1"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, first, second := newRepeated(t)
			c.bring(crash.At + "=" + point)
			var scraper struct{ GroupRef string }
			err := c.Call(t.Context(), "GET", "/api/scraper/"+first.ScraperID, nil, nil, &scraper)
			if err != nil {
				t.Fatal(err)
			}
			const others = 201
			body := map[string]any{"groupRef": scraper.GroupRef, "type": "SINGLE_PRODUCT",
				"sourceConfig": map[string]any{"url": "https://shop.example/"},
				"itemsConfig": []any{map[string]any{"name": "title", "selector": "h1",
					"kind": "TEXT"}}}
			for n := range others {
				body["name"] = fmt.Sprint(n)
				c.survive("put", func(ctx context.Context) error {
					again := c.Again(fmt.Sprintf("put %d", n))
					return again.Call(ctx, "PUT", "/api/scraper", nil, body, nil)
				})
			}
			path, data := "/api/scraper/group/"+scraper.GroupRef, url.Values{"withData": {"true"}}
			var preview struct {
				PreviewSummary struct{ CascadeCounts map[string]int }
			}
			if err := c.Call(t.Context(), "POST", path+"/preview-delete", data, nil,
				&preview); err != nil {
				t.Fatal(err)
			}
			counts := preview.PreviewSummary.CascadeCounts
			if counts["rows"] != 2*retainedPages || counts["scrapers"] != others+1 {
				t.Errorf("%v is counted", counts)
			}
			key := suite.NewKey()
			c.survive("delete", func(ctx context.Context) error {
				return c.Again(key).Call(ctx, "DELETE", path, data, nil, nil)
			})
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			c.awaitRows(first.JobID, 0)
			suite.CheckWallet(t, c.Client)
			runs, differ, err := c.Admin().RecountOfProduct(t.Context())
			if err != nil || runs != 2 || differ > 0 {
				t.Errorf("%d of %d runs differ, %v", differ, runs, err)
			}
			c.awaitRemoved(first, second)
		})
	}
}

// awaitHeld waits until the row store has rows of exactly want runs, and checks the records of the
// given ones.
func (c *crashCase) awaitHeld(want int, runs ...suite.Launched) {
	t := c.T
	t.Helper()
	for ctx := suite.Within(t, suite.Patience); ; {
		c.Down(t)
		held, records := 0, 0
		err := c.withRows(c.T.Context(), func(store rowstore.Store) error {
			return store.JobsSince(t.Context(), 0, func(job rowstore.Job) error {
				jobs, err := store.Holding(t.Context(), rowstore.Scope{Group: job.Group,
					Jobs: []ids.ID{job.ID}}, 1)
				held += len(jobs)
				return err
			})
		})
		for _, run := range runs {
			records += len(suite.Must(c.Records(t.Context(), run.JobID))(t))
		}
		if err != nil || records != len(runs)*retainedPages {
			t.Fatalf("%d page records: %v", records, err)
		}
		if held == want {
			return
		}
		c.bring()
		select {
		case <-ctx.Done():
			t.Fatalf("%d runs have rows, want %d", held, want)
		case <-time.After(time.Second): // a node begins at once
		}
	}
}
