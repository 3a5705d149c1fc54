package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

func launchRun(tx *state.Tx, p command.LaunchRunPayload) (command.Launched, error) {
	none := command.Launched{}
	scraper, err := launchedScraper(tx, &p)
	if err != nil {
		return none, err
	}
	for _, job := range tx.OpenJobsOf(scraper.ID) {
		if !job.State.Final() {
			return none, fault.New(fault.ScraperAlreadyRunning, "job %s of this scraper is still running", job.ID)
		}
	}
	if len(tx.OpenJobsOfCustomer(p.Customer)) >= maxOpenRuns {
		return none, fault.New(fault.LimitReached, "a customer has at most %d runs at a time", maxOpenRuns)
	}
	prices := tx.CurrentPrices()
	wallet := tx.Wallet(p.Customer)
	if wallet == nil || prices == nil {
		return none, fault.New(fault.Unauthorized, "the customer has no wallet")
	}
	tiers := priced(prices, p.Tiers)
	cheapest, ok := cheapestPrice(prices, tiers)
	if !ok {
		return none, fault.New(fault.TypeNotRunnable, "no price covers the tiers that the run may use")
	}
	if wallet.Balance() < cheapest && wallet.Free+wallet.FreeHeld == 0 {
		return none, fault.New(fault.WalletInsufficient,
			"the balance of %d micro-cents does not pay for one page and no free request is left", wallet.Balance())
	}
	if known := tx.Scraper(scraper.ID); known == nil || known.Revision != scraper.Revision {
		saveScraper(tx, &scraper)
	}
	job := &state.Job{ID: p.Job, Customer: p.Customer, Group: scraper.Group, Scraper: scraper.ID, Revision: scraper.Revision,
		List: p.List, Links: p.Links, State: model.Pending, Queued: tx.Now, Started: tx.Now, Tiers: tiers,
		Prices: prices.Version, MaxCharge: p.MaxCharge, Entry: p.Entry, Index: tx.Index,
		MaxPages: uint32(scraper.Spec.SourceConfig.Pagination.MaxPages()), IgnoresRobots: p.IgnoresRobots}
	tx.PutJob(job)
	tx.AddRun(state.NewRun(p.Job))
	tx.PutEntry(&state.Entry{ID: p.Entry, Customer: p.Customer, Type: state.EntryCharge, Status: state.EntryOpen,
		Source: state.SourceRun, Job: p.Job, Scraper: scraper.ID, Group: scraper.Group, CreatedAt: tx.Now, Created: tx.Index})
	latest := *tx.Scraper(scraper.ID)
	latest.LastJob = p.Job
	tx.PutScraper(&latest)
	return command.Launched{Job: p.Job, Scraper: scraper.ID, Tag: scraper.Tag, Links: p.Links, Dropped: p.Dropped,
		State: model.Pending, Queued: tx.Now}, nil
}

// launchedScraper is the scraper of a launch: the customer's own, with its schema as it is now, or the new one of a list
// run, checked and not written.
func launchedScraper(tx *state.Tx, p *command.LaunchRunPayload) (state.Scraper, error) {
	if p.NewScraper != nil {
		return checkScraper(tx, p.NewScraper)
	}
	scraper := tx.Scraper(p.Scraper)
	if scraper == nil || scraper.Customer != p.Customer {
		return state.Scraper{}, fault.New(fault.ScraperNotFound, "no scraper has this id")
	}
	launched := *scraper
	return launched, revise(tx, &launched)
}

// priceOf is the price of a row in a table.
func priceOf(table *state.PriceTable, rowKey string) (model.Price, bool) {
	at := slices.IndexFunc(table.Rows, func(p model.Price) bool { return p.RowKey == rowKey })
	if at < 0 {
		return model.Price{}, false
	}
	return table.Rows[at], true
}

// priced are the tiers that the table has a price for: a page by any other would cost nothing.
func priced(table *state.PriceTable, tiers model.TierSet) (set model.TierSet) {
	for _, tier := range tiers.Tiers() {
		if _, found := priceOf(table, tier.PriceRow()); found {
			set |= model.TiersOf(tier)
		}
	}
	return set
}

// cheapestPrice is the lowest price among the tiers that have one.
func cheapestPrice(table *state.PriceTable, tiers model.TierSet) (micros int64, ok bool) {
	for _, tier := range tiers.Tiers() {
		if price, found := priceOf(table, tier.PriceRow()); found && (!ok || price.Micros < micros) {
			micros, ok = price.Micros, true
		}
	}
	return micros, ok
}

func stopRun(tx *state.Tx, p command.StopRunPayload) (command.Stopped, error) {
	scraper := tx.Scraper(p.Scraper)
	if scraper == nil || scraper.Customer != p.Customer {
		return command.Stopped{}, fault.New(fault.NotFound, "no scraper has this id")
	}
	var stopped command.Stopped
	for _, job := range tx.OpenJobsOf(p.Scraper) {
		if job.State.Final() {
			continue
		}
		endRun(tx, job, model.StoppedByCustomer)
		stopped.Jobs = append(stopped.Jobs, job.ID)
	}
	return stopped, nil
}

// endRun sets a run's final state before its list is done with: the window stops, what is out drains.
func endRun(tx *state.Tx, job *state.Job, reason model.StopReason) {
	ended := *job
	ended.State, ended.Reason, ended.Index = model.Stopped, reason, tx.Index
	tx.PutJob(&ended)
}

func closeRun(tx *state.Tx, p command.CloseRunPayload) (None, error) {
	job, run := tx.Job(p.Job), tx.Run(p.Job)
	if job == nil || run == nil || len(run.Out) > 0 {
		return None{}, nil
	}
	if !job.State.Final() && run.Closed.GetCardinality() < uint64(job.Links) {
		return None{}, nil
	}
	closed := *job
	closed.Closed, closed.Finished, closed.Index = true, tx.Now, tx.Index
	if !closed.State.Final() {
		closed.State = model.Completed
		if closed.Delivered == 0 && closed.Errors > 0 {
			closed.State, closed.Message = model.Failed, "no page was delivered"
		}
	}
	tx.PutJob(&closed)
	tx.DropRun(p.Job)
	pruneRecipes(tx, job.Scraper)
	books := openBooks(tx)
	entry := *tx.Entry(job.Entry)
	books.seal(books.wallet(job.Customer), &entry, state.EntrySettled)
	tx.PutEntry(&entry)
	books.save()
	return None{}, nil
}
