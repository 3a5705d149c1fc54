package billing

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Recounter is what a recount needs of the row store.
type Recounter interface {
	Recount(ctx context.Context, job ids.ID) (rowstore.Recount, error)
}

// Difference is where the ledger does not say what the page records say.
type Difference struct {
	Customer string
	Entry    ids.ID
	Job      ids.ID
	What     string // what was compared: a price row's key, "amount", or a counter of the run
	Ledger   int64
	Records  int64
}

// Recount compares every ledger entry of a run with the run's page records: pages of each price row, those paid by free
// requests included, the sums, and the run's counters. A run that is not closed may have records that are not settled
// yet, so the ledger must only not be ahead of them. No differences: everything agrees.
func Recount(ctx context.Context, view *client.View, store Recounter) ([]Difference, error) {
	var found []Difference
	for _, customer := range view.Customers() {
		var entries []*client.Entry
		view.Entries(customer.Ref, func(e *client.Entry) bool {
			if !e.Job.IsZero() {
				entries = append(entries, e)
			}
			return true
		})
		for _, entry := range entries {
			records, err := store.Recount(ctx, entry.Job)
			if err != nil {
				return found, fmt.Errorf("billing: recount run %s: %w", entry.Job, err)
			}
			found = append(found, compare(entry, view.Job(entry.Job), records)...)
		}
	}
	return found, nil
}

// compare lists the differences of one entry; job is nil when the run's record is gone.
func compare(entry *client.Entry, job *client.Job, records rowstore.Recount) []Difference {
	var found []Difference
	closed := job == nil || job.Closed
	differ := func(what string, ledger, records int64) {
		found = append(found, Difference{Customer: entry.Customer, Entry: entry.ID, Job: entry.Job, What: what,
			Ledger: ledger, Records: records})
	}
	counts := func(what string, ledger, records uint64) {
		if ledger > records || (closed && ledger != records) {
			differ(what, int64(ledger), int64(records))
		}
	}
	pages := map[string]uint64{}
	amount, free := int64(0), int64(0)
	for _, line := range entry.Lines {
		pages[line.RowKey] += line.Pages + line.FreePages
		amount += line.Amount
		free += int64(line.FreePages)
		if want := -int64(line.Pages) * line.UnitPrice; line.Amount != want {
			differ(line.RowKey+" amount", line.Amount, want)
		}
	}
	for row := range records.Quantity {
		pages[row] += 0 // rows that the ledger does not have are compared too
	}
	for _, row := range slices.Sorted(maps.Keys(pages)) {
		counts(row, pages[row], records.Quantity[row])
	}
	if entry.Amount != amount {
		differ("amount", entry.Amount, amount)
	}
	if entry.FreeDelta != -free {
		differ("freeRequestsDelta", entry.FreeDelta, -free)
	}
	if job != nil {
		counts("pages delivered", job.Delivered, records.Delivered)
		counts("pages", job.Pages, records.Delivered+records.Errored)
		counts("items", job.Items, records.Items)
		if job.Charged != -entry.Amount {
			differ("charged", job.Charged, -entry.Amount)
		}
	}
	return found
}
