package service

import (
	"context"
	"fmt"
	"os"

	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/testkit/crash"
)

// RestoreRows is 'shoal cluster restore-rows', which puts the row store of a single process back.
type RestoreRows struct {
	File string `arg:"" help:"FILE.rows that 'shoal cluster backup FILE' wrote, or the copy of a row store that is kept beside a backup." type:"existingfile" placeholder:"FILE.rows"`
	Data string `help:"Data directory without a row store, in which no process runs." default:"./data" placeholder:"DIR"`
}

// Help returns the command's help text.
func (*RestoreRows) Help() string {
	return `It is for a single process whose data directory is lost. The rows come back before the state does, while no process
runs in the directory. They appear there once the whole file is checked. A directory with a row store is refused.

Example:

  shoal cluster restore-rows shoal.backup.rows --data ./new
  shoal serve --data ./new
  shoal cluster restore shoal.backup --data ./new       # in another terminal`
}

// Run puts the rows back.
func (c *RestoreRows) Run(ctx context.Context, t *terminal.Terminal) error {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	unlock, err := datadir.Lock(c.Data)
	if err != nil {
		return err
	}
	defer unlock()
	copied, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = copied.Close() }() // read-only
	if err := placeRows(ctx, copied, c.Data, crash.FromEnv(os.Getenv)); err != nil {
		return err
	}
	t.Notef("the rows are in %s: start the service there, then restore the state", c.Data)
	return nil
}
