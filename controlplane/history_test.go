package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
)

// pastStore accepts no history while it is away. Its answers may be lost.
type pastStore struct {
	*lists
	away, deaf atomic.Bool
	tried      atomic.Int64
	ends       atomic.Uint64 // its history is lost behind this index; 0: nothing is lost
	trailLost  atomic.Bool   // its audit trail is lost
	mu         sync.Mutex
	expired    time.Time // bound of the last removal of runs
}

var errNoHistory = errors.New("the row store is away")

// PutPast implements leadership.Store.
func (s *pastStore) PutPast(ctx context.Context, runs []rowstore.PastRun,
	entries []rowstore.PastEntry) error {
	s.tried.Add(1)
	if s.away.Load() {
		return errNoHistory
	}
	err := s.lists.PutPast(ctx, runs, entries)
	if s.deaf.Load() {
		return errNoHistory
	}
	return err
}

// ExpirePast implements leadership.Store.
func (s *pastStore) ExpirePast(ctx context.Context, before time.Time) error {
	s.mu.Lock()
	s.expired = before
	s.mu.Unlock()
	return s.lists.ExpirePast(ctx, before)
}

// PastHead implements leadership.Store.
func (s *pastStore) PastHead(ctx context.Context, path rowstore.Path) (uint64, error) {
	head, err := s.lists.PastHead(ctx, path)
	if ends := s.ends.Load(); ends > 0 {
		head = min(head, ends)
	}
	return head, err
}

// AuditHead implements leadership.Store.
func (s *pastStore) AuditHead(ctx context.Context, path rowstore.Path) (uint64, error) {
	if s.trailLost.Load() {
		return 0, nil
	}
	return s.lists.AuditHead(ctx, path)
}

// archivist is a server that soon archives all of its ended runs and entries. Its state keeps as
// many of them as it is told to.
type archivist struct {
	*testing.T
	*running
	config   Config
	store    *pastStore
	customer string
	scraper  ids.ID
}

func newArchivist(t *testing.T, at clock.Clock, keep int) *archivist {
	config := testConfig(t, t.TempDir())
	h := &archivist{T: t, store: &pastStore{lists: newLists()}}
	config.Clock, config.Store, config.Metrics = at, h.store, telemetry.NewMetrics()
	config.ArchiveEvery, config.ArchiveKeep = time.Millisecond, keep
	h.config = config
	h.running = serve(t, config)
	h.customer, h.scraper = prepare(t, h.running, config)
	return h
}

// run launches a run and stops it at once.
func (h *archivist) run() ids.ID {
	h.Helper()
	config := h.config
	config.Store = h.store.lists
	job := launch(h.T, h.running, config, h.customer, h.scraper, 1)
	_, err := client.Do(patient(h.T), h, client.StopRun{Customer: h.customer, Job: job}, nil)
	if err != nil {
		h.Fatal(err)
	}
	return job
}

// archived waits until the archive has all that has ended, and returns that view.
func (h *archivist) archived() *client.View {
	h.Helper()
	view := fresh(h.T, h)
	until(h.T, "the archive", func() bool {
		if manual, is := h.config.Clock.(*clock.Manual); is {
			manual.Advance(time.Second)
		}
		view = fresh(h.T, h)
		left := 0
		view.CustomerJobs(h.customer, func(job *client.Job) bool {
			if !view.Archived(job) {
				left++
			}
			return true
		})
		view.Entries(h.customer, func(entry *client.Entry) bool {
			if !view.ArchivedEntry(entry) {
				left++
			}
			return true
		})
		return left == 0
	})
	return view
}

