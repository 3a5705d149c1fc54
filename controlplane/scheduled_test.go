package controlplane

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
	"shoal.dev/shoal/testkit/skew"
)

// blobsIn opens a blob store in a directory until the test ends.
func blobsIn(t *testing.T, dir string) *blobstore.Store {
	t.Helper()
	blobs, err := blobstore.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return blobs
}

// keeping runs a leader that keeps backups.
func keeping(t *testing.T, blobs Blobs, how Backups) *running {
	t.Helper()
	config := testConfig(t, t.TempDir())
	config.Blobs, config.Backups, config.Metrics = blobs, how, telemetry.NewMetrics()
	s := serve(t, config)
	kind := s.Backups()
	until(t, "a leadership", kind.Ready)
	return s
}

// round makes one step of the work, and returns how long the work then rests.
func round(t *testing.T, s *running) time.Duration {
	t.Helper()
	outcome, err := s.Backups().Step(patient(t), work.Item{})
	if err != nil || outcome.End != work.Rested {
		t.Fatalf("%+v, %v", outcome, err)
	}
	return outcome.Rest
}

func kept(t *testing.T, s *running) []client.KeptBackup {
	t.Helper()
	found, err := s.Operator().Backups(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestKeptBackupIsRestored(t *testing.T) {
	t.Parallel()
	s := keeping(t, blobsIn(t, t.TempDir()), Backups{Every: 1, Keep: 7})
	openCustomer(t, s, "ann")
	round(t, s)
	openCustomer(t, s, "bob")
	found := kept(t, s)
	if len(found) != 1 || found[0].Bytes == 0 || found[0].Cluster != fresh(t, s).Cluster().ID {
		t.Fatalf("%+v", found)
	}
	if _, err := s.Operator().RestoreKept(patient(t), found[0].Name,
		client.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if view := fresh(t, s); view.Customer("ann") == nil || view.Customer("bob") != nil {
		t.Error("the state is not that of the backup")
	}
	missing := "20200102T030405.678Z-" + found[0].Cluster.String()
	for _, name := range []string{"", "../x", missing} {
		_, err := s.Operator().RestoreKept(patient(t), name, client.RestoreOptions{})
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A new leader's time may still be hours behind. By it the next backup would be due too late.
func TestBackupsLookAgain(t *testing.T) {
	t.Parallel()
	s := keeping(t, blobsIn(t, t.TempDir()), Backups{Every: 24 * time.Hour, Keep: 1})
	if rest := round(t, s); rest != backupsLook {
		t.Errorf("a cluster that is new rests %v", rest)
	}
	if _, err := s.scheduled.writeBackup(patient(t), s.config.Clock.Now().Add(
		-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if rest := round(t, s); rest != backupsLook {
		t.Errorf("it rests %v after a backup", rest)
	}
}

// TestBackupsAreTakenWhenDue: none is taken early, and only one per interval.
func TestBackupsAreTakenWhenDue(t *testing.T) {
	t.Parallel()
	s := keeping(t, blobsIn(t, t.TempDir()), Backups{Every: time.Hour, Keep: 2})
	if rest := round(t, s); rest <= 0 || rest > time.Hour || len(kept(t, s)) != 0 {
		t.Errorf("a cluster that is new rests %v and has %v", rest, kept(t, s))
	}
	now := s.config.Clock.Now()
	for _, age := range []time.Duration{5 * time.Hour, 4 * time.Hour, 3 * time.Hour} {
		if _, err := s.scheduled.writeBackup(patient(t), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if rest := round(t, s); rest != time.Hour {
		t.Errorf("it rests %v after a backup", rest)
	}
	for range 2 { // the second step finds nothing due
		found := kept(t, s)
		if len(found) != 2 || found[0].Taken.Before(now.Truncate(time.Millisecond)) ||
			!found[1].Taken.Equal(now.Add(-3*time.Hour).UTC().Truncate(time.Millisecond)) {
			t.Errorf("%+v are kept", found)
		}
		if rest := round(t, s); rest <= 0 || rest > time.Hour {
			t.Errorf("it rests %v before the next", rest)
		}
	}
}

// TestOtherClustersBackupsStay: each cluster prunes only its own backups in a shared store.
func TestOtherClustersBackupsStay(t *testing.T) {
	t.Parallel()
	blobs := blobsIn(t, t.TempDir())
	first := keeping(t, blobs, Backups{Every: 1, Keep: 1})
	second := keeping(t, blobs, Backups{Every: 1, Keep: 1})
	of := map[ids.ID]int{}
	for _, s := range []*running{first, second, first, second} {
		round(t, s)
	}
	for _, k := range kept(t, first) {
		of[k.Cluster]++
	}
	if len(of) != 2 || of[fresh(t, first).Cluster().ID] != 1 {
		t.Errorf("%v are kept", of)
	}
}

// TestBackupsMayBeNone: without backups the work rests, and nothing is listed or reported.
func TestBackupsMayBeNone(t *testing.T) {
	t.Parallel()
	for every, blobs := range map[time.Duration]Blobs{0: blobsIn(t, t.TempDir()), time.Hour: nil} {
		s := keeping(t, blobs, Backups{Every: every})
		if rest := round(t, s); rest != noBackups || len(kept(t, s)) != 0 {
			t.Errorf("it rests %v and has %v", rest, kept(t, s))
		}
		if _, shown := gauge(t, s, "shoal_backup_age_seconds", ""); shown {
			t.Error("the age of no backup is shown")
		}
	}
}

// away is a blob store that does not answer.
type away struct{ Blobs }

var errAway = errors.New("the store is away")

func (away) List(context.Context, blobstore.Kind, string, []byte) (blobstore.Page, error) {
	return blobstore.Page{}, errAway
}

// full is a blob store that accepts nothing.
type full struct{ Blobs }

func (full) Put(_ context.Context, _ blobstore.Key, from io.Reader) (blobstore.Written, error) {
	_, _ = from.Read(make([]byte, 1)) // the writer has begun
	return blobstore.Written{}, errAway
}

func TestBackupsThatFailAreTold(t *testing.T) {
	t.Parallel()
	for _, blobs := range []Blobs{away{}, full{blobsIn(t, t.TempDir())}} {
		s := keeping(t, blobs, Backups{Every: 1, Keep: 1})
		if _, err := s.Backups().Step(patient(t), work.Item{}); !errors.Is(err, errAway) {
			t.Errorf("%v, want %v", err, errAway)
		}
		if n, _ := gauge(t, s, "shoal_backup_failures_total", ""); n != 1 {
			t.Errorf("%v failures are told", n)
		}
		if age, shown := gauge(t, s, "shoal_backup_age_seconds", ""); !shown || age > 60 {
			t.Errorf("an age of %v is shown (%v), want the cluster's", age, shown)
		}
	}
}

func TestAgeOfTheNewestBackup(t *testing.T) {
	t.Parallel()
	s := keeping(t, blobsIn(t, t.TempDir()), Backups{Every: 24 * time.Hour, Keep: 7})
	old := s.config.Clock.Now().Add(-time.Hour)
	if _, err := s.scheduled.writeBackup(patient(t), old); err != nil {
		t.Fatal(err)
	}
	round(t, s)
	if age, _ := gauge(t, s, "shoal_backup_age_seconds", ""); age < 3600 || age > 3660 {
		t.Errorf("the newest is %v s old, want an hour", age)
	}
	size, _ := gauge(t, s, "shoal_backup_bytes", "")
	if every, _ := gauge(t, s, "shoal_backup_interval_seconds", ""); size == 0 || every != 86400 {
		t.Errorf("%v bytes, every %v s", size, every)
	}
}

// TestBlobsAreSweptAndCounted: expired blobs are removed, and the rest is counted by kind.
func TestBlobsAreSweptAndCounted(t *testing.T) {
	t.Parallel()
	blobs := &aged{Blobs: blobsIn(t, t.TempDir())}
	s := keeping(t, blobs, Backups{Every: 1, Keep: 1})
	for i, owner := range []string{"ann", "bob"} {
		key := blobstore.Key{Kind: blobstore.Uploads, Owner: owner, ID: "a"}
		content := strings.NewReader(strings.Repeat("x", 10+i))
		if _, err := blobs.Put(patient(t), key, content); err != nil {
			t.Fatal(err)
		}
	}
	round(t, s)
	sweep := func() {
		t.Helper()
		outcome, err := s.Blobs().Step(patient(t), work.Item{})
		if err != nil || outcome.Rest != blobsEvery {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	sweep()
	for name, want := range map[string]float64{"shoal_blob_objects": 2, "shoal_blob_bytes": 21,
		"shoal_blob_largest_customer_bytes": 11} {
		if got, _ := gauge(t, s, name, "uploads"); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if n, _ := gauge(t, s, "shoal_blob_objects", "backups"); n != 1 {
		t.Errorf("%v backups are told", n)
	}
	blobs.by.Store(int64(2 * blobstore.Uploads.Lifetime))
	sweep()
	left, _ := gauge(t, s, "shoal_blob_objects", "uploads")
	gone, _ := gauge(t, s, "shoal_blob_removed_total", "uploads")
	if kept := len(kept(t, s)); left != 0 || gone != 2 || kept != 1 {
		t.Errorf("%v uploads are left, %v are gone, %d backups are kept", left, gone, kept)
	}
}

// TestAWrongClockMovesNoBackupsAndNoBlobs: while a leader's clock is wrong, no blob is removed by
// it. Backups of that time are neither the newest for good nor the first to be removed.
func TestAWrongClockMovesNoBackupsAndNoBlobs(t *testing.T) {
	t.Parallel()
	blobs := blobsIn(t, t.TempDir())
	config := testConfig(t, t.TempDir())
	config.Blobs, config.Backups, config.Metrics = blobs, Backups{Every: 1, Keep: 2},
		telemetry.NewMetrics()
	offset := filepath.Join(t.TempDir(), "offset")
	config.Clock = skew.FromEnv(func(string) string { return offset })
	s := serve(t, config)
	until(t, "a leadership", s.Backups().Ready)
	upload := blobstore.Key{Kind: blobstore.Uploads, Owner: "ann", ID: "a"}
	if _, err := blobs.Put(patient(t), upload, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{0, 90 * 24 * time.Hour, -90 * 24 * time.Hour, 0} {
		if err := skew.Set(offset, by); err != nil {
			t.Fatal(err)
		}
		until(t, "the jump", func() bool {
			return (time.Until(config.Clock.Now().Round(0)) - by).Abs() < time.Hour
		})
		before := kept(t, s)
		until(t, "the next millisecond", func() bool {
			return len(before) == 0 || s.holder.Clocks().Now().After(before[0].Taken)
		})
		round(t, s)
		after := kept(t, s)
		if len(after) == 0 || time.Since(after[0].Taken).Abs() > time.Minute ||
			len(before) > 0 && (len(after) != 2 || after[1] != before[0]) {
			t.Errorf("%v off: %+v are kept, after %+v", by, after, before)
		}
		if _, err := s.Blobs().Step(patient(t), work.Item{}); err != nil {
			t.Fatal(err)
		}
		if left, _ := gauge(t, s, "shoal_blob_objects", "uploads"); left != 1 {
			t.Errorf("%v off: %v uploads are left", by, left)
		}
	}
}

// TestSweepsGoOn: a kind that cannot be read does not stop the sweep of the others.
func TestSweepsGoOn(t *testing.T) {
	t.Parallel()
	s := keeping(t, broken{blobsIn(t, t.TempDir())}, Backups{})
	if _, err := s.Blobs().Step(patient(t), work.Item{}); !errors.Is(err, errAway) {
		t.Errorf("%v, want %v", err, errAway)
	}
	if _, shown := gauge(t, s, "shoal_blob_objects", "backups"); !shown {
		t.Error("the backups are not counted")
	}
	if _, shown := gauge(t, s, "shoal_blob_objects", "uploads"); shown {
		t.Error("uploads are counted")
	}
}

// broken is a blob store whose uploads cannot be read.
type broken struct{ Blobs }

func (b broken) Sweep(ctx context.Context, kind blobstore.Kind,
	how blobstore.Sweeping) (blobstore.Tally, error) {
	if kind == blobstore.Uploads {
		return blobstore.Tally{}, errAway
	}
	return b.Blobs.Sweep(ctx, kind, how)
}

// aged is a blob store in which everything seems older than it is.
type aged struct {
	Blobs
	by atomic.Int64
}

func (a *aged) Sweep(ctx context.Context, kind blobstore.Kind,
	how blobstore.Sweeping) (blobstore.Tally, error) {
	how.Now = how.Now.Add(time.Duration(a.by.Load()))
	return a.Blobs.Sweep(ctx, kind, how)
}

// gauge returns the value of a metric for a kind ("": without kind), and whether it exists.
func gauge(t *testing.T, s *running, name, kind string) (value float64, shown bool) {
	t.Helper()
	families, err := s.config.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); kind == "" || labels[0].GetValue() == kind {
				value += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				shown = true
			}
		}
	}
	return value, shown
}
