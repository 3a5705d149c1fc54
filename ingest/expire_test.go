package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/work"
)

// failing is a row store whose removals may fail.
type failing struct {
	*sqlite.Store
	before time.Time
	times  int
	fail   error
}

func (f *failing) Expire(ctx context.Context, before time.Time) error {
	f.before, f.times = before, f.times+1
	if f.fail != nil {
		return f.fail
	}
	return f.Store.Expire(ctx, before)
}

func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func always(ids.ID) bool { return true }

// TestRowsExpireBySafeTime: a node's own clock removes nothing.
func TestRowsExpireBySafeTime(t *testing.T) {
	store := failing{Store: openStore(t)}
	now, unsure := time.Unix(1_700_000_000, 0), errors.New("the clocks differ")
	safe := func(context.Context) (time.Time, error) { return now, unsure }
	kind := Expiry(ExpiryConfig{Store: &store, Safe: safe, Reruns: always})
	if kind.Name != work.Expire || !kind.Recurring {
		t.Fatalf("%+v", kind)
	}
	if _, err := kind.Step(t.Context(), work.Item{}); !errors.Is(err, unsure) || store.times > 0 {
		t.Errorf("while nobody knows the time: %v, removed %d times", err, store.times)
	}
	unsure = nil
	want := now.Add(-rowstore.Expiry)
	// The time is noted before anything is removed, so that no read finds half a run.
	noted, err := kind.Step(t.Context(), work.Item{})
	if err != nil || noted.End != work.Rested || noted.Rest != 0 || store.times > 0 ||
		rowstore.ReadExpiry(noted.Progress) != want.UnixMicro() {
		t.Fatalf("%+v, %v, removed %d times", noted, err, store.times)
	}
	item := work.Item{Progress: noted.Progress}
	store.fail = errors.New("down")
	if _, err := kind.Step(t.Context(), item); !errors.Is(err, store.fail) {
		t.Errorf("without the row store: %v", err)
	}
	store.fail = nil
	now = now.Add(time.Minute) // not noted yet
	rests, err := kind.Step(t.Context(), item)
	if err != nil || rests.End != work.Rested || rests.Rest != time.Hour {
		t.Errorf("%+v, %v", rests, err)
	}
	if !store.before.Equal(want) {
		t.Errorf("rows of before %v are removed, want %v", store.before, want)
	}
	if since := rowstore.ReadExpiry(rests.Progress); since != want.UnixMicro() {
		t.Errorf("what is shown begins at %d, want %d", since, want.UnixMicro())
	}
}

// runs are several runs that are too old, each with pages, and one that is not.
type runs struct {
	*ids.Random
	now   time.Time
	group ids.ID
	store *sqlite.Store
}

func newRuns(t *testing.T) *runs {
	t.Helper()
	r := &runs{now: time.Unix(1_700_000_000, 0), store: openStore(t)}
	r.Random = &ids.Random{Now: func() time.Time { return r.now }}
	r.group = r.New()
	return r
}

// noted is the work after the time has been noted.
func (r *runs) noted() work.Item {
	return work.Item{Progress: rowstore.NoteExpiry(r.now.Add(-rowstore.Expiry))}
}

func (r *runs) started(age time.Duration) rowstore.Job {
	return rowstore.Job{ID: r.New(), Customer: "ann", Group: r.group, Scraper: r.New(),
		Started: r.now.Add(-age).UnixMicro()}
}

func (r *runs) put(t *testing.T, job rowstore.Job, seq uint32) {
	t.Helper()
	page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Fetch: r.New(),
		URL: fmt.Sprintf("http://a.test/%d", seq), Quantity: seq % 2, PriceRow: "tier:plain",
		Outcome: model.Delivered, Last: true, Rows: [][]byte{[]byte(`{"a":1}`)}}
	if _, err := r.store.PutPages(t.Context(),
		[]rowstore.PageWrite{{Job: job, Page: page}}); err != nil {
		t.Error(err)
	}
}