// wants checks that the history has exactly these runs, in order. The ledger must have an entry for
// each, besides the deposits, and the wallet must have their sum.
func (h *archivist) wants(view *client.View, want ...ids.ID) {
	h.Helper()
	history := client.NewHistory(h.store.lists)
	runs, err := history.RunsBefore(h.Context(), view, client.RunsOf{Customer: h.customer}, nil,
		len(want)+10)
	if err != nil {
		h.Fatal(err)
	}
	var got []ids.ID
	for _, run := range runs {
		got = append(got, run.ID)
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		h.Errorf("the history has %v, want %v", got, want)
	}
	entries, total, err := history.Entries(h.Context(), view, h.customer, rowstore.PastSpan{}, 0,
		len(want)+10)
	if err != nil {
		h.Fatal(err)
	}
	sum, theirs := int64(0), 0
	for _, entry := range entries {
		sum += entry.Amount
		if slices.Contains(want, entry.Job) {
			theirs++
		}
	}
	if wallet := view.Wallet(h.customer); theirs != len(want) || int(total) != len(entries) ||
		sum != wallet.Sealed || sum != wallet.ArchivedSum {
		h.Errorf("%d of %d entries are of %d runs, and sum up to %d; %+v", theirs, total, len(want),
			sum, wallet)
	}
}

// TestHistoryOutlivesAStoreThatIsAway: while the row store is down for a day, the state grows, and
// a metric shows how far the archive lags. After lost answers, a kill and a restart, nothing is
// missing and nothing is there twice.
func TestHistoryOutlivesAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	at := clock.NewManual(time.Now())
	h := newArchivist(t, at, 0)
	runs := []ids.ID{h.run()}
	h.wants(h.archived(), slices.Clone(runs)...)
	tries := func() {
		t.Helper()
		before := h.store.tried.Load()
		until(t, "another try", func() bool {
			at.Advance(time.Second)
			return h.store.tried.Load() > before
		})
	}
	end := func() {
		t.Helper()
		run := h.run()
		runs = append(runs, run)
		until(t, "the run's end", func() bool { return fresh(t, h).Job(run).Closed })
	}
	h.store.away.Store(true)
	for range 24 {
		end()
		at.Advance(time.Hour)
	}
	tries()
	if age, _ := gauge(t, h.running, "shoal_archive_age_seconds", ""); age < 23*3600 {
		t.Errorf("after a day the archive is %v s behind", age)
	}
	left := 0
	fresh(t, h).CustomerJobs(h.customer, func(*client.Job) bool { left++; return true })
	if left != 24 {
		t.Errorf("the state has %d runs that are nowhere else, want 24", left)
	}
	h.store.away.Store(false)
	h.store.deaf.Store(true)
	tries()
	end() // otherwise the log that is copied is still being written
	tries()
	killed := h.config
	killed.Dir, killed.Metrics = t.TempDir(), telemetry.NewMetrics()
	if err := os.CopyFS(killed.Dir, os.DirFS(h.config.Dir)); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.store.deaf.Store(false)
	h.config, h.running = killed, serve(t, killed)
	h.wants(h.archived(), slices.Clone(runs)...)
	if age, _ := gauge(t, h.running, "shoal_archive_age_seconds", ""); age != 0 {
		t.Errorf("in the end the archive is %v s behind", age)
	}
}

// TestEntriesAloneAreBehind: an entry without a run waits for a store that takes no history, while
// the audit trail goes there. The metric shows how long.
func TestEntriesAloneAreBehind(t *testing.T) {
	t.Parallel()
	at := clock.NewManual(time.Now())
	h := newArchivist(t, at, 0)
	h.archived()
	h.store.away.Store(true)
	if _, err := client.Do(patient(t), h, client.AdjustWallet{Customer: h.customer,
		Entry: h.config.IDs.New(), Amount: 1}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "the trail's end", func() bool {
		at.Advance(time.Minute)
		waiting := false
		fresh(t, h).EachAudit(func(*client.AuditEntry) bool { waiting = true; return false })
		return !waiting
	})
	at.Advance(24 * time.Hour)
	if age, _ := gauge(t, h.running, "shoal_archive_age_seconds", ""); age < 23*3600 {
		t.Errorf("after a day the archive is %v s behind", age)
	}
}

