package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/fault"
)

// standard is the name of standard input and output.
const standard = "-"

// rowsSuffix ends the name of the file beside a backup that has the row store.
const rowsSuffix = ".rows"

// Backup is 'shoal cluster backup', which saves the replicated state to a file, and the row store
// of a single process to another beside it.
type Backup struct {
	Connection
	File  string `arg:"" help:"File to write, '-' for standard output. A single process's rows go to FILE.rows. Existing files are replaced only with --force." type:"path" placeholder:"FILE"`
	Force bool   `help:"Replace existing files."`
}

// Help returns the command's help text.
func (*Backup) Help() string {
	return `It saves the state of the control plane: customers, scrapers, runs, wallets. Of a single process it also saves the row
store to FILE.rows: rows, history, ledger and audit trail. A cluster has them in ClickHouse, which has its own backups.
Blobs are in --blobs of 'shoal serve', and are not copied.

FILE appears only when all is complete. It has all that the cluster knows except the keys' secrets, so guard both files
like a password. While rows are copied, the service works on, and its disk only fills: below --free-mb the copy fails.

Standard output gets nothing but the state. If the exit code is not 0, the backup is incomplete and 'restore' refuses it.

Examples:

  shoal cluster backup shoal-$(date +%F).backup
  shoal cluster backup - | gzip > shoal.backup.gz`
}

// Run saves the state and the rows.
func (c *Backup) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.File == standard {
		return c.print(ctx, t)
	}
	for _, path := range []string{c.File, c.File + rowsSuffix} {
		if _, err := os.Stat(path); !c.Force && !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			return terminal.Usagef("%s is there already (--force replaces it)", path)
		}
	}
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	size, rows := int64(0), int64(0)
	// The rows have to be newer than the state, and in place before it.
	err = writeFile(c.File, private, func(w io.Writer) error {
		if size, err = client.Backup(ctx, w); err != nil {
			return err
		}
		err := writeFile(c.File+rowsSuffix, private, func(w io.Writer) error {
			rows, err = client.BackupRows(ctx, w)
			return err
		})
		if api.IsCode(err, fault.NotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	t.Notef("%d bytes are in %s", size, c.File)
	if rows > 0 {
		t.Notef("%d bytes of rows are in %s", rows, c.File+rowsSuffix)
	} else {
		t.Notef("rows are not in it: the row store has its own backups")
	}
	return nil
}

// print writes the state to standard output, where an incomplete part cannot be taken back.
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
	t.Notef("%d bytes are written, without rows", size)
	return nil
}

// Restore is 'shoal cluster restore', which takes a cluster back to a backup's state.
type Restore struct {
	Connection
	File  string `arg:"" help:"File that 'shoal cluster backup' wrote, '-' for standard input, or the name of a backup that 'shoal cluster backups' lists." placeholder:"FILE"`
	Force bool   `help:"Accept a backup of another cluster, and a row store that lacks some of its history. What is missing is printed."`

	ReviveKeys bool `help:"Make keys valid again that were revoked since the backup. By default they stay revoked."`
}

// Help returns the command's help text.
func (*Restore) Help() string {
	return `The backup replaces the cluster's state on every node, while the cluster runs. Everything since the backup is undone,
including top-ups and new customers. Runs that were open at the backup continue. Their pages that were stored since are
charged once and not stored again. Rows of runs launched since are hidden at once and removed a day later: after the
wrong file, the right one still brings everything back. Keys revoked since stay revoked. An incomplete file is refused
before anything changes. So is one whose history the row store lacks: 'restore-rows' puts back a lost one of a single
process.

Examples:

  shoal cluster restore shoal-2026-11-02.backup
  shoal cluster restore 20261102T030405.678Z-66f0c2a1b7d4e8f901234567`
}

// Run restores a backup.
func (c *Restore) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	restored, err := c.restore(ctx, t, client)
	if err != nil {
		return err
	}
	t.Notef("the state of %s (index %d) is restored", restored.TakenAt, restored.Index)
	for _, line := range slices.Concat(restored.Warnings, changesOf(&restored)) {
		t.Notef("%s", line)
	}
	return nil
}

// restore sends a file, or names a backup that the cluster has.
func (c *Restore) restore(ctx context.Context, t *terminal.Terminal,
	client *api.Client) (api.Restored, error) {
	if c.File == standard {
		return client.Restore(ctx, t.In, -1, c.Force, c.ReviveKeys)
	}
	file, err := os.Open(c.File)
	switch {
	case errors.Is(err, fs.ErrNotExist) && keptName.MatchString(c.File):
		return client.RestoreKept(ctx, c.File, c.Force, c.ReviveKeys)
	case errors.Is(err, fs.ErrNotExist):
		return api.Restored{}, terminal.Usagef("there is no file %s", c.File)
	case err != nil:
		return api.Restored{}, err
	}
	defer func() { _ = file.Close() }() // read-only
	info, err := file.Stat()
	if err != nil {
		return api.Restored{}, fmt.Errorf("%s: %w", c.File, err)
	}
	return client.Restore(ctx, file, info.Size(), c.Force, c.ReviveKeys)
}

// keptName matches the names of backups that the cluster took: a time and the cluster.
var keptName = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{24}$`)

// Backups is 'shoal cluster backups', which lists the backups that the leader took on its own.
type Backups struct {
	Connection
	JSON bool `help:"Print the backups as JSON."`
}

// Help returns the command's help text.
func (*Backups) Help() string {
	return `The leader takes a backup every --backup-every of 'shoal serve', and keeps the newest ones in the blob store (--blobs).
If --blobs names a place, a single process also keeps a copy of its row store there, as backups/cluster/NAME.rows. One
copy is kept, since it serves older backups as well.

Clusters that share a blob store see each other's backups. So a new cluster can restore the backup of a lost one, with
'shoal cluster restore --force NAME'.`
}

// Run lists the backups.
func (c *Backups) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	listed, err := client.Backups(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, listed)
	}
	kept := listed.Value
	rows := make([][]string, len(kept))
	for i, k := range kept {
		rows[i] = []string{k.Name, k.ClusterID, terminal.Moment(k.TakenAt),
			strconv.FormatInt(k.Bytes, 10), strconv.FormatInt(k.RowsBytes, 10)}
	}
	return terminal.PrintTable(t.Out,
		[]string{"NAME", "CLUSTER", "TAKEN (UTC)", "BYTES", "ROWS' BYTES"}, rows)
}

// changesOf lists what a restore changed, a line each.
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
	tell(r.ScrapersReturned, "scraper", "deleted since: there again")
	tell(r.SchedulesReturned, "schedule", "removed since: starts runs again, which are charged")
	if r.BalanceMicros != r.BeforeMicros {
		lines = append(lines, fmt.Sprintf("balances: %s in all, %s before",
			terminal.Euros(r.BalanceMicros), terminal.Euros(r.BeforeMicros)))
	}
	return lines
}
