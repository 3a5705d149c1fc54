package simulation

import (
	"context"
	"fmt"
	"slices"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// pastWorld is the archive, and what the leaders did with it.
type pastWorld struct {
	rowstoretest.Archive
	keep uint32                        // newest runs and entries of a customer stay in the state
	late []command.DropArchivedPayload // of leaders that were paused
}

// archive writes the next sealed records to the archive, and has the state drop them. A leader may
// die in between, or be paused: then its command comes when others have archived, or restored.
func (w *world) archive() error {
	if len(w.past.late) > 0 && w.r.IntN(2) == 0 {
		late := w.past.late[0]
		w.past.late = w.past.late[1:]
		_, err := w.propose(context.Background(), late)
		return err
	}
	batch, err := archive.Next(w.machine.Store().View(), 2+w.r.IntN(6))
	if err != nil || batch.Upto == batch.From {
		return err
	}
	if err := w.past.PutPast(context.Background(), batch.Runs, batch.Entries); err != nil {
		return err
	}
	drop := command.DropArchivedPayload{Generation: batch.Generation, From: batch.From,
		Upto: batch.Upto, Keep: w.past.keep}
	switch w.r.IntN(10) {
	case 0:
		return nil
	case 1:
		w.past.late = append(w.past.late, drop)
		return nil
	}
	_, err = w.propose(context.Background(), drop)
	return err
}

// archiveAll archives all that has ended. The state then has the newest of each customer alone.
func (w *world) archiveAll() error {
	for {
		view := w.machine.Store().View()
		batch, err := archive.Next(view, 2)
		if err != nil {
			return err
		}
		if batch.Upto == batch.From {
			break
		}
		if err := w.archive(); err != nil {
			return err
		}
	}
	view := w.machine.Store().View()
	for _, wallet := range view.Wallets() {
		runs, entries := uint32(0), uint32(0)
		view.CustomerJobs(wallet.Customer, func(*state.Job) bool { runs++; return true })
		view.Entries(wallet.Customer, func(*state.Entry) bool { entries++; return true })
		if runs > w.past.keep || entries > w.past.keep {
			return fmt.Errorf("the state keeps %d runs and %d entries of %s", runs, entries,
				wallet.Customer)
		}
	}
	return nil
}

// job returns a run, wherever it is; nil if there is none.
func (w *world) job(id ids.ID) (*state.Job, error) {
	return client.NewHistory(&w.past).Run(context.Background(), w.machine.Store().View(), id)
}

// entryOf returns a run's ledger entry, wherever it is.
func (w *world) entryOf(job *state.Job) (*state.Entry, error) {
	entries, err := client.NewHistory(&w.past).EntriesOf(context.Background(),
		w.machine.Store().View(), []*state.Job{job})
	return entries[job.Entry], err
}

// verifyHistory checks that each customer's history and ledger have everything once, wherever it
// is.
func (w *world) verifyHistory() error {
	view, history := w.machine.Store().View(), client.NewHistory(&w.past)
	for _, wallet := range view.Wallets() {
		runs, err := history.RunsBefore(context.Background(), view,
			client.RunsOf{Customer: wallet.Customer}, nil, rowstore.MaxPast)
		if err != nil {
			return err
		}
		var want, got []string
		for _, truth := range w.runs {
			if truth.customer == wallet.Customer {
				want = append(want, truth.job.String())
			}
		}
		for _, run := range runs {
			got = append(got, run.ID.String())
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			return fmt.Errorf("the history of %s has %v, want %v", wallet.Customer, got, want)
		}
		entries, err := history.EntriesBefore(context.Background(), view, wallet.Customer, nil,
			rowstore.MaxPast)
		if err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b *state.Entry) int {
			return int(a.Sequence) - int(b.Sequence)
		})
		sum := int64(0)
		for n, entry := range entries {
			sum += entry.Amount
			if entry.Sequence != uint64(n+1) || entry.BalanceAfter != sum {
				return fmt.Errorf("entry %d of the seal order is %+v, the sum is %d", n+1, entry,
					sum)
			}
		}
		if uint64(len(entries)) != wallet.Sequence || sum != wallet.Sealed {
			return fmt.Errorf("%d entries of %d micros, and wallet %+v", len(entries), sum, wallet)
		}
	}
	return nil
}
