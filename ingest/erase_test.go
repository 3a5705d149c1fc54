package ingest

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// eraseStep makes one erasure step, and says whether it died at the point numbered dies.
func (r *replaced) eraseStep(dies int) (died bool) {
	defer func() { died = recover() != nil }()
	kind := Erasure(ErasureConfig{Client: r.client, Point: func(string) {
		if dies--; dies == 0 {
			panic("dies")
		}
	}})
	if _, err := kind.Step(r.t.Context(), work.Item{}); err != nil {
		r.t.Fatal(err)
	}
	return false
}

// removeCustomer removes the customer.
func (r *replaced) removeCustomer() {
	removal := client.Deletion{Customer: "ann", Operation: client.OpRemoveCustomer}
	r.client.Must(r.t, client.PreviewDelete{Deletion: removal, Token: "t"})
	r.client.Must(r.t, client.RemoveCustomer{Deletion: removal, Token: "t", By: "root"})
}

// keepList makes the link list of a run.
func (r *replaced) keepList(list ids.ID) {
	w, err := r.store.CreateList(r.t.Context(), list)
	if err == nil {
		_, err = w.Add(r.t.Context(), "http://a.test/", "http://a.test/")
	}
	if err == nil {
		_, err = w.Finish(r.t.Context())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// lists counts the existing link lists.
func (r *replaced) lists() int {
	lists, err := r.store.AllLists(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return len(lists)
}

// TestRemovalTakesCustomers kills the erasure of the state, and the removal from the store, at each
// point in turn. One group was deleted before with its rows kept. One run is not closed.
func TestRemovalTakesCustomers(t *testing.T) {
	for dies := range 24 {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			r := newReplaced(t, openStore(t))
			r.move(2, 1, false)
			for n := range 3 {
				r.launch(r.scrapers[n], 3)
				r.keepList(r.client.View().Job(r.open[0].ID).List)
				r.end(0)
			}
			deletion := client.Deletion{Customer: "ann", Operation: client.OpDeleteGroup,
				Target: r.groups[1]}
			r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
			r.client.Must(t, client.DeleteGroup{Deletion: deletion, Token: "t"})
			r.client.Archive(t, r.store, 1)
			r.launch(r.scrapers[0], 2)
			under := r.open[0].ID
			r.keepList(r.client.View().Job(under).List)
			r.keepList(r.ids.New()) // that belongs to nobody
			sums := map[ids.ID]rowstore.Recount{}
			for id := range r.stored {
				sums[id], _ = r.store.Recount(t.Context(), id)
			}
			r.removeCustomer()
			r.eraseStep(dies)
			r.eraseStep(0)
			r.removeStep(dies)
			r.removeStep(0)
			r.check() // while a run is not closed, no row is removed
			if err := r.store.Seal(t.Context(), under, nil); err != nil {
				t.Fatal(err)
			}
			r.client.CloseRun(t, under)
			for range 2 { // its groups, then the rest
				r.eraseStep(dies)
				r.eraseStep(0)
				r.removeStep(dies)
				r.removeStep(0)
			}
			for id := range r.stored {
				r.rows[id] = 0
				sum, err := r.store.Recount(t.Context(), id)
				if fmt.Sprint(sum) != fmt.Sprint(sums[id]) || err != nil {
					t.Errorf("run %s sums up to %v, %v; it was %v", id, sum, err, sums[id])
				}
			}
			r.check()
			customer := r.client.View().Customer("ann")
			if customer.ErasedAt == 0 || r.client.View().Wallet("ann") == nil {
				t.Errorf("%+v", customer)
			}
			left, err := r.store.JobsOf(t.Context(), "ann", ids.ID{}, 10)
			if n := r.lists(); len(left) > 0 || err != nil || n != 1 {
				t.Errorf("of %v something is stored, %v; there are %d lists", left, err, n)
			}
		})
	}
}

// TestErasureHeedsARestore: nothing is taken from a customer that is no longer removed.
func TestErasureHeedsARestore(t *testing.T) {
	r := newReplaced(t, openStore(t))
	r.launch(r.scrapers[0], 3)
	r.end(0)
	if r.eraseStep(1) || r.client.View().Leaves("ann") == false {
		t.Error("a customer is erased that nobody removed")
	}
	r.removeStep(0)
	r.check()
}

// A customer is removed while a batch of its file is about to be stored. Its run is sealed before
// the state forgets it, so nothing of an erased customer is stored.
func TestErasedCustomersImportStoresNothing(t *testing.T) {
	u := newUploaded(t)
	job := u.upload("csv", column(1, 2))
	u.point = func(name string) {
		if name != "work.import.before_put" || u.client.View().Customer("ann").Removed() {
			return
		}
		deletion := client.Deletion{Customer: "ann", Operation: client.OpRemoveCustomer}
		u.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
		u.client.Must(t, client.RemoveCustomer{Deletion: deletion, Token: "t", By: "root"})
		for _, kind := range []work.Kind{Erasure(ErasureConfig{Client: u.client}),
			Removal(RemovalConfig{Client: u.client, Store: u.store, Clock: u.clock,
				History: client.NewHistory(u.store)})} {
			for range 3 {
				if _, err := kind.Step(t.Context(), work.Item{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if end, _ := u.step(job); end != work.Ended {
		t.Errorf("the import: %v", end)
	}
	jobs, err := u.store.JobsOf(t.Context(), "ann", ids.ID{}, 10)
	if err != nil || len(jobs) > 0 || u.client.View().Customer("ann").ErasedAt == 0 {
		t.Errorf("%+v is left of who was erased: %v", jobs, err)
	}
}
