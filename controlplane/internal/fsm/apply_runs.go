package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

func launchRun(tx *state.Tx, p command.LaunchRunPayload) (command.Launched, error) {
	none := command.Launched{}
	if tx.Customer(p.Customer).Blocked() { // since the call was admitted, or an admin calls
		return none, fault.New(fault.CustomerBlocked, "an admin has blocked this customer: it "+
			"launches no runs")
	}
	if tx.IsShort() {
		return none, errShort()
	}
	if p.Trial != nil {
		return launchTrial(tx, &p)
	}
	scraper, err := launchedScraper(tx, &p)
	if err != nil {
		return none, err
	}
	for _, job := range tx.OpenJobsOf(scraper.ID) {
		if !job.State.Final() {
			return none, fault.New(fault.ScraperAlreadyRunning,
				"job %s of this scraper is still running", job.ID)
		}
	}
	// launchedScraper has checked its schema
	recipe, _ := tx.RecipeOf(scraper.Customer, &scraper.Spec, scraper.Tag)
	if err := chargedBy(recipe, p.Charge); err != nil {
		return none, err
	}
	prices, unpaid, err := fundedPrices(tx, &p)
	if err != nil {
		return none, err
	}
	switch known := tx.Scraper(scraper.ID); {
	case known == nil && p.NewScraper != nil:
		saveNew(tx, &scraper, p.NewScraper)
	case known == nil || known.Revision != scraper.Revision:
		saveScraper(tx, &scraper)
	}
	job := newJob(tx, &p, prices)
	job.Group, job.Scraper, job.Revision = scraper.Group, scraper.ID, scraper.Revision
	job.MaxPages = uint32(recipe.Pagination.MaxPages())
	if unpaid {
		job.State, job.Message = model.Failed, neverToppedUp
	}
	writeRun(tx, job, &state.Entry{Source: model.SourceRun, Scraper: scraper.ID,
		Group: scraper.Group})
	latest := *tx.Scraper(scraper.ID)
	latest.LastJob = p.Job
	tx.PutScraper(&latest)
	if tx.ClusterVersion() >= command.ProfilesSince {
		tx.CountLaunch(scraper.Customer, tx.Now/dayMillis)
	}
	return command.Launched{Job: p.Job, Scraper: scraper.ID, Tag: recipe.Endpoint, Links: p.Links,
		Dropped: p.Dropped,
		State:   job.State, Queued: tx.Now, Message: job.Message}, nil
}

// chargedBy refuses a run whose charge is not that of its recipe's endpoint. The scraper was
// changed during the launch. The pages would be read under one tag and paid under another.
func chargedBy(recipe model.Recipe, charge model.Charge) error {
	if charge.Row != model.EndpointRow(recipe.Endpoint) {
		return fault.New(fault.ScraperChanged, "the scraper was changed while the run was being "+
			"launched; launch it again")
	}
	return nil
}

// neverToppedUp is the message of a run that only money can pay for, when its customer never topped
// up.
const neverToppedUp = "This feature is not part of the free requests. Nothing was fetched or " +
	"charged. Top up your wallet first."

// toppedUp reports whether the wallet ever got money, by a top-up or a positive adjustment. For
// wallets older than ToppedUp it looks at the entries.
func toppedUp(tx *state.Tx, wallet *state.Wallet) bool {
	if wallet.ToppedUp {
		return true
	}
	found := false
	tx.Entries(wallet.Customer, func(e *state.Entry) bool {
		found = e.Amount > 0 && e.Status != state.EntryOpen
		return !found
	})
	if found {
		noted := *wallet
		noted.ToppedUp = true
		tx.PutWallet(&noted)
	}
	return found
}

// fundedPrices returns the prices of a run that may begin, and reduces its tiers to those with a
// price. unpaid says that only money can pay for it, and the customer never had any.
func fundedPrices(tx *state.Tx, p *command.LaunchRunPayload) (prices *state.PriceTable, unpaid bool,
	err error) {
	if len(tx.OpenJobsOfCustomer(p.Customer)) >= maxOpenRuns {
		return nil, false, fault.New(fault.LimitReached, "a customer has at most %d runs at a time",
			maxOpenRuns)
	}
	prices = tx.CurrentPrices()
	wallet := tx.Wallet(p.Customer)
	if wallet == nil || prices == nil {
		return nil, false, fault.New(fault.Unauthorized, "the customer has no wallet")
	}
	if _, ok := prices.Rows.Row(p.Charge.Row); p.Charge.Row != "" && !ok {
		return nil, false, fault.New(fault.TypeNotRunnable, "the price table has no row %s",
			p.Charge.Row)
	}
	p.Tiers = prices.Rows.Covered(p.Tiers, p.Charge.At(""))
	// the domains of the list are not known here
	least, ok := prices.Rows.Least(p.Tiers, p.Charge)
	if !ok {
		return nil, false, fault.New(fault.TypeNotRunnable,
			"no price covers the tiers that the run may use")
	}
	if tx.Settings().BillingOff {
		return prices, false, nil
	}
	unpaid = p.Charge.PaidOnly && !toppedUp(tx, wallet)
	if !unpaid && wallet.Balance() < least &&
		(p.Charge.PaidOnly || wallet.Free+wallet.FreeHeld == 0) {
		return nil, false, fault.New(fault.WalletInsufficient,
			"the balance of %d micros does not pay for one page and no free request can",
			wallet.Balance())
	}
	return prices, unpaid, nil
}