// TestTwoOwnersExpireAtOnce: two owners, while pages are stored, remove the runs that are too old
// and nothing else. A run's charges and sums stay known.
func TestTwoOwnersExpireAtOnce(t *testing.T) {
	r := newRuns(t)
	const pages = 50
	var old []rowstore.Job
	for range expiredAtOnce + 5 {
		job := r.started(rowstore.Expiry + time.Hour)
		old = append(old, job)
	}
	old[1].Scraper = old[0].Scraper
	trial := &old[2]
	trial.Scraper = trial.ID
	for i, job := range old {
		for seq := range uint32(pages) {
			if i < 3 || seq == 0 {
				r.put(t, job, seq)
			}
		}
		if err := r.store.Seal(t.Context(), job.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	running := r.started(rowstore.Expiry + time.Hour)
	r.put(t, running, 0)
	young := r.started(rowstore.Expiry - time.Hour)
	kind := Expiry(ExpiryConfig{Store: r.store, Reruns: always,
		Safe: func(context.Context) (time.Time, error) { return r.now, nil }})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for end := work.End(0); end != work.Rested; {
				outcome, err := kind.Step(t.Context(), r.noted())
				if err != nil {
					t.Error(err)
					return
				}
				end = outcome.End
			}
		})
	}
	all.Go(func() {
		for seq := range uint32(pages) {
			r.put(t, young, seq)
		}
	})
	all.Wait()
	if n, err := r.store.Count(t.Context(), rowstore.Scope{Group: r.group}, nil); err != nil ||
		n != pages {
		t.Errorf("%d rows are left, want those of the young run, %d: %v", n, pages, err)
	}
	for i, job := range append(slices.Clone(old), running, young) {
		want := uint64(pages)
		if i >= 3 && job != young {
			want = 1
		}
		sum, err := r.store.Recount(t.Context(), job.ID)
		if err != nil || sum.Delivered != want || sum.Quantity["tier:plain"] != want/2 {
			t.Errorf("run %d comes to %+v: %v", i, sum, err)
		}
		left := 0
		err = r.store.EachRecord(t.Context(), job.ID,
			func(rowstore.Record) error { left++; return nil })
		if keeps := job == young || job == running; err != nil || (left > 0) != keeps {
			t.Errorf("run %d has %d page records left: %v", i, left, err)
		}
	}
	charged := map[uint64]int{}
	for _, scraper := range []ids.ID{old[0].Scraper, trial.Scraper} {
		err := r.store.EachCharged(t.Context(), scraper, func(hashes []uint64) error {
			for _, hash := range hashes {
				charged[hash]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for seq := range pages {
		hash := rowstore.ChargedHash(old[0].Scraper, fmt.Sprintf("http://a.test/%d", seq))
		if want := 2 * (seq % 2); charged[hash] != want {
			t.Errorf("address %d is kept %d times, want %d", seq, charged[hash], want)
		}
	}
	if len(charged) != pages/2 {
		t.Errorf("%d addresses are kept", len(charged))
	}
}

// TestExpiryCutOffAnywhere: the next owner reaches the same result wherever expiry was cut off.
func TestExpiryCutOffAnywhere(t *testing.T) {
	for cut := range 6 {
		r := newRuns(t)
		jobs := []rowstore.Job{r.started(rowstore.Expiry + time.Hour),
			r.started(rowstore.Expiry + 2*time.Hour)}
		for _, job := range jobs {
			r.put(t, job, 1)
			if err := r.store.Seal(t.Context(), job.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
		left := cut
		config := ExpiryConfig{Store: r.store, Reruns: always,
			Safe: func(context.Context) (time.Time, error) { return r.now, nil },
			Point: func(string) {
				if left--; left == 0 {
					panic("cut off")
				}
			}}
		_ = reading.Catch(func() { _, _ = Expiry(config).Step(t.Context(), r.noted()) })
		if _, err := Expiry(config).Step(t.Context(), r.noted()); err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			sum, err := r.store.Recount(t.Context(), job.ID)
			if err != nil || sum.Delivered != 1 {
				t.Errorf("cut off at %d: the run comes to %+v, %v", cut, sum, err)
			}
			kept := 0
			err = r.store.EachCharged(t.Context(), job.Scraper,
				func(hashes []uint64) error { kept += len(hashes); return nil })
			if err != nil || kept != 1 {
				t.Errorf("cut off at %d: %d addresses are kept, %v", cut, kept, err)
			}
		}
	}
}
