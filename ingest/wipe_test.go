package ingest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// harvested makes a harvest that has found something.
func (r *replaced) harvested(scraper int, ends bool) (id ids.ID) {
	id = r.ids.New()
	r.client.Must(r.t, client.AskHarvest{ID: id, Customer: "ann", Scraper: r.scrapers[scraper],
		URL: "https://a.test/", Cap: 9})
	r.write(id, 0)
	if ends {
		r.client.Must(r.t, client.EndHarvest{ID: id, Count: 1})
	}
	return id
}

// write writes a batch of a harvest.
func (r *replaced) write(id ids.ID, number uint32) {
	r.t.Helper()
	if _, err := r.store.PutBatch(r.t.Context(), rowstore.Batch{Harvest: id, Number: number,
		Fetch: r.ids.New(), Rows: [][]byte{[]byte(`{"url":"u"}`)}}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replaced) wipeStep(dies int) (died bool) {
	defer func() { died = recover() != nil }()
	kind := Wipe(WipeConfig{Client: r.client, Store: r.store,
		Safe: func(context.Context) (time.Time, error) { return r.clock.Now(), nil },
		Point: func(string) {
			if dies--; dies == 0 {
				panic("dies")
			}
		}})
	if _, err := kind.Step(r.t.Context(), work.Item{}); err != nil {
		r.t.Fatal(err)
	}
	return false
}

func (r *replaced) entries(id ids.ID) int64 {
	r.t.Helper()
	n, err := r.store.CountEntries(r.t.Context(), id, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// A wipe, killed at each of its points, removes harvests that are replaced by newer ones, too old,
// or that nobody reads. It removes what a late owner adds, too, and nothing else.
func TestWipe(t *testing.T) {
	for dies := 1; ; dies++ {
		died := false
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			r := newReplaced(t, openStore(t))
			old, kept := r.harvested(0, true), r.harvested(0, true)
			shown := r.harvested(1, true) // shown again if the newer one fails
			under, gone := r.harvested(1, false), r.harvested(2, false)
			deletion := client.Deletion{Customer: "ann", Operation: client.OpDeleteScraper,
				Target: r.scrapers[2]}
			r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
			r.client.Must(t, client.DeleteScraper{Deletion: deletion, Token: "t"})
			if died = r.wipeStep(dies); died {
				r.wipeStep(0)
			}
			for id, want := range map[ids.ID]int64{old: 0, kept: 1, under: 1, gone: 0, shown: 1} {
				if n := r.entries(id); n != want {
					t.Errorf("%d entries, want %d", n, want)
				}
			}
			if h := r.client.View().Harvest(old); h == nil || !h.Wiped ||
				r.client.View().Harvest(gone) != nil {
				t.Errorf("%+v", h)
			}
			for _, late := range []ids.ID{old, gone} {
				r.write(late, 1)
				r.wipeStep(0)
				if n := r.entries(late); n != 0 {
					t.Errorf("%d entries came late", n)
				}
			}
			r.clock.Advance(24 * time.Hour)
			r.client.Tick(t)
			r.wipeStep(0)
			r.wipeStep(0)
			if r.entries(kept) != 0 || r.entries(under) != 1 ||
				len(r.client.View().HarvestsFor("ann")) != 1 {
				t.Errorf("the night has left %d, %d", r.entries(kept), r.entries(under))
			}
		})
		if !died {
			return
		}
	}
}

// A removed customer waits for its harvests to be wiped, including those under way.
func TestWipeOfARemovedCustomer(t *testing.T) {
	r := newReplaced(t, openStore(t))
	id := r.harvested(0, false)
	r.removeCustomer()
	for r.client.View().Leaves("ann") {
		r.eraseStep(0)
	}
	for range 3 {
		r.removeStep(0)
	}
	if r.client.View().Customer("ann").ErasedAt != 0 {
		t.Fatal("it is over while there are entries")
	}
	r.wipeStep(0)
	for range 3 {
		r.removeStep(0)
	}
	r.write(id, 1)
	r.wipeStep(0)
	if r.entries(id) != 0 || r.client.View().Customer("ann").ErasedAt == 0 {
		t.Errorf("%d entries are left", r.entries(id))
	}
}
