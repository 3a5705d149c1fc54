package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// broken is a row store that cannot read the records of one run, remove its rows, or read the runs
// of one customer.
type broken struct {
	*sqlite.Store
	run      ids.ID
	customer string
}

func (b *broken) DeleteJob(ctx context.Context, job ids.ID, records bool) error {
	if job == b.run {
		return errBroken
	}
	return b.Store.DeleteJob(ctx, job, records)
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

// stepAll steps a kind of work until it rests, at most steps times, and counts failures.
func stepAll(t *testing.T, kind work.Kind, steps int) (failures int) {
	t.Helper()
	item := work.Item{}
	for range steps {
		outcome, err := kind.Step(t.Context(), item)
		switch {
		case errors.Is(err, errBroken):
			failures++
		case err != nil:
			t.Fatal(err)
		case outcome.End == work.Rested && outcome.Rest > 0:
			return failures
		default:
			item.Progress = outcome.Progress
		}
	}
	t.Fatalf("it does not rest within %d steps", steps)
	return failures
}

// TestOneRunThatCannotExpireStopsNoOther: the run is reported and retried, and all others expire.
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
	for range 2 { // it is retried each time
		if failures := stepAll(t, kind, 4); failures != 1 || left() != 1 {
			t.Fatalf("%d failures, %d runs are left", failures, left())
		}
	}
	store.run = ids.ID{}
	if failures := stepAll(t, kind, 4); failures != 0 || left() != 0 {
		t.Errorf("once it can be read: %d failures, %d runs are left", failures, left())
	}
}

// TestOneAddressThatIsNoneStopsNoExpiry: a rule for addresses may have become stricter since the
// page was stored.
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
	stepAll(t, kind, 2)
}

// TestOneCustomerThatCannotBeErasedStopsNoOther: neither do customers that wait, however many.
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

// TestOneRunThatCannotBeRemovedStopsNoOther: neither a deleted run nor a deleted scraper holds up
// those behind it.
func TestOneRunThatCannotBeRemovedStopsNoOther(t *testing.T) {
	r := newReplaced(t, openStore(t))
	for range 2 {
		for _, scraper := range r.scrapers {
			r.launch(scraper, 3)
			r.end(0)
		}
	}
	remove := func(deletion client.Deletion) {
		r.client.Must(t, client.PreviewDelete{Deletion: deletion, Token: "t"})
		if deletion.Operation == client.OpDeleteRun {
			r.client.Must(t, client.DeleteRun{Deletion: deletion, Token: "t"})
		} else {
			r.client.Must(t, client.DeleteScraper{Deletion: deletion, Token: "t"})
		}
	}
	first := r.order[r.scrapers[0]]
	for _, job := range first {
		remove(client.Deletion{Customer: "ann", Operation: client.OpDeleteRun, Target: job,
			Run: &client.TargetRun{Group: r.groups[0], Scraper: r.scrapers[0]}})
	}
	remove(client.Deletion{Customer: "ann", Operation: client.OpDeleteScraper,
		Target: r.scrapers[1], Query: client.WithData, Rows: 6})
	store := &broken{Store: r.store, run: first[0]}
	kind := Removal(RemovalConfig{Client: r.client, Store: store, Clock: r.clock,
		History: client.NewHistory(r.store)})
	if failures := stepAll(t, kind, 4); failures != 1 {
		t.Errorf("%d failures", failures)
	}
	for _, gone := range append(slices.Clone(r.order[r.scrapers[1]]), first[1]) {
		r.rows[gone] = 0
	}
	r.check()
	store.run = ids.ID{}
	if failures := stepAll(t, kind, 4); failures != 0 {
		t.Errorf("once it can be removed: %d failures", failures)
	}
	r.rows[first[0]] = 0
	r.check()
}

// TestOneScraperThatCannotBeRetainedStopsNoOther: it is reported, and retried until it works.
func TestOneScraperThatCannotBeRetainedStopsNoOther(t *testing.T) {
	r := newReplaced(t, openStore(t))
	r.group(0, 1, false)
	for range 2 {
		for _, scraper := range r.scrapers {
			r.launch(scraper, 3)
			r.end(0)
		}
	}
	held := r.order[r.scrapers[0]][0]
	store := &broken{Store: r.store, run: held}
	kind := Retention(RetentionConfig{View: r.client.View, Store: store,
		History: client.NewHistory(r.store)})
	item, failures := work.Item{}, 0
	for range 4 {
		outcome, err := kind.Step(t.Context(), item)
		switch {
		case errors.Is(err, errBroken):
			failures++
		case err != nil:
			t.Fatal(err)
		default:
			item.Progress = outcome.Progress
		}
	}
	for _, scraper := range r.scrapers {
		r.rows[r.order[scraper][0]] = 0
	}
	r.rows[held] = 3
	if r.check(); failures == 0 {
		t.Error("nobody hears of it")
	}
	store.run = ids.ID{}
	if outcome, err := kind.Step(t.Context(), item); err != nil || outcome.End != work.Rested {
		t.Errorf("once it can be done: %+v, %v", outcome, err)
	}
	r.rows[held] = 0
	r.check()
}
