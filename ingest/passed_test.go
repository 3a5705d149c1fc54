package ingest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/work"
)

var errBroken = errors.New("a record cannot be read")

// broken is a row store that cannot read the records of one run, or the runs of one customer.
type broken struct {
	*sqlite.Store
	run      ids.ID
	customer string
}

func (b *broken) Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error) {
	if job == b.run {
		return rowstore.Recount{}, errBroken
	}
	return b.Store.Recount(ctx, job)
}

func (b *broken) JobsOf(ctx context.Context, customer string, after ids.ID,
	most int) ([]rowstore.Job, error) {
	if customer == b.customer {
		return nil, errBroken
	}
	return b.Store.JobsOf(ctx, customer, after, most)
}

// stepAll takes a kind of work on until it rests, or for as many steps, and counts its failures.
func stepAll(t *testing.T, kind work.Kind, steps int) (failures int) {
	t.Helper()
	for range steps {
		outcome, err := kind.Step(t.Context(), work.Item{})
		switch {
		case errors.Is(err, errBroken):
			failures++
		case err != nil:
			t.Fatal(err)
		case outcome.End == work.Rested:
			return failures
		}
	}
	t.Fatalf("it does not rest within %d steps", steps)
	return failures
}

// TestOneRunThatCannotExpireStopsNoOther: it is told and tried again, and the others are done.
func TestOneRunThatCannotExpireStopsNoOther(t *testing.T) {
	r := newRuns(t)
	const old = expiredAtOnce + 6
	store := &broken{Store: r.store}
	for n := range old {
		job := r.started(rowstore.Expiry + time.Hour)
		r.put(t, job, 0)
		if err := r.store.Seal(t.Context(), job.ID, nil); err != nil {
			t.Fatal(err)
		}
		if n == old/2 {
			store.run = job.ID
		}
	}
	kind := Expiry(ExpiryConfig{Store: store, Reruns: always,
		Safe: func(context.Context) (time.Time, error) { return r.now, nil }})
	left := func() int {
		jobs, err := r.store.Expiring(t.Context(), r.now.Add(-rowstore.Expiry), old)
		if err != nil {
			t.Fatal(err)
		}
		return len(jobs)
	}
	for range 2 { // it is tried again each time
		if failures := stepAll(t, kind, 4); failures != 1 || left() != 1 {
			t.Fatalf("%d failures, %d runs are left", failures, left())
		}
	}
	store.run = ids.ID{}
	if failures := stepAll(t, kind, 4); failures != 0 || left() != 0 {
		t.Errorf("once it can be read: %d failures, %d runs are left", failures, left())
	}
}

// TestOneAddressThatIsNoneStopsNoExpiry: a rule of addresses may become stricter than it was when
// the page was stored.
func TestOneAddressThatIsNoneStopsNoExpiry(t *testing.T) {
	r := newRuns(t)
	job := r.started(rowstore.Expiry + time.Hour)
	page := &model.Page{Job: job.ID, Fetch: r.New(), URL: "http://[/", Quantity: 1,
		PriceRow: "tier:plain", Outcome: model.Delivered, Last: true}
	if _, err := r.store.PutPages(t.Context(),
		[]rowstore.PageWrite{{Job: job, Page: page}}); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Seal(t.Context(), job.ID, nil); err != nil {
		t.Fatal(err)
	}
	kind := Expiry(ExpiryConfig{Store: r.store, Reruns: always,
		Safe: func(context.Context) (time.Time, error) { return r.now, nil }})
	stepAll(t, kind, 1)
}

// TestOneCustomerThatCannotBeErasedStopsNoOther: nor do customers that have to wait, however many.
func TestOneCustomerThatCannotBeErasedStopsNoOther(t *testing.T) {
	r := newReplaced(t, openStore(t))
	var all []string
	for n := range removedAtOnce + 2 {
		all = append(all, fmt.Sprintf("customer %02d", n))
	}
	for _, ref := range all {
		r.client.Must(t, client.OpenCustomer{Customer: ref, Entry: r.ids.New()})
		removal := client.Deletion{Customer: ref, Operation: client.OpRemoveCustomer}
		r.client.Must(t, client.PreviewDelete{Deletion: removal, Token: "t"})
		r.client.Must(t, client.RemoveCustomer{Deletion: removal, Token: "t", By: "root"})
	}
	store := &broken{Store: r.store, customer: all[0]}
	kind := Removal(RemovalConfig{Client: r.client, Store: store, Clock: r.clock,
		History: client.NewHistory(r.store)})
	erase := Erasure(ErasureConfig{Client: r.client})
	erased := func() (n int) {
		for _, ref := range all {
			if r.client.View().Customer(ref).ErasedAt != 0 {
				n++
			}
		}
		return n
	}
	for range 2 { // those of one step, and the others
		if _, err := erase.Step(t.Context(), work.Item{}); err != nil {
			t.Fatal(err)
		}
	}
	if failures := stepAll(t, kind, 6); failures != 1 || erased() != len(all)-1 {
		t.Fatalf("%d failures, %d of %d are erased", failures, erased(), len(all))
	}
	store.customer = ""
	if failures := stepAll(t, kind, 2); failures != 0 || erased() != len(all) {
		t.Errorf("once it can be read: %d failures, %d of %d are erased", failures, erased(),
			len(all))
	}
}
