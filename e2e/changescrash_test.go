package e2e

import (
	"context"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/crash"
)

// TestCrashesOfChangeAlerts kills the process while a run that lacks most of the previous rows is
// detected and reported, in a group with changeAlerts. It is reported once.
func TestCrashesOfChangeAlerts(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"leader.after_close", "work.changes.before_step",
		"changes.after_part", "changes.before_tell", "changes.after_tell",
		"work.changes.after_step"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, run := newQuarantined(t)
			c.bring()
			c.alert(run)
			c.Down(t)
			c.bring(crash.At + "=" + point)
			few := c.few(run)
			c.survive("follow", func(ctx context.Context) error {
				_, err := c.Report(ctx, few)
				return err
			})
			ctx := suite.Within(t, suite.Patience)
			for c.toldOf("RUN_CHANGED", few.JobID) == 0 || len(c.Deaths) == 0 {
				select {
				case <-ctx.Done():
					t.Fatalf("not told after %d deaths", len(c.Deaths))
				case <-time.After(50 * time.Millisecond):
				}
			}
			c.Down(t)
			c.bring()
			if told := c.toldOf("RUN_CHANGED", few.JobID); told != 1 {
				t.Errorf("it was told %d times", told)
			}
			suite.CheckWallet(t, c.Client)
			c.CheckBooks()
		})
	}
}

// alert makes a run's group report changes without holding runs back.
func (c *crashCase) alert(run suite.Launched) {
	c.T.Helper()
	var scraper struct{ GroupRef string }
	if err := c.Call(c.T.Context(), "GET", "/api/scraper/"+run.ScraperID, nil, nil,
		&scraper); err != nil {
		c.T.Fatal(err)
	}
	if err := c.Again(suite.NewKey()).Call(c.T.Context(), "PUT", "/api/scraper/group", nil,
		map[string]any{"id": scraper.GroupRef, "quarantine": false,
			"changeAlerts": []string{"REMOVED"}}, nil); err != nil {
		c.T.Fatal(err)
	}
}
