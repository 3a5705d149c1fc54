package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// maxPassed bounds how many records that have to stay are passed over in search of old ones that
// may go. What is not found so goes with a later command.
const maxPassed = 256

func dropArchived(tx *state.Tx, p command.DropArchivedPayload) (command.None, error) {
	if tx.ArchivedTo() != p.From || p.Upto <= p.From ||
		p.Generation != tx.Ancestry(p.Upto)[0].Generation {
		return command.None{}, nil
	}
	var customers []string
	seen := map[string]bool{}
	touch := func(customer string) {
		if !seen[customer] {
			seen[customer] = true
			customers = append(customers, customer)
		}
	}
	tx.ClosedAfter(p.From, func(job *state.Job) bool {
		if job.Index > p.Upto {
			return false
		}
		touch(job.Customer)
		if entry := tx.Entry(job.Entry); entry != nil {
			countArchived(tx, entry)
		}
		return true
	})
	tx.MadeSealedAfter(p.From, func(entry *state.Entry) bool {
		if entry.Created > p.Upto {
			return false
		}
		touch(entry.Customer)
		countArchived(tx, entry)
		return true
	})
	tx.PutArchive(&state.Archive{Upto: p.Upto})
	for _, customer := range customers {
		keep := int(p.Keep)
		if tx.Customer(customer).Removed() {
			keep = 0
		}
		dropEntries(tx, customer, keep) // before their runs: these say whether they may go
		dropRuns(tx, customer, keep)
	}
	return command.None{}, nil
}

// countArchived notes on a wallet that the archive has one entry more. Entries come in the order in
// which they were sealed, so the newest says it all.
func countArchived(tx *state.Tx, entry *state.Entry) {
	wallet := *tx.Wallet(entry.Customer)
	// Entries may come in another order than they were sealed in.
	wallet.ToppedUp = wallet.ToppedUp || entry.Amount > 0
	if entry.Sequence > wallet.Archived {
		wallet.Archived, wallet.ArchivedSum = entry.Sequence, entry.BalanceAfter
	}
	tx.PutWallet(&wallet)
}

// dropRuns takes a customer's archived runs out of the state, but for the newest.
func dropRuns(tx *state.Tx, customer string, keep int) {
	kept := map[*state.Job]bool{}
	tx.CustomerJobs(customer, func(job *state.Job) bool {
		if len(kept) < keep && !job.Unlisted() {
			kept[job] = true
		}
		return len(kept) < keep
	})
	var gone []*state.Job
	passed := 0
	tx.OldestJobs(customer, func(job *state.Job) bool {
		if tx.Archived(job) && !kept[job] && !lent(tx, job) {
			gone = append(gone, job)
		} else {
			passed++
		}
		return passed < maxPassed
	})
	summed := map[ids.ID]*state.Scraper{}
	for _, job := range gone {
		tx.RemoveJob(job)
		if job.Unlisted() {
			continue // no trial is a scraper's, and a stopped upload is none of its runs any more
		}
		if scraper := summed[job.Scraper]; scraper != nil {
			scraper.Past = scraper.Past.Add(job, scraper, tx.DeletedRun(job.ID) != nil)
		} else if known := tx.Scraper(job.Scraper); known != nil {
			scraper := *known
			scraper.Past = scraper.Past.Add(job, &scraper, tx.DeletedRun(job.ID) != nil)
			summed[job.Scraper] = &scraper
		}
	}
	for _, scraper := range summed { // each write is of another record: order does not matter
		tx.PutScraper(scraper)
	}
}

// lent says whether a trial has just ended: who asks for the same is answered by it.
func lent(tx *state.Tx, job *state.Job) bool {
	return job.Same != (state.Hash{}) && tx.Now < job.Finished+state.SameMillis
}

// dropEntries takes a customer's archived entries out of the state, but for the newest.
func dropEntries(tx *state.Tx, customer string, keep int) {
	kept := map[*state.Entry]bool{}
	tx.Entries(customer, func(entry *state.Entry) bool {
		if len(kept) < keep {
			kept[entry] = true
		}
		return len(kept) < keep
	})
	var gone []*state.Entry
	passed := 0
	tx.OldestEntries(customer, func(entry *state.Entry) bool {
		if tx.ArchivedEntry(entry) && !kept[entry] {
			gone = append(gone, entry)
		} else {
			passed++
		}
		return passed < maxPassed
	})
	for _, entry := range gone {
		tx.RemoveEntry(entry)
	}
}
