//go:build linux

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/recount"
)

// besideRestore lets another fault strike while a backup from the middle of the runs is restored.
// By the seed, the restore begins before the fault, in its middle or near its end. Payments after
// the backup are gone, and everything else is as exact as without a restore.
func besideRestore(other func(*cell)) func(*cell) {
	return func(c *cell) {
		file := filepath.Join(c.t.TempDir(), "shoal.backup")
		c.must(c.operate(c.ctx, "cluster", "backup", file))
		payer := c.jobs[0]
		before := c.ledger(payer)
		ref := suite.Must(payer.who.Whoami(c.ctx))(c.t)
		key := suite.NewKey()
		c.must(again(c.ctx, "payment after the backup", func(ctx context.Context) error {
			return c.admin.Again(key).Adjust(ctx, ref, afterBackup)
		}))
		if !paid(c.ledger(payer)) || paid(before) {
			c.t.Fatal("there is nothing to undo")
		}
		c.hold(short) // the runs go on after the backup

		restored, begins := make(chan error, 1), time.After(time.Duration(c.random.Int64N(int64(
			short+time.Second))))
		go func() {
			<-begins
			restored <- c.operate(c.ctx, "cluster", "restore", file)
		}()
		other(c)
		c.must(<-restored)
		if paid(c.ledger(payer)) {
			c.t.Error("what was paid in after the backup is there")
		}
	}
}

// afterBackup is a payment in micros, unlike any other.
const afterBackup = 7_654_321

func paid(entries []recount.Transaction) bool {
	for _, entry := range entries {
		if entry.AmountMicros == afterBackup {
			return true
		}
	}
	return false
}

func (c *cell) ledger(j *job) (entries []recount.Transaction) {
	c.t.Helper()
	c.must(again(c.ctx, "ledger of "+j.name, func(ctx context.Context) (err error) {
		entries, err = j.who.Ledger(ctx)
		return err
	}))
	return entries
}

// operate runs an operator's command against one API server after the other until it succeeds. It
// retries if there is no answer, or if something is unavailable.
func (c *cell) operate(ctx context.Context, args ...string) error {
	servers := c.With(cluster.APIServer)
	for try := 0; ; try++ {
		_, err := c.Command(ctx, []string{"SHOAL_SERVER=" + servers[try%len(servers)].Server(),
			"SHOAL_KEY=" + c.admin.Token}, args...)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%v: %w", args, err)
		case <-time.After(lookEvery):
		}
	}
}
