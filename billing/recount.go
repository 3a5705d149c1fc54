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

// Recounted compares a run's ledger entry with its page records.
type Recounted struct {
	Job      ids.ID
	Customer string
	Entry    ids.ID
	// LedgerMicros is the charge of the entry. RecountMicros is the cost of the page records at the
	// run's prices, without free requests and pages delivered unbilled. Both are 0 or more.
	LedgerMicros  int64
	RecountMicros int64
	LedgerPages   uint64 // charged or free, counted as often as charged
	RecountPages  uint64 // delivered, counted as often as charged
	LedgerItems   uint64
	RecountItems  uint64
	// Unread is why the run's page records could not be read, though others can.
	Unread error
	// Undone: a restore undid the run. It has no entry; nobody reads its stored pages, and they are
	// removed later.
	Undone bool
}

// Equal says whether the ledger agrees with the page records. An undone run has no ledger entry to
// compare, and an unread one no records.
func (r Recounted) Equal() bool {
	return !r.Undone && r.Unread == nil && r.LedgerMicros == r.RecountMicros &&
		r.LedgerPages == r.RecountPages && r.LedgerItems == r.RecountItems
}

// recountedAtOnce is how many runs are looked up together, with their entries.
const recountedAtOnce = 256

// Recount recomputes every closed run from its page records, in the order in which they were
// closed. It also reads what is stored of runs that a restore undid. It leaves out runs that still
// accrue, since some of their records are not settled yet. A run that cannot be read does not hold
// up the others. If an error is yielded, it is the last value.
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

// passOver notes in run why it was not read, if the row store answers for other runs. Otherwise it
// returns unread.
func passOver(ctx context.Context, store Recounter, run *Recounted, unread error) error {
	if unread == nil || isAway(ctx, store) {
		return unread
	}
	run.Unread = unread
	return nil
}

// isAway says whether the row store fails even for a run that does not exist, or ctx has ended.
func isAway(ctx context.Context, store Recounter) bool {
	_, err := store.Recount(ctx, ids.ID{})
	return err != nil || ctx.Err() != nil
}

// recountUndone recounts what is stored of a run that a restore undid.
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

// recountJob recounts a run. entry is nil for a trial that delivered nothing.
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
		result.RecountItems = 0 // nobody sees its stored rows, and they are removed
	}
	prices := view.Prices(job.Prices)
	for row, quantity := range counted.Quantity {
		result.RecountPages += quantity
		priced, _ := prices.Rows.Row(row)
		result.RecountMicros += priced.Of(int64(quantity) - int64(free[row]))
	}
	return result, nil
}
