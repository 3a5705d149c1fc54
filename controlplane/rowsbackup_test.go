package controlplane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// copied is a row store without backups of its own.
type copied struct {
	*lists
	rows   string
	size   int64
	within func() error // called in the middle of a copy; nil: no call
}

var _ rowstore.Copied = (*copied)(nil)

func newCopied(rows string) *copied {
	return &copied{lists: newLists(), rows: rows, size: int64(len(rows))}
}

// Size implements rowstore.Copied.
func (c *copied) Size(context.Context) (int64, error) { return c.size, nil }

// Copy implements rowstore.Copied.
func (c *copied) Copy(_ context.Context, to io.Writer) error {
	half := len(c.rows) / 2
	if _, err := io.WriteString(to, c.rows[:half]); err != nil {
		return err
	}
	if c.within != nil {
		if err := c.within(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, c.rows[half:])
	return err
}

// TestRowsOfAProcessAreCopied: a copy gives up once the row store's disk is short.
func TestRowsOfAProcessAreCopied(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	store := newCopied("all the rows")
	config.Store, config.RowsFloor = store, telemetry.NewFloor(100)
	s := serve(t, config)
	var file bytes.Buffer
	err := s.Operator().BackupRows(patient(t), &file)
	if got := file.String(); err != nil || got != store.rows {
		t.Errorf("%q is copied: %v", got, err)
	}
	if size, err := s.Operator().RowsBytes(patient(t)); err != nil || size != store.size {
		t.Errorf("%d bytes, %v", size, err)
	}
	store.within = func() error { config.RowsFloor.Above(99); return nil }
	if err := s.Operator().BackupRows(patient(t), io.Discard); codeOf(err) != "out_of_space" {
		t.Errorf("a copy while the disk fills: %v", err)
	}
	if _, err := s.Operator().RowsBytes(patient(t)); codeOf(err) != "out_of_space" {
		t.Errorf("on a full disk: %v", err)
	}
	other := serve(t, testConfig(t, t.TempDir()))
	if err := other.Operator().BackupRows(patient(t), io.Discard); codeOf(err) != "not_found" {
		t.Errorf("a row store with backups of its own: %v", err)
	}
}

// TestRowsAreKeptWithTheNewestBackup: there is always the newest copy that could be made, with its
// backup, and no other.
func TestRowsAreKeptWithTheNewestBackup(t *testing.T) {
	t.Parallel()
	blobs, store := blobsIn(t, t.TempDir()), newCopied("the rows of Monday")
	left := uint64(1 << 30)
	config := testConfig(t, t.TempDir())
	config.Blobs, config.Store = blobs, store
	config.Backups = Backups{Every: 1, Keep: 2, Rows: true, Disk: &telemetry.Disk{Dir: "there",
		Floor: telemetry.NewFloor(100), Free: func(string) (uint64, bool) { return left, true }}}
	s := serve(t, config)
	until(t, "a leadership", s.Backups().Ready)
	// wants makes a step, and wants so many backups, of which only one has that copy.
	wants := func(failed error, count, at int, rows string) {
		t.Helper()
		before := kept(t, s)
		until(t, "the next millisecond", func() bool {
			return len(before) == 0 || s.holder.Clocks().Now().After(before[0].Taken)
		})
		_, err := s.Backups().Step(patient(t), work.Item{})
		if (err == nil) != (failed == nil) || failed != errAny && !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
		found := kept(t, s)
		if len(found) != count {
			t.Fatalf("%+v are kept, want %d", found, count)
		}
		for i, k := range found {
			if (k.Rows > 0) != (i == at) {
				t.Errorf("backup %d has %d bytes of rows", i, k.Rows)
			}
		}
		from, err := blobs.Open(patient(t), backupKey(found[at].Name+rowsSuffix), 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = from.Close() }()
		if got, err := io.ReadAll(from); err != nil || string(got) != rows {
			t.Errorf("the copy is %q, %v; want %q", got, err, rows)
		}
	}
	wants(nil, 1, 0, "the rows of Monday")
	store.rows = "the rows of Tuesday"
	wants(nil, 2, 0, "the rows of Tuesday")
	store.within = func() error { return errAway }
	wants(errAway, 2, 1, "the rows of Tuesday")
	wants(errAway, 3, 2, "the rows of Tuesday") // its backup outlives its time
	store.within = nil
	left = uint64(store.size) + 99
	wants(errAny, 3, 2, "the rows of Tuesday")
	left, store.size = 1<<40, blobstore.Backups.MaxBytes+1
	wants(nil, 3, 2, "the rows of Tuesday")
	store.size, store.rows = 10, "the rows of Friday"
	wants(nil, 2, 0, "the rows of Friday")

	newest := kept(t, s)[0].Name
	if _, err := s.Operator().RestoreKept(patient(t), newest+rowsSuffix,
		client.RestoreOptions{}); codeOf(err) != "not_found" {
		t.Errorf("the copy is restored as a backup: %v", err)
	}
	if _, err := s.Operator().RestoreKept(patient(t), newest, client.RestoreOptions{}); err != nil {
		t.Error(err)
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

// TestALostClusterComesBack: a new cluster takes the backup of a lost one without force if it has
// the lost one's row store, and only then.
func TestALostClusterComesBack(t *testing.T) {
	t.Parallel()
	h := newArchivist(t, clock.System{})
	h.run()
	h.archived()
	file := backupOf(t, h.running)
	ended := h.archived()
	h.stop()
	for _, lost := range []bool{true, false} {
		config := testConfig(t, t.TempDir())
		if !lost {
			config.Store = h.store.lists
		}
		other := serve(t, config)
		_, err := restore(t, other, file, false)
		switch {
		case lost && codeOf(err) != "other_cluster":
			t.Errorf("without its row store: %v", err)
		case lost:
			if !strings.Contains(err.Error(), "does not have its history") {
				t.Errorf("it is refused with %v", err)
			}
		case err != nil:
			t.Errorf("with its row store: %v", err)
		case fresh(t, other).ArchivedTo() != ended.ArchivedTo():
			t.Error("the state is not that of the backup")
		}
	}
}
