package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

// maxTrialsGone bounds the trials that one command removes. The leader archives fewer by one, so
// none pile up.
const maxTrialsGone = 256

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
		dropEntries(tx, customer, keep) // before their runs, which say whether they may go
		dropRuns(tx, customer, keep)
	}
	dropTrials(tx)
	return command.None{}, nil
}

// countArchived counts one more archived entry on its wallet. The last sealed one gives both
// figures.
func countArchived(tx *state.Tx, entry *state.Entry) {
	wallet := *tx.Wallet(entry.Customer)
	// Entries may come in another order than they were sealed in.
	wallet.ToppedUp = wallet.ToppedUp || entry.Amount > 0
	if entry.Sequence > wallet.Archived {
		wallet.Archived, wallet.ArchivedSum = entry.Sequence, entry.BalanceAfter
	}
	tx.PutWallet(&wallet)
}

// dropRuns removes a customer's archived runs from the state, except the newest. Only these are
// left of earlier commands, however many runs are open. So it reads and removes little more than
// what the command archives.
func dropRuns(tx *state.Tx, customer string, keep int) {
	kept := map[*state.Job]bool{}
	tx.CustomerJobs(customer, func(job *state.Job) bool {
		if len(kept) < keep && !job.Unlisted() {
			kept[job] = true
		}
		return len(kept) < keep
	})
	var gone []*state.Job
	tx.PastJobs(customer, func(job *state.Job) bool {
		if tx.Archived(job) && !kept[job] {
			gone = append(gone, job)
		}
		return tx.Archived(job)
	})
	removeRuns(tx, gone)
}

// removeRuns removes archived runs from the state, in the order of closing. Their scrapers keep
// the sums.
func removeRuns(tx *state.Tx, gone []*state.Job) {
	summed := map[ids.ID]*state.Scraper{}
	for _, job := range gone {
		tx.RemoveJob(job)
		if job.Unlisted() {
			continue // a trial is not a scraper's run, nor is a stopped upload
		}
		if scraper := summed[job.Scraper]; scraper != nil {
			scraper.Past = scraper.Past.Add(job, scraper, tx.DeletedRun(job.ID) != nil)
		} else if known := tx.Scraper(job.Scraper); known != nil {
			scraper := *known
			scraper.Past = scraper.Past.Add(job, &scraper, tx.DeletedRun(job.ID) != nil)
			summed[job.Scraper] = &scraper
		}
	}
	for _, scraper := range summed { // each write is to another record: order does not matter
		tx.PutScraper(scraper)
	}
}

func expireRuns(tx *state.Tx, p command.ExpireRunsPayload) (command.None, error) {
	var gone []*state.Job
	for _, id := range p.Runs {
		job := tx.Job(id)
		if job != nil && tx.Archived(job) && !slices.Contains(gone, job) {
			gone = append(gone, job)
		}
	}
	removeRuns(tx, gone)
	return command.None{}, nil
}

// dropTrials removes archived trials, of whatever customers, that answer identical ones no more.
// They leave in the order of closing: one waits for those before it, at most SameMillis.
func dropTrials(tx *state.Tx) {
	var gone []*state.Job
	tx.SharedTrials(func(job *state.Job) bool {
		over := tx.Archived(job) && tx.Now >= job.Finished+state.SameMillis
		if over {
			gone = append(gone, job)
		}
		return over && len(gone) < maxTrialsGone
	})
	for _, job := range gone {
		tx.RemoveJob(job)
	}
}

// dropEntries removes a customer's archived entries from the state, except the newest. As with
// runs, only these are left of earlier commands.
func dropEntries(tx *state.Tx, customer string, keep int) {
	kept := map[*state.Entry]bool{}
	tx.Entries(customer, func(entry *state.Entry) bool {
		if len(kept) < keep {
			kept[entry] = true
		}
		return len(kept) < keep
	})
	var gone []*state.Entry
	tx.PastEntries(customer, func(entry *state.Entry) bool {
		if tx.ArchivedEntry(entry) && !kept[entry] {
			gone = append(gone, entry)
		}
		return tx.ArchivedEntry(entry)
	})
	for _, entry := range gone {
		tx.RemoveEntry(entry)
	}
}
