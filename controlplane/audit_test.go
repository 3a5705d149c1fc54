package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/rowstore"
)

// byRoot returns a context that proposes as an admin.
func byRoot(t *testing.T) context.Context {
	return client.WithActor(patient(t), &client.Actor{Subject: "root", Admin: true,
		Customer: "root", Operation: "svc_x"})
}

// blocks blocks and unblocks a customer, which makes two audit entries.
func blocks(t *testing.T, s *running, customer string) {
	t.Helper()
	_, err := client.Do(byRoot(t), s.Client, client.BlockCustomer{Customer: customer, By: "root"},
		nil)
	if err == nil {
		_, err = client.Do(byRoot(t), s.Client, client.UnblockCustomer{Customer: customer}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// archivedTrail waits until the archive has the whole trail, and checks that each entry is there
// once and chained to the one before.
func archivedTrail(t *testing.T, s *running, config Config, want uint64) {
	t.Helper()
	var view *client.View
	for ctx := patient(t); ; {
		view = fresh(t, s)
		if head := view.AuditHead(); head.Waiting == 0 && head.Number >= want {
			break
		}
		if !clock.Pause(ctx, s.config.Clock, time.Millisecond) {
			t.Fatalf("never archived: %+v", view.AuditHead())
		}
	}
	records, err := config.Store.(trailStore).Audit(t.Context(), rowstore.AuditQuery{
		Path: archive.AuditPath(view), Limit: rowstore.MaxPast})
	if err != nil {
		t.Fatal(err)
	}
	var before [32]byte
	for i, record := range records {
		e, err := archive.DecodeAudit(record)
		if err != nil {
			t.Fatal(err)
		}
		if e.Number != uint64(i+1) || e.Before != before {
			t.Fatalf("entry %d does not follow the one before: %+v", i+1, e)
		}
		before = record.Hash
	}
	if head := view.AuditHead(); uint64(len(records)) != want || head.Hash != before ||
		head.Archived != want {
		t.Errorf("%d entries are archived, want %d; %+v", len(records), want, head)
	}
}

// trailStore reads the archived trail.
type trailStore interface {
	Audit(ctx context.Context, q rowstore.AuditQuery) ([]rowstore.AuditRecord, error)
}

// awayStore accepts no audit entries while it is away. Its answers may be lost.
type awayStore struct {
	*lists
	away, deaf atomic.Bool
	tried      atomic.Int64
}

var errNoTrail = errors.New("the row store is away")

// PutAudit implements leadership.Store.
func (s *awayStore) PutAudit(ctx context.Context, entries []rowstore.AuditRecord) error {
	s.tried.Add(1)
	if s.away.Load() {
		return errNoTrail
	}
	err := s.lists.PutAudit(ctx, entries)
	if s.deaf.Load() {
		return errNoTrail
	}
	return err
}

// The trail is archived exactly once, despite a store that is down, lost answers, a kill and a
// restart.
func TestTheTrailIsArchivedOnce(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	store := &awayStore{lists: newLists()}
	config.Store, config.ArchiveEvery = store, time.Millisecond
	store.away.Store(true)
	s := serve(t, config)
	openCustomer(t, s, "ann")
	blocks(t, s, "ann")
	tries := func(n int64) {
		t.Helper()
		for ctx, from := patient(t), store.tried.Load(); store.tried.Load() < from+n; {
			if !clock.Pause(ctx, s.config.Clock, time.Millisecond) {
				t.Fatal("the archive is not tried again")
			}
		}
	}
	tries(1)
	if head := fresh(t, s).AuditHead(); head.Waiting != 2 || head.Archived != 0 {
		t.Errorf("with the store away: %+v", head)
	}
	store.away.Store(false)
	store.deaf.Store(true)
	tries(1)
	blocks(t, s, "ann")
	if head := fresh(t, s).AuditHead(); head.Waiting != 4 {
		t.Errorf("with its answers lost: %+v", head)
	}
	killed := config
	killed.Dir = t.TempDir()
	if err := os.CopyFS(killed.Dir, os.DirFS(config.Dir)); err != nil {
		t.Fatal(err)
	}
	s.stop()
	store.deaf.Store(false)
	again := serve(t, killed)
	archivedTrail(t, again, config, 4)
	blocks(t, again, "ann")
	archivedTrail(t, again, config, 6)
	again.stop()
	archivedTrail(t, serve(t, killed), config, 6)
}

// After a restore the trail continues from the backup's end, and the archive gets the entries left
// behind. A backup whose trail the row store has lost is refused.
func TestTheTrailOutlivesARestore(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.ArchiveEvery = time.Millisecond
	s := serve(t, config)
	openCustomer(t, s, "ann")
	blocks(t, s, "ann")
	archivedTrail(t, s, config, 2)
	file := backupOf(t, s)
	blocks(t, s, "ann")
	left := fresh(t, s)
	if _, err := s.Operator().Restore(byRoot(t), bytes.NewReader(file),
		client.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	blocks(t, s, "ann")
	archivedTrail(t, s, config, 5)
	history := client.NewHistory(config.Store.(client.Past))
	found, err := history.Audit(t.Context(), fresh(t, s), rowstore.AuditQuery{Limit: 10})
	if err != nil || len(found) != 5 {
		t.Fatalf("%d entries, %v", len(found), err)
	}
	restore := found[2]
	if restore.Restored == nil || restore.Restored.Hash != left.AuditHead().Hash ||
		restore.Actor.Subject != "root" || restore.Generation == found[1].Generation {
		t.Errorf("the restore: %+v", restore.AuditEntry)
	}
	behind, err := config.Store.(trailStore).Audit(t.Context(), rowstore.AuditQuery{
		Path: archive.AuditPath(left), Limit: 10})
	if err != nil || len(behind) != 4 || behind[3].Hash != left.AuditHead().Hash {
		t.Errorf("%d entries of the state that was replaced, %v", len(behind), err)
	}
	s.stop()
	config.Store = newLists() // has lost everything
	config.Dir = t.TempDir()
	other := serve(t, config)
	_, err = other.Operator().Restore(byRoot(t), bytes.NewReader(file),
		client.RestoreOptions{Force: false})
	if code := codeOf(err); code != "other_cluster" && code != "invalid_backup" {
		t.Errorf("a row store without the trail: %v", fmt.Sprint(err))
	}
}
