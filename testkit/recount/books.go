package recount

import "shoal.dev/shoal/pkg/model"

// counters compares the job record (decisions 13 and 38).
func (c *check) counters() {
	var success, failed int64
	for _, chain := range c.chains {
		whole := true
		errored := false
		for _, p := range chain.pages {
			whole = whole && (len(p.rows) > 0 || len(p.errors) > 0)
			errored = errored || len(p.errors) > 0
		}
		switch {
		case errored:
			failed++
		case whole:
			success++
		}
	}
	job := c.got.Job
	compare := func(name string, got, want int64) {
		if got != want {
			c.problem("%s is %d, the recount is %d", name, got, want)
		}
	}
	compare("totalLinks", job.TotalLinks, int64(len(c.chains)))
	compare("itemsQuantity", job.ItemsQuantity, int64(len(c.got.Rows)))
	compare("totalRequests", job.TotalRequests, int64(c.sum.Delivered+c.sum.Errored))
	compare("errorLinks", job.ErrorLinks, failed)
	if c.run.Partial && c.run.Pagination.MaxPages() > 1 {
		// If the page past a chain's end has not been requested, the link is still pending.
		if job.SuccessLinks > success {
			c.problem("successLinks is %d, the recount is at most %d", job.SuccessLinks, success)
		}
	} else {
		compare("successLinks", job.SuccessLinks, success)
	}
	want := model.Completed
	switch {
	case c.run.Partial:
		want = model.Stopped
	case c.sum.Delivered == 0 && c.sum.Errored > 0:
		want = model.Failed
	}
	if job.State != string(want) {
		c.problem("the run is %s, want %s", job.State, want)
	}
}

// money compares the ledger entry with the delivered pages. Each charged page costs its price as
// often as the run says, or a free request.
func (c *check) money() {
	e := c.got.Entry
	var paid, free, amount int64
	for _, line := range e.Lines {
		paid += line.Pages
		free += line.FreePages
		amount += line.AmountMicros
		if line.UnitPriceMicros != c.run.Price {
			c.problem("the line %q costs %d a page, the price is %d", line.Label,
				line.UnitPriceMicros, c.run.Price)
		}
	}
	_, times := c.run.Charge.Of(model.Plain)
	delivered := int64(c.sum.Delivered - c.sum.Uncharged)
	charged := (delivered - free) * int64(times) * c.run.Price
	c.sum.Charged = charged
	if paid != (delivered-free)*int64(times) {
		c.problem("%d pages are charged and %d free, %d were delivered that cost %d each", paid,
			free, delivered, times)
	}
	most := min(c.run.Free, delivered)
	if c.run.Charge.PaidOnly {
		most = 0
	}
	if free < 0 || free > most {
		c.problem("%d pages are free, at most %d may be: the wallet had %d free requests and %d "+
			"pages were delivered",
			free, most, c.run.Free, delivered)
	}
	if !c.run.Partial && c.sum.Errored == 0 && free != most && c.run.Pagination.MaxPages() == 1 {
		c.problem("%d pages are free, want %d: nothing was in the way", free, most)
	}
	if e.AmountMicros != -charged || amount != -charged || e.FreeRequestsDelta != -free {
		c.problem("the entry takes %d (lines %d) and %d free requests, the recount %d and %d",
			e.AmountMicros, amount, e.FreeRequestsDelta, -charged, -free)
	}
	if e.Type != "CHARGE" || e.Status != "SETTLED" || e.Source != string(model.SourceRun) ||
		e.BalanceAfterMicros == nil ||
		e.JobID != c.got.Job.ID {
		c.problem("the entry of an ended run of %s is %+v", c.got.Job.ID, e)
	}
}

// CheckWallet compares a wallet with its whole ledger. The sum of the entries must be the balance.
// Once all are sealed, the last sealed entry must show that sum.
func CheckWallet(wallet Wallet, ledger []Transaction) error {
	var c check
	var balance, free int64
	sealed, last := true, len(ledger) == 0
	for _, e := range ledger {
		balance += e.AmountMicros
		free += e.FreeRequestsDelta
		if e.Type == "CHARGE" &&
			(e.AmountMicros > 0 || e.BalanceAfterMicros != nil && *e.BalanceAfterMicros < 0) {
			c.problem("a crawl takes more than there is: %+v", e)
		}
		sealed = sealed && e.BalanceAfterMicros != nil
	}
	for _, e := range ledger {
		last = last || e.BalanceAfterMicros != nil && *e.BalanceAfterMicros == balance
	}
	if sealed && !last {
		c.problem("no entry stands at the sum of all, %d", balance)
	}
	if wallet.BalanceMicros != balance || wallet.FreeRequestsRemaining != free {
		c.problem("the wallet has %d and %d free requests, its ledger sums up to %d and %d",
			wallet.BalanceMicros, wallet.FreeRequestsRemaining, balance, free)
	}
	return c.err()
}

func (c *check) err() error {
	if c.problems.Count == 0 {
		return nil
	}
	return &c.problems
}
