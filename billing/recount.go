package billing

import (
	"context"
	"fmt"

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
	// LedgerMicros is what the entry charged, RecountMicros what the page records cost at the run's prices less what free
	// requests paid; micros, 0 or more.
	LedgerMicros  int64
	RecountMicros int64
	LedgerPages   uint64 // charged or free, as often as charged
	RecountPages  uint64 // delivered, as often as charged
	LedgerItems   uint64
	RecountItems  uint64
	// Undone: a restore undid the run. It has no entry; what is stored of it is read by nobody and goes after a while.
	Undone bool
}

// Equal says whether the ledger is what the page records say. Of a run that was undone there is no ledger to be held against.
func (r Recounted) Equal() bool {
	return !r.Undone && r.LedgerMicros == r.RecountMicros && r.LedgerPages == r.RecountPages && r.LedgerItems == r.RecountItems
}

// Recount recomputes every closed run of the customers from page records, and what is stored of runs that a restore undid. A
// run that still accrues has records that are not settled yet, so it is left out.
func Recount(ctx context.Context, view *client.View, store Recounter) ([]Recounted, error) {
	var all []Recounted
	for _, customer := range view.Customers() {
		var jobs []*client.Job
		view.CustomerJobs(customer.Ref, func(job *client.Job) bool {
			if job.Closed {
				jobs = append(jobs, job)
			}
			return true
		})
		for _, job := range jobs {
			one, err := recountJob(ctx, view, store, job)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	undone, err := recountUndone(ctx, view, store)
	return append(all, undone...), err
}

// recountUndone counts what is stored of the runs that restores undid.
func recountUndone(ctx context.Context, view *client.View, store Recounter) ([]Recounted, error) {
	var all []Recounted
	view.Undone(func(u *client.Undone) bool {
		all = append(all, Recounted{Job: u.Job, Customer: u.Customer, Undone: true})
		return true
	})
	for i := range all {
		counted, err := store.Recount(ctx, all[i].Job)
		if err != nil {
			return nil, fmt.Errorf("billing: recount of run %s, which was undone: %w", all[i].Job, err)
		}
		all[i].RecountItems = counted.Items
		for _, quantity := range counted.Quantity {
			all[i].RecountPages += quantity
		}
	}
	return all, nil
}

func recountJob(ctx context.Context, view *client.View, store Recounter, job *client.Job) (Recounted, error) {
	counted, err := store.Recount(ctx, job.ID)
	if err != nil {
		return Recounted{}, fmt.Errorf("billing: recount of run %s: %w", job.ID, err)
	}
	entry := view.Entry(job.Entry)
	if entry == nil {
		entry = &client.Entry{} // a trial that delivered nothing has none
	}
	result := Recounted{Job: job.ID, Customer: job.Customer, Entry: entry.ID, LedgerMicros: -entry.Amount,
		LedgerItems: job.Items, RecountItems: counted.Items}
	free := map[string]uint64{}
	for _, line := range entry.Lines {
		free[line.RowKey] = line.FreePages
		result.LedgerPages += line.Pages + line.FreePages
	}
	prices := view.Prices(job.Prices)
	for row, quantity := range counted.Quantity {
		result.RecountPages += quantity
		for _, price := range prices.Rows {
			if price.RowKey == row {
				result.RecountMicros += price.Micros * (int64(quantity) - int64(free[row]))
			}
		}
	}
	return result, nil
}
