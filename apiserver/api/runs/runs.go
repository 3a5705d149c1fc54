// Package runs owns the operations that start and stop runs (specification 4.1, decisions 8 and 9),
// and with them the intake of link lists. What a run then does is the loop's; what became of it is
// in package jobs.
package runs

import (
	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

const group = "Runs"

// Resource is the operations that start and stop runs, and what they use.
type Resource struct{ api.Services }

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.start(),
		r.stop(),
		r.sample(),
		r.startList(),
	}
}

// Run is a run that was launched.
type Run struct {
	JobID     ids.ID         `json:"jobId"`
	ScraperID ids.ID         `json:"scraperId"`
	Status    model.JobState `json:"status" doc:"PENDING"`
	QueuedAt  api.Time       `json:"queuedAt"`
}

// launchErrors are what LaunchRun and the claim before it can answer.
var launchErrors = []fault.Code{fault.ScraperAlreadyRunning, fault.TierUnavailable,
	fault.WalletInsufficient, fault.LimitReached,
	fault.IdempotencyInFlight, fault.IdempotencyOverflow, fault.SchemaGone, fault.ScraperChanged}

// affordable refuses a launch that cannot fetch a single page before anything is taken in. The
// command decides.
func affordable(v *client.View, customer string) error {
	w := v.Wallet(customer)
	if w == nil || w.Balance() > 0 || w.Free+w.FreeHeld > 0 {
		return nil
	}
	return fault.New(fault.WalletInsufficient, "the balance is %d micros and no free "+
		"request is left", w.Balance())
}

// idle refuses to launch a scraper that runs. The command decides.
func idle(v *client.View, scraper ids.ID) error {
	for _, job := range v.OpenJobsOf(scraper) {
		if !job.State.Final() {
			return fault.New(fault.ScraperAlreadyRunning, "job %s of this scraper is still running",
				job.ID)
		}
	}
	return nil
}

// tiersOf are the ways of fetching that a run of the scraper may use: what the scraper allows of
// what the server has.
func tiersOf(v *client.View, scraper *model.Scraper) (model.TierSet, error) {
	asked, there := scraper.Tiers(), v.Tiers()
	if asked&there != 0 {
		return asked & there, nil
	}
	field := "config.tiers"
	if scraper.Config == nil || len(scraper.Config.Tiers) == 0 {
		field = "sourceConfig.pagination.type"
	}
	return 0, fault.Invalid(fault.TierUnavailable, field,
		"the scraper needs one of the tiers %s; this server has %s",
		asked, there)
}
