package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

func backupOf(t *testing.T, s *running) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := s.Operator().Backup(patient(t), &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// restore restores a backup. It asks again while the outcome is not known, or while the next
// leadership has not begun.
func restore(t *testing.T, r *running, file []byte, force bool) (restored client.Restored,
	err error) {
	t.Helper()
	until(t, "an answer to a restore", func() bool {
		restored, err = r.Operator().Restore(patient(t), bytes.NewReader(file),
			client.RestoreOptions{Force: force})
		return codeOf(err) != "unavailable"
	})
	return restored, err
}

func TestBackupIsRestored(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	s := serve(t, config)
	openCustomer(t, s, "ann")
	file := backupOf(t, s)
	openCustomer(t, s, "bob")
	before := fresh(t, s)
	restored, err := s.Operator().Restore(patient(t), bytes.NewReader(file),
		client.RestoreOptions{})
	if err != nil || restored.Cluster != before.Cluster().ID || restored.Index == 0 {
		t.Fatalf("%+v, %v", restored, err)
	}
	view := fresh(t, s)
	if view.Customer("ann") == nil || view.Customer("bob") != nil {
		t.Fatal("the state is not that of the backup")
	}
	if view.Cluster().ID != before.Cluster().ID || view.Node(config.Node) == nil {
		t.Fatal("the cluster's own records are not kept")
	}
	openCustomer(t, s, "bob")
	s.stop()
	if fresh(t, serve(t, config)).Customer("bob") == nil {
		t.Fatal("what was written after the restore is lost")
	}
}

func TestWrongBackupsAreRefused(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	s := serve(t, config)
	openCustomer(t, s, "ann")
	file := backupOf(t, s)
	other := serve(t, testConfig(t, t.TempDir()))
	openCustomer(t, other, "bob")
	theirs := backupOf(t, other)
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing": {nil, "invalid_backup"},
		"text":    {[]byte("a backup, really"), "invalid_backup"},
		"cut off": {file[:len(file)-1], "invalid_backup"},
		"damaged": {append(bytes.Clone(file[:len(file)-40]), make([]byte, 40)...),
			"invalid_backup"},
		"another cluster's": {theirs, "other_cluster"},
	} {
		if _, err := s.Operator().Restore(patient(t), bytes.NewReader(c.file),
			client.RestoreOptions{}); codeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	if _, err := s.Operator().Restore(patient(t), iotest.ErrReader(os.ErrDeadlineExceeded),
		client.RestoreOptions{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a broken connection: %v", err)
	}
	if fresh(t, s).Customer("ann") == nil {
		t.Fatal("a refused backup changed something")
	}
	own := fresh(t, s).Cluster().ID
	if _, err := s.Operator().Restore(patient(t), bytes.NewReader(theirs),
		client.RestoreOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	view := fresh(t, s)
	if view.Customer("bob") == nil || view.Customer("ann") != nil || view.Cluster().ID != own {
		t.Fatal("another cluster's backup is not what is there after it was forced")
	}
	if left, err := filepath.Glob(filepath.Join(config.Dir, spoolPattern)); err != nil ||
		len(left) > 0 {
		t.Fatalf("files are left: %v, %v", left, err)
	}
}

func TestBackupThatCannotBeWrittenFails(t *testing.T) {
	t.Parallel()
	s := serve(t, testConfig(t, t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Operator().Backup(ctx, &bytes.Buffer{}); err == nil {
		t.Fatal("a backup that nobody waits for is written")
	}
}

// A backup is restored through a follower while a client writes through every node. Afterwards all
// nodes have one state: the backup's, plus what was written since the restore.
func TestRestoreUnderLoad(t *testing.T) {
	t.Parallel()
	r := newReef(t)
	r.autopilot.NonvoterGrace = time.Hour
	r.found("a")
	r.add("b", identity.Roles()...)
	r.add("c", identity.Roles()...)
	api := r.add("api", identity.APIServer)
	r.untilServers("a* api b* c*")
	openCustomer(t, api, "kept")

	ctx, end := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var writes atomic.Int64
	for name, node := range r.nodes {
		work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				within, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				_, err := client.Do(within, node,
					named(fmt.Sprint(name, "-", n)), nil)
				cancel()
				if err != nil {
					t.Errorf("a write through %s: %v", name, err)
					return
				}
				writes.Add(1)
			}
		})
	}
	more := func(n int64) {
		t.Helper()
		want := writes.Load() + n
		r.until("writes go on", func() bool { return writes.Load() >= want || t.Failed() })
	}
	more(20)
	file := backupOf(t, api)
	more(50)
	marker := openCustomer(t, api, "undone")
	if _, err := restore(t, api, file, false); err != nil {
		t.Fatal(err)
	}
	if view := fresh(t, api); view.Customer(marker.Ref) != nil || view.Customer("kept") == nil {
		t.Fatal("the state is not that of the backup")
	}
	more(50)
	end()
	work.Wait()
	r.sameState()
	r.until("all are registered", func() bool { return r.registered() == "a api b c" })
	for name, node := range r.nodes {
		if node.View().Node(name).Boot != node.config.Boot {
			t.Errorf("%s is not registered with this start", name)
		}
	}
}

// A restore must not bring back old owners of shards, or dispatch numbers that were used since.
func TestRestoreKeepsWhoFetchesWhat(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	s := serve(t, config)
	file := backupOf(t, s)
	beat := client.Heartbeat{Node: config.Node, Boot: config.Boot}
	if _, err := s.Heartbeat(patient(t), beat); err != nil {
		t.Fatal(err)
	}
	before, led := fresh(t, s), s.holder.Current()
	if before.Shard(0).Owner != config.Node {
		t.Fatalf("nobody has shard 0: %+v", before.Shard(0))
	}
	if _, err := s.Operator().Restore(patient(t), bytes.NewReader(file),
		client.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	for ctx := patient(t); s.holder.Current() == nil || s.holder.Current() == led; {
		if !clock.Pause(ctx, s.config.Clock, time.Millisecond) {
			t.Fatal("nobody leads")
		}
	}
	if leads := s.holder.Current(); leads.Term() != led.Term() || leads.Began() == led.Began() {
		t.Errorf("markers of before the restore (%d in term %d) are those of the leadership "+
			"since (%d in term %d)",
			led.Began(), led.Term(), leads.Began(), leads.Term())
	}
	for n := range uint16(testShards) {
		if was, is := *before.Shard(n), *fresh(t, s).Shard(n); was != is {
			t.Errorf("shard %d: %+v before, %+v after", n, was, is)
		}
	}
	leases, err := s.Heartbeat(patient(t), beat)
	if err != nil || len(leases.Hold) != testShards {
		t.Fatalf("leases after the restore: %+v, %v", leases, err)
	}
}

// Two nodes send backups at once: one is accepted, the other is refused.
func TestOneUploadAtATime(t *testing.T) {
	t.Parallel()
	s := serve(t, testConfig(t, t.TempDir()))
	peer := identity.Peer{Node: "x"}
	part := func(upload ids.ID, offset int64) string {
		_, err := s.restorer.servePart(t.Context(), peer,
			restorePart{Upload: upload, Offset: offset, Data: []byte("12")})
		return codeOf(err)
	}
	first, second := ids.ID{1}, ids.ID{2}
	if got := part(first, 0) + part(first, 2) + part(first, 2); got != "" {
		t.Fatal(got)
	}
	if got := part(second, 0); got != "unavailable" {
		t.Errorf("a second upload: %q", got)
	}
	if got := part(first, 100); got != "invalid_request" {
		t.Errorf("a part is missing: %q", got)
	}
	if _, err := s.restorer.serve(t.Context(), peer,
		restoreRequest{Upload: first, Size: 9}); codeOf(err) != "unavailable" {
		t.Errorf("an upload that is not whole: %v", err)
	}
	if _, err := s.restorer.serve(t.Context(), peer,
		restoreRequest{Upload: first, Size: 4}); codeOf(err) != "invalid_backup" {
		t.Errorf("an upload that is no state: %v", err)
	}
	if got := part(second, 0); got != "" {
		t.Errorf("an upload after the first: %q", got)
	}
}

func TestRemovedNodeIsForgotten(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	s := serve(t, config)
	gone := command.RegisterNodePayload{Name: "gone", Boot: ids.ID{7}, Roles: []string{"fetcher"}}
	if _, err := s.proposer.propose(patient(t), config.IDs.New(), gone, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{config.Node: "node_alive", "nobody": "not_found"} {
		if err := s.Operator().RemoveNode(patient(t), name); codeOf(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	stale := command.RemoveNodePayload{Name: "gone", Boot: ids.ID{6}}
	if _, err := s.proposer.propose(patient(t), config.IDs.New(), stale, nil); err != nil ||
		fresh(t, s).Node("gone") == nil {
		t.Fatalf("an earlier start's removal took the node away: %v", err)
	}
	if err := s.Operator().RemoveNode(patient(t), "gone"); err != nil ||
		fresh(t, s).Node("gone") != nil {
		t.Fatalf("it is still there: %v", err)
	}
}

// A run that was open at the backup goes on after the restore and ends as it did the first time.
// Pages stored meanwhile are settled from their records, and nothing is charged twice.
func TestOpenRunEndsExactAfterARestore(t *testing.T) {
	t.Parallel()
	const links = 300
	config := testConfig(t, t.TempDir())
	config.Window, config.MarkerEvery = 8, 50*time.Millisecond
	s := serve(t, config)
	customer, scraper := prepare(t, s, config)
	job := launch(t, s, config, customer, scraper, links)
	fetchAll(t, s, config, 0)
	until := func(what string, ok func(*client.View) bool) *client.View {
		t.Helper()
		for ctx := patient(t); ; {
			if view := fresh(t, s); ok(view) {
				return view
			}
			if !clock.Pause(ctx, s.config.Clock, time.Millisecond) {
				t.Fatalf("never: %s; %+v", what, s.View().Job(job))
			}
		}
	}
	until("some links are settled", func(v *client.View) bool { return v.Job(job).Success > 0 })
	file := backupOf(t, s)
	first := until("the run is closed", func(v *client.View) bool { return v.Job(job).Closed })
	if _, err := s.Operator().Restore(patient(t), bytes.NewReader(file),
		client.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if fresh(t, s).Job(job).Closed {
		t.Fatal("the backup was taken too late to show anything")
	}
	second := until("the run is closed again",
		func(v *client.View) bool { return v.Job(job).Closed })
	was, is := *first.Job(job), *second.Job(job)
	if is.Success != links || is.Charged != was.Charged || is.Items != was.Items ||
		is.Pages != was.Pages {
		t.Errorf("the run ended as %+v, and first as %+v", is, was)
	}
	before, after := *first.Wallet(customer), *second.Wallet(customer)
	after.Archived, after.ArchivedSum = before.Archived, before.ArchivedSum // the archive may lag
	if before != after {
		t.Errorf("the wallet is %+v, and was %+v", after, before)
	}
}

// TestWhatAKilledProcessLeftIsRemoved: Raft itself never removes an unfinished snapshot.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	half := filepath.Join(config.Dir, "raft", "snapshots", "2-42-1700000000000.tmp")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(half, "state.bin"),
		filepath.Join(config.Dir, "restore-1.tmp")} {
		if err := os.WriteFile(file, []byte("half of a state"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, config)
	for _, pattern := range []string{spoolPattern, "raft/snapshots/*.tmp"} {
		if left, err := filepath.Glob(filepath.Join(config.Dir, pattern)); err != nil ||
			len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	}
}

// A restore brings back runs that newer ones had replaced. If their rows were removed, it says so.
func TestARestoreSaysWhichRowsAreLost(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	config.MarkerEvery = 50 * time.Millisecond
	store := config.Store.(*lists)
	r := serve(t, config)
	customer, scraper := prepare(t, r, config)
	fetchAll(t, r, config, 0)
	replaced := finished(t, r, launch(t, r, config, customer, scraper, 3))
	if replaced.Items == 0 {
		t.Fatal("the run has no rows")
	}
	file := backupOf(t, r)
	for _, lost := range []bool{false, true} {
		finished(t, r, launch(t, r, config, customer, scraper, 3))
		store.mu.Lock()
		store.emptied[replaced.ID] = lost
		store.mu.Unlock()
		restored, err := r.Operator().Restore(patient(t), bytes.NewReader(file),
			client.RestoreOptions{})
		if err != nil || restored.Changes.Undone == 0 {
			t.Fatalf("%+v, %v", restored, err)
		}
		if said := strings.Contains(strings.Join(restored.Lacks, "; "),
			replaced.ID.String()); said != lost {
			t.Errorf("lost %v: it lacks %q", lost, restored.Lacks)
		}
	}
}

// What was launched after the backup stays in the row store until the grace is over. Then it is
// removed, even if the leader is stopped meanwhile. Lists stay as long.
func TestWhatWasUndoneGoesAfterAGrace(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	store, at := config.Store.(*lists), clock.NewManual(time.Now())
	config.Clock, config.Blobs = at, blobsIn(t, t.TempDir())
	s := serve(t, config)
	customer, scraper := prepare(t, s, config)
	kept := launch(t, s, config, customer, scraper, 3)
	end := func(job ids.ID) {
		t.Helper()
		if _, err := client.Do(patient(t), s, client.StopRun{Customer: customer, Job: job},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	end(kept)
	file := backupOf(t, s)
	undone := launch(t, s, config, customer, scraper, 3)
	list := fresh(t, s).Job(undone).List
	store.mu.Lock()
	store.records[undone] = map[model.Unit]model.Receipt{{}: {}}
	store.mu.Unlock()
	for _, job := range []ids.ID{kept, undone} {
		pack := bodies.Pack{Group: fresh(t, s).Scraper(scraper).Group, Scraper: scraper, Job: job,
			ID: config.IDs.New(), Days: 30}
		if _, err := config.Blobs.Put(patient(t), pack.Key(customer),
			strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	packs := func() (of []ids.ID) {
		t.Helper()
		page, err := config.Blobs.List(patient(t), blobstore.Bodies, customer, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Blobs {
			if p, ok := bodies.ParsePack(info.Key); ok {
				of = append(of, p.Job)
			}
		}
		return of
	}
	restored, err := s.Operator().Restore(patient(t), bytes.NewReader(file),
		client.RestoreOptions{})
	if err != nil || restored.Changes.Undone != 1 ||
		restored.Until < at.Now().Add(config.RestoreGrace-time.Minute).UnixMilli() {
		t.Fatalf("%+v, %v", restored, err)
	}
	if jobs := fresh(t, s).UndoneIn(fresh(t, s).Scraper(scraper).Group); len(jobs) != 1 ||
		jobs[0] != undone {
		t.Fatalf("undone are %v", jobs)
	}
	emptied := func() bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.emptied[undone]
	}
	sweep := func() {
		if _, err := s.Orphans().Step(patient(t), work.Item{}); err != nil {
			t.Log(err) // there may be no leader
		}
	}
	for range 30 { // half an hour, so that every routine runs
		at.Advance(time.Minute)
		fresh(t, s)
		sweep()
	}
	if emptied() || !store.has(list) || len(packs()) != 2 {
		t.Fatal("something went within the grace")
	}
	at.Advance(config.RestoreGrace)
	until(t, "the rows' end", func() bool {
		at.Advance(time.Minute)
		sweep()
		return emptied() &&
			!store.has(list)
	})
	until(t, "the note's end",
		func() bool { at.Advance(time.Second); return fresh(t, s).UndoneRun(undone) == nil })
	if left := packs(); len(left) != 1 || left[0] != kept {
		t.Errorf("kept bodies are left of the runs %v, want those of %s", left, kept)
	}
	if fresh(t, s).Job(kept) == nil || store.emptied[kept] {
		t.Fatal("a run of before the cut is gone")
	}
}
