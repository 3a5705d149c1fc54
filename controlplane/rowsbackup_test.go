package controlplane

import (
	"bytes"
	"context"
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
	config.Blobs, config.Store, config.Metrics = blobs, store, telemetry.NewMetrics()
	config.Backups = Backups{Every: 1, Keep: 2, Rows: true, Disk: &telemetry.Disk{Dir: "there",
		Floor: telemetry.NewFloor(100), Free: func(string) (uint64, bool) { return left, true }}}
	s := serve(t, config)
	until(t, "a leadership", s.Backups().Ready)
	// wants makes a step. It wants so many failures up to now, and so many backups, of which only
	// one has that copy.
	wants := func(failures float64, count, at int, rows string) {
		t.Helper()
		before := kept(t, s)
		until(t, "the next millisecond", func() bool {
			return len(before) == 0 || s.holder.Clocks().Now().After(before[0].Taken)
		})
		_, err := s.Backups().Step(patient(t), work.Item{})
		if n, _ := gauge(t, s, "shoal_backup_failures_total", ""); err != nil || n != failures {
			t.Errorf("%v failures, want %v: %v", n, failures, err)
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
	wants(0, 1, 0, "the rows of Monday")
	store.rows = "the rows of Tuesday"
	wants(0, 2, 0, "the rows of Tuesday")
	store.within = func() error { return errAway }
	wants(1, 2, 1, "the rows of Tuesday")
	wants(2, 3, 2, "the rows of Tuesday") // its backup outlives its time
	store.within = nil
	left = uint64(store.size) + 99
	wants(3, 3, 2, "the rows of Tuesday")
	left, store.size = 1<<40, blobstore.Backups.MaxBytes+1
	wants(3, 3, 2, "the rows of Tuesday")
	store.size, store.rows = 10, "the rows of Friday"
	wants(3, 2, 0, "the rows of Friday")

	newest := kept(t, s)[0].Name
	if _, err := s.Operator().RestoreKept(patient(t), newest+rowsSuffix,
		client.RestoreOptions{}); codeOf(err) != "not_found" {
		t.Errorf("the copy is restored as a backup: %v", err)
	}
	if _, err := s.Operator().RestoreKept(patient(t), newest, client.RestoreOptions{}); err != nil {
		t.Error(err)
	}
}

// stalled is a blob store that stops reading copies of the row store, while the disk fills.
type stalled struct {
	Blobs
	fill func()
}

func (b stalled) Put(ctx context.Context, key blobstore.Key, from io.Reader) (blobstore.Written,
	error) {
	if !strings.HasSuffix(key.ID, rowsSuffix) {
		return b.Blobs.Put(ctx, key, from)
	}
	_, _ = from.Read(make([]byte, 1)) // the copy has begun
	b.fill()
	<-ctx.Done()
	return blobstore.Written{}, ctx.Err()
}

// TestACopyThatNobodyReadsEnds: it would keep the row store's log from shrinking.
func TestACopyThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.Store, config.RowsFloor = newCopied("all the rows"), telemetry.NewFloor(100)
	fill := func() { config.RowsFloor.Above(99) }
	config.Blobs = stalled{Blobs: blobsIn(t, t.TempDir()), fill: fill}
	config.Backups = Backups{Every: 1, Keep: 1, Rows: true}
	s := serve(t, config)
	until(t, "a leadership", s.Backups().Ready)
	if _, err := s.Backups().Step(patient(t), work.Item{}); err != nil {
		t.Error(err)
	}
	if found := kept(t, s); len(found) != 1 || found[0].Rows != 0 {
		t.Errorf("%+v are kept", found)
	}
}

// TestALostClusterComesBack: a new cluster takes the backup of a lost one without force if it has
// the lost one's row store, and only then.
func TestALostClusterComesBack(t *testing.T) {
	t.Parallel()
	h := newArchivist(t, clock.System{}, 0)
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
