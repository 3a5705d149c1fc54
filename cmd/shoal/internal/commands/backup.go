package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// standard is the name of standard input and output.
const standard = "-"

// Backup is 'shoal cluster backup', which saves the replicated state to a file.
type Backup struct {
	Connection
	File  string `arg:"" help:"File to write, '-' for standard output; one that is there is replaced with --force only." type:"path" placeholder:"FILE"`
	Force bool   `help:"Replace the file if it is there."`
}

// Help teaches the command.
func (*Backup) Help() string {
	return `It saves what the control plane keeps: customers, scrapers, runs, wallets. Rows are in the row store, which has its own
backups. The file appears when it is whole. It holds what a cluster knows but for the keys' secrets: keep it as you keep a
password.

On standard output there is nothing but the backup. One that ends with another code than 0 is no backup: 'restore' refuses
it.

Examples:

  shoal cluster backup shoal-$(date +%F).backup
  shoal cluster backup - | gzip > shoal.backup.gz`
}

// Run saves the state.
func (c *Backup) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.File == standard {
		return c.print(ctx, t)
	}
	if _, err := os.Stat(c.File); !c.Force && !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return terminal.Usagef("%s is there already (--force replaces it)", c.File)
	}
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	file, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*.part") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // it has its name by then, or is not whole
	size, err := client.Backup(ctx, file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), c.File); err != nil {
		return err
	}
	t.Notef("%d bytes are in %s", size, c.File)
	return nil
}

// print writes the state to standard output, where a part of it cannot be taken back.
func (c *Backup) print(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	size, err := client.Backup(ctx, t.Out)
	if err != nil {
		return fmt.Errorf("what was written is no backup: %w", err)
	}
	t.Notef("%d bytes are written", size)
	return nil
}

// Restore is 'shoal cluster restore', which takes a cluster back to a backup's state.
type Restore struct {
	Connection
	File  string `arg:"" help:"File that 'shoal cluster backup' wrote, '-' for standard input." type:"existingfile" placeholder:"FILE"`
	Force bool   `help:"Take another cluster's backup, too."`

	ReviveKeys bool `help:"Let keys that were revoked since the backup be valid again; without it they stay revoked."`
}

// Help teaches the command.
func (*Restore) Help() string {
	return `The state of the backup takes the place of the cluster's on every node, while the cluster works. What has happened since
is undone: top-ups and new customers are gone, too. Runs that were open at the backup go on, and pages that were stored
meanwhile are charged once and not stored again. Rows of runs that were launched since are read no more; they go a day
later, so that after the wrong file the right one still brings everything back. Keys that were revoked since stay revoked.
A file that is not whole is refused before anything changes.

Example:

  shoal cluster restore shoal-2026-11-02.backup`
}

// Run restores a backup.
func (c *Restore) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	saved, length := t.In, int64(-1)
	if c.File != standard {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // read only: nothing is lost
		info, err := file.Stat()
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		saved, length = file, info.Size()
	}
	restored, err := client.Restore(ctx, saved, length, c.Force, c.ReviveKeys)
	if err != nil {
		return err
	}
	t.Notef("the state of %s (index %d) is restored", restored.TakenAt, restored.Index)
	for _, line := range changesOf(&restored) {
		t.Notef("%s", line)
	}
	return nil
}

// changesOf is what a restore changed, a line each.
func changesOf(r *api.Restored) (lines []string) {
	tell := func(n int, noun, text string) {
		if n > 0 {
			lines = append(lines, terminal.Plural(int64(n), noun)+" "+text)
		}
	}
	tell(r.RunsUndone, "run", "launched since: undone; what is stored of them is read no more "+
		"and kept until "+r.RowsUntil)
	tell(r.RunsReopened, "run", "that had ended: open again, settled from what is stored")
	tell(r.KeysRevoked, "key",
		"revoked since: still revoked (--revive-keys makes them valid again)")
	tell(r.KeysRevived, "key", "revoked since: valid again")
	tell(r.KeysGone, "key", "made since: not valid any more")
	tell(r.CustomersGone, "customer", "who came since: gone")
	tell(r.ScrapersGone, "scraper", "made since: gone")
	tell(r.ScrapersBack, "scraper", "changed since: as it was, under new revisions from its "+
		"next change on")
	if r.BalanceMicros != r.BeforeMicros {
		lines = append(lines, fmt.Sprintf("balances: %s in all, %s before",
			terminal.Euros(r.BalanceMicros), terminal.Euros(r.BeforeMicros)))
	}
	return lines
}
