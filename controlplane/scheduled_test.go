package controlplane

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

// blobsIn opens blobs in a directory, until the test ends.
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

// keeping is a server that leads and keeps backups.
func keeping(t *testing.T, how Backups) *running {
	t.Helper()
	config := testConfig(t, t.TempDir())
	config.Backups, config.Metrics = how, telemetry.NewMetrics()
	s := serve(t, config)
	kind := s.Backups()
	until(t, "a leadership", kind.Ready)
	return s
}

// round makes a step of the work, and says for how long it rests then.
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
	s := keeping(t, Backups{Blobs: blobsIn(t, t.TempDir()), Every: 1, Keep: 7})
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

// TestBackupsAreTakenWhenDue: none before its time, and none twice for a time.
func TestBackupsAreTakenWhenDue(t *testing.T) {
	t.Parallel()
	s := keeping(t, Backups{Blobs: blobsIn(t, t.TempDir()), Every: time.Hour, Keep: 2})
	if rest := round(t, s); rest <= 0 || rest > time.Hour || len(kept(t, s)) != 0 {
		t.Errorf("a cluster that is new rests %v and has %v", rest, kept(t, s))
	}
	now := s.config.Clock.Now()
	for _, age := range []time.Duration{5 * time.Hour, 4 * time.Hour, 3 * time.Hour} {
		if _, err := s.scheduled.take(patient(t), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if rest := round(t, s); rest != time.Hour {
		t.Errorf("it rests %v after a backup", rest)
	}
	for range 2 { // the second finds nothing due
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

// TestOtherClustersBackupsStay: a store that clusters share is pruned by each for itself.
func TestOtherClustersBackupsStay(t *testing.T) {
	t.Parallel()
	blobs := blobsIn(t, t.TempDir())
	first := keeping(t, Backups{Blobs: blobs, Every: 1, Keep: 1})
	second := keeping(t, Backups{Blobs: blobs, Every: 1, Keep: 1})
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

// TestBackupsMayBeNone: the work rests, nothing is listed and nothing is told.
func TestBackupsMayBeNone(t *testing.T) {
	t.Parallel()
	for _, how := range []Backups{{}, {Every: time.Hour},
		{Blobs: blobsIn(t, t.TempDir()), Every: 0}} {
		s := keeping(t, how)
		if rest := round(t, s); rest != noBackups || len(kept(t, s)) != 0 {
			t.Errorf("it rests %v and has %v", rest, kept(t, s))
		}
		if _, shown := gauge(t, s, "shoal_backup_age_seconds"); shown {
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

// full is one that takes nothing.
type full struct{ Blobs }

func (full) Put(_ context.Context, _ blobstore.Key, from io.Reader) (blobstore.Written, error) {
	_, _ = from.Read(make([]byte, 1)) // the writer has begun
	return blobstore.Written{}, errAway
}

func TestBackupsThatFailAreTold(t *testing.T) {
	t.Parallel()
	for _, blobs := range []Blobs{away{}, full{blobsIn(t, t.TempDir())}} {
		s := keeping(t, Backups{Blobs: blobs, Every: 1, Keep: 1})
		if _, err := s.Backups().Step(patient(t), work.Item{}); !errors.Is(err, errAway) {
			t.Errorf("%v, want %v", err, errAway)
		}
		if n, _ := gauge(t, s, "shoal_backup_failures_total"); n != 1 {
			t.Errorf("%v failures are told", n)
		}
		if age, shown := gauge(t, s, "shoal_backup_age_seconds"); !shown || age > 60 {
			t.Errorf("an age of %v is shown (%v), want the cluster's", age, shown)
		}
	}
}

func TestAgeOfTheNewestBackup(t *testing.T) {
	t.Parallel()
	s := keeping(t, Backups{Blobs: blobsIn(t, t.TempDir()), Every: 24 * time.Hour, Keep: 7})
	old := s.config.Clock.Now().Add(-time.Hour)
	if _, err := s.scheduled.take(patient(t), old); err != nil {
		t.Fatal(err)
	}
	round(t, s)
	if age, _ := gauge(t, s, "shoal_backup_age_seconds"); age < 3600 || age > 3660 {
		t.Errorf("the newest is %v s old, want an hour", age)
	}
	size, _ := gauge(t, s, "shoal_backup_bytes")
	if every, _ := gauge(t, s, "shoal_backup_interval_seconds"); size == 0 || every != 86400 {
		t.Errorf("%v bytes, every %v s", size, every)
	}
}

// gauge is the value of a metric, and whether there is one.
func gauge(t *testing.T, s *running, name string) (float64, bool) {
	t.Helper()
	families, err := s.config.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			metric := family.GetMetric()[0]
			return metric.GetGauge().GetValue() + metric.GetCounter().GetValue(), true
		}
	}
	return 0, false
}
