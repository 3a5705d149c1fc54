package e2e

import (
	"context"
	"errors"
	"io"
	"net/url"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
)

// keptExport is a kept export in the API.
type keptExport struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Rows  int64  `json:"rows"`
}

// TestCrashesOfKeptExports kills the process at each point of writing a kept export. In the end
// there is one file, with each row of the run once.
func TestCrashesOfKeptExports(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"work.export.before_step", "work.export.before_put",
		"work.export.after_put", "work.export.after_end", "work.export.after_step"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, _, run := newRepeated(t)
			c.bring(crash.At + "=" + point)
			query := url.Values{"jobId": {run.JobID}, "format": {"jsonl"}}
			var kept keptExport
			c.survive("export", func(ctx context.Context) error {
				return c.Again("kept").Call(ctx, "POST", "/api/scraper/data/exports", query, nil,
					&kept)
			})
			for ctx := suite.Within(t, suite.Patience); kept.State != "READY"; {
				c.survive("look", func(ctx context.Context) error {
					return c.Call(ctx, "GET", "/api/scraper/data/exports/"+kept.ID, nil, nil,
						&kept)
				})
				select {
				case <-ctx.Done():
					t.Fatalf("it is not ready: %+v", kept)
				case <-time.After(50 * time.Millisecond):
				}
			}
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			whole := c.read("/api/scraper/data/exports/"+kept.ID+"/file", nil)
			if want := c.read("/api/scraper/data/export", query); kept.Rows != retainedPages ||
				whole != want {
				t.Errorf("%d rows are kept:\n%s\nof:\n%s", kept.Rows, whole, want)
			}
		})
	}
}

// read returns a complete answer, however often the process dies.
func (c *crashCase) read(path string, query url.Values) (text string) {
	c.T.Helper()
	c.survive("read", func(ctx context.Context) (err error) {
		text, err = c.readOnce(ctx, path, query)
		return err
	})
	return text
}

// readOnce reads an answer, and fails if it is not complete.
func (c *crashCase) readOnce(ctx context.Context, path string, query url.Values) (string, error) {
	answer, err := c.Do(ctx, "GET", path, query, "", nil)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), errors.Join(err, answer.Body.Close())
}
