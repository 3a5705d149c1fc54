package billing

import (
	"context"
	"fmt"
	"iter"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Recounter sums up page records.
type Recounter interface {
	Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error)
}

// Recounted holds a run's ledger entry against its page records.
type Recounted struct {
	Job      ids.ID
	Customer string
	Entry    ids.ID
	// LedgerMicros is what the entry charged, RecountMicros what the page records cost at the run's
	// prices. What free requests paid, or was delivered unbilled, is taken off. Micros, 0 or more.
	LedgerMicros  int64
	RecountMicros int64
	LedgerPages   uint64 // charged or free, as often as charged
	RecountPages  uint64 // delivered, as often as charged
	LedgerItems   uint64
	RecountItems  uint64
	// Unread is why its page records cannot be read, though others can; nil: they were.
	Unread error
	// Undone: a restore undid the run. It has no entry; what is stored of it is read by nobody and
	// goes after a while.
	Undone bool
}

// Equal says whether the ledger is what the page records say. Of a run that was undone there is no
// ledger to be held against, and of one that was not read there are no records.
func (r Recounted) Equal() bool {
	return !r.Undone && r.Unread == nil && r.LedgerMicros == r.RecountMicros &&
		r.LedgerPages == r.RecountPages && r.LedgerItems == r.RecountItems
}

// recountedAtOnce is how many runs, with their entries, are looked up at a time.
const recountedAtOnce = 256

// Recount recomputes every closed run from page records, in the order in which they were closed. It
// also reads what is stored of runs that a restore undid. A run that still accrues has records that
// are not settled yet, so it is left out. One that cannot be read keeps no other from being
// counted. An error is the last that is yielded.
func Recount(ctx context.Context, view *client.View, history *client.History,
	store Recounter) iter.Seq2[Recounted, error] {
	return func(yield func(Recounted, error) bool) {
		for index := uint64(0); ; {
			jobs, err := history.ClosedAfter(ctx, view, index, recountedAtOnce)
			if err != nil {
				yield(Recounted{}, fmt.Errorf("billing: runs to recount: %w", err))
				return
			}
			if len(jobs) == 0 {
				break
			}
			index = jobs[len(jobs)-1].Index
			entries, err := history.EntriesOf(ctx, view, jobs)
			if err != nil {
				yield(Recounted{}, fmt.Errorf("billing: entries to recount: %w", err))
				return
			}
			for _, job := range jobs {
				one, err := recountJob(ctx, view, store, job, entries[job.Entry])
				if err = passOver(ctx, store, &one, err); !yield(one, err) || err != nil {
					return
				}
			}
		}
		view.Undone(func(u *client.Undone) bool {
			one, err := recountUndone(ctx, store, u)
			err = passOver(ctx, store, &one, err)
			return yield(one, err) && err == nil
		})
	}
}

// passOver notes why a run was not read, if the row store answers for others. Otherwise it answers
// that.
func passOver(ctx context.Context, store Recounter, run *Recounted, unread error) error {
	if unread == nil || isAway(ctx, store) {
		return unread
	}
	run.Unread = unread
	return nil
}

// isAway says whether the row store does not even answer for a run that there is not, or nobody
// wants to know any more.
func isAway(ctx context.Context, store Recounter) bool {
	_, err := store.Recount(ctx, ids.ID{})
	return err != nil || ctx.Err() != nil
}

// recountUndone counts what is stored of a run that a restore undid.
func recountUndone(ctx context.Context, store Recounter, u *client.Undone) (Recounted, error) {
	result := Recounted{Job: u.Job, Customer: u.Customer, Undone: true}
	counted, err := store.Recount(ctx, u.Job)
	if err != nil {
		return result, fmt.Errorf("billing: recount of run %s, which was undone: %w", u.Job, err)
	}
	result.RecountItems = counted.Items
	for _, quantity := range counted.Quantity {
		result.RecountPages += quantity
	}
	return result, nil
}

// recountJob counts a run with its ledger entry. A trial that delivered nothing has none: nil.
func recountJob(ctx context.Context, view *client.View, store Recounter, job *client.Job,
	entry *client.Entry) (Recounted, error) {
	if entry == nil {
		entry = &client.Entry{}
	}
	result := Recounted{Job: job.ID, Customer: job.Customer, Entry: entry.ID,
		LedgerMicros: -entry.Amount, LedgerItems: job.Items}
	free := map[string]uint64{}
	for _, line := range entry.Lines {
		free[line.RowKey] = line.FreePages + line.Unbilled
		result.LedgerPages += line.Pages + line.FreePages + line.Unbilled
	}
	counted, err := store.Recount(ctx, job.ID)
	if err != nil {
		return result, fmt.Errorf("billing: recount of run %s: %w", job.ID, err)
	}
	if result.RecountItems = counted.Items; job.File && !job.Shows() {
		result.RecountItems = 0 // what is stored of it is shown to nobody, and goes
	}
	prices := view.Prices(job.Prices)
	for row, quantity := range counted.Quantity {
		result.RecountPages += quantity
		priced, _ := prices.Rows.Row(row)
		result.RecountMicros += priced.Of(int64(quantity) - int64(free[row]))
	}
	return result, nil
}
