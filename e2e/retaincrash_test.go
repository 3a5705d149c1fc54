package e2e

import (
	"context"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
	"shoal.dev/shoal/testkit/synthweb"
)

// retainedPages is the number of pages per run; only the scraper's newest run keeps its rows.
const retainedPages = 6

// TestCrashesOfRetention kills the process at each point of removing what a newer run replaces. In
// the end the newest run has its rows, earlier ones have none, and the books are unchanged.
func TestCrashesOfRetention(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"work.retain.before_delete:1", "work.retain.after_delete:1",
		"work.retain.before_delete:2", "work.retain.after_delete:2"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, first, second := newRepeated(t)
			c.bring(crash.At + "=" + point)
			c.survive("retention", func(ctx context.Context) error {
				return c.Call(ctx, "PUT", "/api/scraper/"+first.ScraperID+"/retention", nil,
					map[string]any{"retentionCount": 1}, nil)
			})
			third := c.relaunch(first)
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			suite.Must(c.Report(suite.Within(t, suite.Patience), third))(t)
			c.awaitRows(first.JobID, 0)
			c.awaitRows(second.JobID, 0)
			c.awaitRows(third.JobID, retainedPages)
			suite.CheckWallet(t, c.Client)
			runs, differ, err := c.Admin().RecountOfProduct(t.Context())
			if err != nil || runs != 3 || differ > 0 {
				t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
			}
			c.Down(t)
			if n := len(suite.Must(c.Records(t.Context(), first.JobID))(t)); n != retainedPages {
				t.Errorf("the first run has %d page records", n)
			}
		})
	}
}

// newRepeated is a stopped product, with a list that was run twice.
func newRepeated(t *testing.T) (c *crashCase, first, second suite.Launched) {
	t.Helper()
	web := newWeb(t, synthweb.Config{Hosts: retainedPages, PagesPerHost: 2,
		PageBytes: []int{2500}})
	args := append(append(suite.Fast(), "--no-rate-limits"), suite.AtOnce(1)...)
	c = &crashCase{service: &service{single: newSingle(t, args, web)}}
	c.Service = &suite.Service{T: t, Product: c.single, Web: web, Args: args}
	c.bring()
	c.Fill(c.Client, suite.Plenty)
	var urls []string
	for url := range web.URLs(retainedPages) {
		urls = append(urls, url)
	}
	first = suite.ProductOrder(c.Client, urls).Launch(t)
	suite.Must(c.Report(suite.Within(t, suite.Patience), first))(t)
	second = c.relaunch(first)
	suite.Must(c.Report(suite.Within(t, suite.Patience), second))(t)
	c.Down(t)
	return c, first, second
}

// awaitDeath waits until the process has reached its point, and starts another one.
func (c *crashCase) awaitDeath() {
	c.T.Helper()
	select {
	case <-c.p.Ended():
	case <-time.After(suite.Patience):
		c.T.Fatal("the process does not come upon its point")
	}
	if !c.buried() {
		c.T.Fatal("the process survives its point")
	}
	c.bring()
}

// relaunch reruns all of a list. The process may die during the call.
func (c *crashCase) relaunch(run suite.Launched) (next suite.Launched) {
	c.T.Helper()
	key := suite.NewKey()
	c.survive("launch", func(ctx context.Context) error {
		return c.Again(key).Call(ctx, "POST", "/api/scraper/url-list-run", nil,
			map[string]any{"scraperId": run.ScraperID, "force": true}, &next)
	})
	return next
}

// awaitRows waits until a run has that many rows.
func (c *crashCase) awaitRows(job string, want int) {
	c.T.Helper()
	ctx := suite.Within(c.T, suite.Patience)
	for {
		rows := suite.Must(c.Rows(context.WithoutCancel(ctx), job))(c.T)
		if len(rows) == want {
			return
		}
		select {
		case <-ctx.Done():
			c.T.Fatalf("run %s has %d rows, want %d", job, len(rows), want)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
