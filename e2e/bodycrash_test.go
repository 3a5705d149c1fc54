package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
)

// TestCrashesOfKeptBodies kills the process at each point of keeping a page's body. In the end the
// run has each row once, and each row's receipt leads to its page's body.
func TestCrashesOfKeptBodies(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"fetcher.before_pack", "fetcher.after_pack",
		"fetcher.before_publish", "fetcher.after_publish", "ingest.after_store"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, run := newKeeping(t)
			c.bring(crash.At + "=" + storePoint(point))
			third := c.relaunch(run)
			c.survive("follow", func(ctx context.Context) error {
				_, err := c.Report(ctx, third)
				return err
			})
			if len(c.Deaths) == 0 {
				t.Error("nobody has died")
			}
			c.checkBodies(third.JobID, retainedPages)
			suite.CheckWallet(t, c.Client)
		})
	}
}

// TestCrashesOfReExtracts kills the process at each point of re-reading kept bodies, including the
// call that asks for it. In the end there is one such run, with each row once. The sites got no
// requests, and nothing was charged.
func TestCrashesOfReExtracts(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{
		"work.reextract.before_step", "work.reextract.before_put",
		"rowstore.before_commit", "rowstore.after_commit", "work.reextract.after_put",
		"work.reextract.after_seal", "work.reextract.after_end", "work.reextract.after_step",
		"raft.before_apply", "raft.after_apply"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, run := newKeeping(t)
			c.bring()
			kept := c.relaunch(run)
			suite.Must(c.Report(suite.Within(t, suite.Patience), kept))(t)
			asked := len(slices.Collect(c.Web.Requests()))
			before := suite.Must(c.Wallet(t.Context()))(t).BalanceMicros
			c.Down(t)
			c.bring(crash.At + "=" + storePoint(point))
			key := suite.NewKey()
			var again suite.Launched
			c.survive("re-extract", func(ctx context.Context) error {
				return c.Again(key).Call(ctx, "POST", "/api/scraper/"+run.ScraperID+"/re-extract",
					nil, map[string]any{"jobId": kept.JobID}, &again)
			})
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			c.awaitRows(again.JobID, retainedPages)
			c.checkBodies(again.JobID, retainedPages)
			c.checkBodies(kept.JobID, retainedPages)
			if after := suite.Must(c.Wallet(t.Context()))(t).BalanceMicros; after != before {
				t.Errorf("the balance is %d, was %d", after, before)
			}
			if n := len(slices.Collect(c.Web.Requests())); n != asked {
				t.Errorf("%d requests reached the sites", n-asked)
			}
			runs, differ, err := c.Admin().RecountOfProduct(t.Context())
			if err != nil || runs != 4 || differ > 0 {
				t.Errorf("the product's own recount: %d of %d runs differ, %v", differ, runs, err)
			}
		})
	}
}

// newKeeping is a stopped product with a list run, whose scraper keeps bodies from now on.
func newKeeping(t *testing.T) (*crashCase, suite.Launched) {
	t.Helper()
	c, run, _ := newRepeated(t)
	c.bring()
	var scraper map[string]any
	if err := c.Call(t.Context(), "GET", "/api/scraper/"+run.ScraperID, nil, nil,
		&scraper); err != nil {
		t.Fatal(err)
	}
	config, _ := scraper["config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	config["keepBodyDays"] = 3
	scraper["config"] = config
	if err := c.Again(suite.NewKey()).Call(t.Context(), "PUT", "/api/scraper", nil, scraper,
		nil); err != nil {
		t.Fatal(err)
	}
	c.Down(t)
	return c, run
}

// checkBodies requires want rows of a run, each of another page, with receipts that lead to bodies.
func (c *crashCase) checkBodies(job string, want int) {
	c.T.Helper()
	rows := suite.Must(c.Rows(context.Background(), job))(c.T)
	if len(rows) != want {
		c.T.Fatalf("run %s has %d rows, want %d", job, len(rows), want)
	}
	pages := map[string]bool{}
	for _, row := range rows {
		id, url := row["_rowId"].(string), row["_sourceUrl"].(string)
		pages[url] = true
		var receipt struct {
			Hash string `json:"bodySha256"`
			Body struct {
				Path string `json:"path"`
			} `json:"body"`
		}
		path := "/api/scraper/data/" + id + "/receipt"
		if err := c.Call(c.T.Context(), "GET", path, nil, nil, &receipt); err != nil {
			c.T.Fatal(err)
		}
		if receipt.Body.Path == "" {
			c.T.Errorf("no body of %s is kept", url)
			continue
		}
		sum := sha256.Sum256([]byte(c.read(receipt.Body.Path, nil)))
		if got := hex.EncodeToString(sum[:]); got != receipt.Hash {
			c.T.Errorf("the body of %s is %s, want %s", url, got, receipt.Hash)
		}
	}
	if len(pages) != want {
		c.T.Errorf("the rows are of %d pages, want %d", len(pages), want)
	}
}