// TestHistoryOverRestores restores a backup, an older one, and the first one again. Runs end after
// each restore. The history always matches the state.
func TestHistoryOverRestores(t *testing.T) {
	t.Parallel()
	h := newArchivist(t, clock.System{}, 0)
	back := func(file []byte) {
		t.Helper()
		if _, err := restore(t, h.running, file, false); err != nil {
			t.Fatal(err)
		}
	}
	first := h.run()
	h.archived()
	older := backupOf(t, h.running)
	second := h.run()
	h.archived()
	newer := backupOf(t, h.running)
	third := h.run()
	h.wants(h.archived(), first, second, third)
	back(newer)
	fourth := h.run()
	h.wants(h.archived(), first, second, fourth)
	back(older)
	fifth := h.run()
	h.wants(h.archived(), first, fifth)
	back(newer)
	sixth := h.run()
	h.wants(h.archived(), first, second, sixth)
}

// TestABackupWantsItsHistory: a backup names how far the archive was. A row store that ends earlier
// is refused. A forced restore says what is missing.
func TestABackupWantsItsHistory(t *testing.T) {
	t.Parallel()
	h := newArchivist(t, clock.System{}, 0)
	h.run()
	h.archived()
	older := backupOf(t, h.running)
	h.run()
	h.archived()
	until(t, "the archived trail", func() bool { return fresh(t, h).AuditHead().Archived > 0 })
	newer := backupOf(t, h.running)
	h.store.ends.Store(fresh(t, h).ArchivedTo() - 1)
	for _, test := range []struct {
		file      []byte
		trailLost bool
		force     bool
		want      string
		lacks     int
	}{{newer, false, false, "invalid_backup", 0}, {older, false, false, "", 0},
		{newer, false, true, "", 1}, {older, false, true, "", 0},
		{newer, true, false, "invalid_backup", 0}, {newer, true, true, "", 2}} {
		h.store.trailLost.Store(test.trailLost)
		restored, err := restore(t, h.running, test.file, test.force)
		if codeOf(err) != test.want || len(restored.Lacks) != test.lacks {
			t.Errorf("forced %v: %v, want %q; it lacks %q, want %d", test.force, err, test.want,
				restored.Lacks, test.lacks)
		}
		if err == nil {
			h.run() // waits for the next leadership
		}
	}
}

// TestHistoryExpiresByItsSetting: ended runs expire by the operators' setting, or by the leader's
// configuration until there is one. So do those that the state keeps beside the archive. The ledger
// stays.
func TestHistoryExpiresByItsSetting(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{0, 10} {
		t.Run(fmt.Sprint("with ", keep, " kept"), func(t *testing.T) {
			t.Parallel()
			testHistoryExpires(t, keep)
		})
	}
}

func testHistoryExpires(t *testing.T, keep int) {
	at := clock.NewManual(time.Now())
	h := newArchivist(t, at, keep)
	job := h.run()
	h.wants(h.archived(), job)
	expires := func(days int) {
		t.Helper()
		until(t, "an expiry", func() bool {
			at.Advance(time.Hour)
			h.store.mu.Lock()
			defer h.store.mu.Unlock()
			kept := at.Now().Sub(h.store.expired)
			return kept > time.Duration(days)*24*time.Hour-time.Minute &&
				kept < time.Duration(days)*24*time.Hour+25*time.Hour
		})
	}
	expires(400)
	days := uint32(90)
	if _, err := client.Do(patient(t), h, client.PutSettings{HistoryDays: &days},
		nil); err != nil {
		t.Fatal(err)
	}
	expires(90)
	for range 92 {
		at.Advance(24 * time.Hour)
	}
	history, view := client.NewHistory(h.store.lists), fresh(t, h)
	until(t, "the run's end", func() bool {
		at.Advance(time.Hour)
		view = fresh(t, h)
		run, err := history.Run(t.Context(), view, job)
		return err == nil && run == nil
	})
	entries, _, err := history.Entries(t.Context(), view, h.customer, rowstore.PastSpan{}, 0, 10)
	if err != nil || !slices.ContainsFunc(entries, func(e *client.Entry) bool {
		return e.Job == job
	}) {
		t.Errorf("the ledger has %d entries, %v", len(entries), err)
	}
}