// newJob makes a run from its payload.
func newJob(tx *state.Tx, p *command.LaunchRunPayload, prices *state.PriceTable) *state.Job {
	return &state.Job{ID: p.Job, Customer: p.Customer, List: p.List, Links: p.Links,
		State: model.Pending, Queued: tx.Now,
		Started: tx.Now, Tiers: p.Tiers, Prices: prices.Version, MaxCharge: p.MaxCharge,
		Entry: p.Entry, Index: tx.Index,
		MaxPages: 1, IgnoresRobots: p.IgnoresRobots, Charge: p.Charge, Daily: p.Daily, Rest: p.Rest,
		Given: p.Given}
}

// writeRun writes a run's records. The caller sets the entry's source, scraper and group.
func writeRun(tx *state.Tx, job *state.Job, entry *state.Entry) {
	tx.PutJob(job)
	tx.AddRun(state.NewRun(job.ID))
	entry.ID, entry.Customer, entry.Job = job.Entry, job.Customer, job.ID
	entry.Type, entry.Status, entry.CreatedAt, entry.Created = state.EntryCharge, state.EntryOpen,
		tx.Now, tx.Index
	tx.PutEntry(entry)
}

// launchedScraper returns a launch's scraper, checked and not written. It is the customer's own
// with its current schema, or the new one of a list run.
func launchedScraper(tx *state.Tx, p *command.LaunchRunPayload) (state.Scraper, error) {
	if p.NewScraper != nil {
		return checkScraper(tx, p.NewScraper)
	}
	scraper := tx.Scraper(p.Scraper)
	if scraper == nil || scraper.Customer != p.Customer {
		return state.Scraper{}, fault.New(fault.ScraperNotFound, "no scraper has this id")
	}
	if scraper.Spec.Type == model.File {
		return state.Scraper{}, fault.Invalid(fault.TypeNotRunnable, "type",
			"the rows of this scraper are those of files")
	}
	launched := *scraper
	if launched.Spec.Type == model.SearchEngineSearch {
		launched.Spec.Search = p.Search
	}
	return launched, revise(tx, &launched)
}

func stopRun(tx *state.Tx, p command.StopRunPayload) (command.Stopped, error) {
	var open []*state.Job
	if p.Job.IsZero() {
		scraper := tx.Scraper(p.Scraper)
		if scraper == nil || scraper.Customer != p.Customer {
			return command.Stopped{}, fault.Invalid(fault.NotFound, "id", "no scraper has this id")
		}
		open = tx.OpenJobsOf(p.Scraper)
	} else {
		job := tx.Job(p.Job)
		if job == nil || job.Customer != p.Customer {
			return command.Stopped{}, fault.Invalid(fault.NotFound, "id", "no run has this id")
		}
		open = []*state.Job{job}
	}
	var stopped command.Stopped
	for _, job := range open {
		if job.State.Final() {
			continue
		}
		endRun(tx, job, model.StoppedByCustomer)
		dropUnmerged(tx, job)
		stopped.Jobs = append(stopped.Jobs, job.ID)
	}
	return stopped, nil
}

// endRun sets a run's final state before its list is done: dispatching stops, and what is out
// drains. An upload ends at once.
func endRun(tx *state.Tx, job *state.Job, reason model.StopReason) {
	if job.File {
		stopImport(tx, job, reason)
		return
	}
	ended := *job
	ended.State, ended.Reason, ended.Index = model.Stopped, reason, tx.Index
	tx.PutJob(&ended)
}

func closeRun(tx *state.Tx, p command.CloseRunPayload) (command.None, error) {
	job, run := tx.Job(p.Job), tx.Run(p.Job)
	if job == nil || run == nil || len(run.Out) > 0 {
		return command.None{}, nil
	}
	if !job.State.Final() && run.Closed.GetCardinality() < uint64(job.Links) {
		return command.None{}, nil
	}
	closed := *job
	closed.Closed, closed.Finished, closed.Index = true, tx.Now, tx.Index
	if !closed.State.Final() {
		closed.State = model.Completed
		if closed.Delivered == 0 && closed.Errors > 0 {
			closed.State, closed.Message = model.Failed, "no page was delivered"
		}
	}
	held := holds(tx, &closed, command.Verdict{Odd: p.Odd, Unjudged: p.Unjudged})
	tx.PutJob(&closed)
	conclude(tx, &closed, held, p.Odd)
	tx.DropRun(p.Job)
	pruneRecipes(tx, job.Scraper)
	uncountTrial(tx, &closed)
	entry := *tx.Entry(job.Entry)
	if closed.Trial() && closed.Delivered == 0 && entry.Amount == 0 && tx.ClusterVersion() >= 2 {
		tx.RemoveEntry(&entry) // nothing delivered, no entry (decision 63)
		return command.None{}, nil
	}
	books := openBooks(tx)
	books.seal(books.wallet(job.Customer), &entry, state.EntrySettled)
	tx.PutEntry(&entry)
	books.save()
	return command.None{}, nil
}

func forgetUndone(tx *state.Tx, p command.ForgetUndonePayload) (command.None, error) {
	for _, job := range p.Jobs {
		if undone := tx.UndoneRun(job); undone != nil {
			tx.RemoveUndone(undone)
		}
	}
	return command.None{}, nil
}
