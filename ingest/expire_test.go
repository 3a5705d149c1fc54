package ingest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/work"
)

// expired notes by what time rows were removed.
type expired struct {
	before time.Time
	times  int
	fail   error
}

func (e *expired) Expire(_ context.Context, before time.Time) error {
	e.before = before
	e.times++
	return e.fail
}

// TestRowsExpireBySafeTime: no node's own clock removes anything.
func TestRowsExpireBySafeTime(t *testing.T) {
	var store expired
	now, unsure := time.Unix(1_700_000_000, 0), errors.New("the clocks differ")
	safe := func(context.Context) (time.Time, error) { return now, unsure }
	kind := Expiry(&store, safe)
	if kind.Name != work.Expire || !kind.Recurring {
		t.Fatalf("%+v", kind)
	}
	if _, err := kind.Step(t.Context(), work.Item{}); !errors.Is(err, unsure) || store.times > 0 {
		t.Errorf("while nobody knows the time: %v, removed %d times", err, store.times)
	}
	unsure = nil
	store.fail = errors.New("down")
	if _, err := kind.Step(t.Context(), work.Item{}); !errors.Is(err, store.fail) {
		t.Errorf("without the row store: %v", err)
	}
	store.fail = nil
	rests, err := kind.Step(t.Context(), work.Item{})
	if err != nil || rests.End != work.Rested || rests.Rest != 24*time.Hour {
		t.Errorf("%+v, %v", rests, err)
	}
	if want := now.Add(-rowstore.Expiry); !store.before.Equal(want) {
		t.Errorf("rows of before %v are removed, want %v", store.before, want)
	}
}

// TestTwoOwnersExpireAtOnce: beside each other, and beside pages that are stored, they remove what
// is too old and nothing else.
func TestTwoOwnersExpireAtOnce(t *testing.T) {
	store, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.Unix(1_700_000_000, 0)
	source := ids.Random{Now: func() time.Time { return now }}
	group := source.New()
	put := func(job rowstore.Job, seq uint32) {
		page := &model.Page{Job: job.ID, Unit: model.Unit{Seq: seq}, Fetch: source.New(),
			Outcome: model.Delivered, Last: true, Rows: [][]byte{[]byte(`{"a":1}`)}}
		if _, err := store.PutPages(t.Context(),
			[]rowstore.PageWrite{{Job: job, Page: page}}); err != nil {
			t.Error(err)
		}
	}
	started := func(age time.Duration) rowstore.Job {
		return rowstore.Job{ID: source.New(), Customer: "ann", Group: group,
			Scraper: source.New(), Started: now.Add(-age).UnixMicro()}
	}
	const pages = 50
	var old []rowstore.Job
	for range 10 {
		job := started(rowstore.Expiry + time.Hour)
		old = append(old, job)
		for seq := range uint32(pages) {
			put(job, seq)
		}
	}
	young := started(rowstore.Expiry - time.Hour)
	kind := Expiry(store, func(context.Context) (time.Time, error) { return now, nil })
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if _, err := kind.Step(t.Context(), work.Item{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		for seq := range uint32(pages) {
			put(young, seq)
		}
	})
	all.Wait()
	if n, err := store.Count(t.Context(), rowstore.Scope{Group: group}, nil); err != nil ||
		n != pages {
		t.Errorf("%d rows are left, want those of the young run, %d: %v", n, pages, err)
	}
	for _, job := range append(old, young) {
		if sum, err := store.Recount(t.Context(), job.ID); err != nil || sum.Delivered != pages {
			t.Errorf("run %s has %d page records: %v", job.ID, sum.Delivered, err)
		}
	}
}
