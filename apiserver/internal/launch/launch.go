// Package launch owns how runs come to be. It has the intake of their link lists, what is checked
// before anything is made, and the command that makes a run. It knows no HTTP: who asks for a run
// gets it, or a fault of the catalogue. What a run then does is the loop's.
package launch

import (
	"context"
	"log/slog"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Launcher makes runs. Its fields are set before its first use, and it is safe for concurrent use
// then.
type Launcher struct {
	Client  Client
	Store   Store
	History *client.History
	Clock   clock.Clock
	IDs     ids.Source
	Guard   Guard
	Plans   *plans.Source
	Logger  *slog.Logger
	// Engines are the search engines that the operator has configured, the default first.
	Engines []model.SearchEngine
	// Node and Boot name this process in claims of idempotency keys.
	Node string
	Boot ids.ID
}

// Client is what a launch needs of the control plane.
type Client interface {
	client.Proposer
	client.Reader
}

// Store is what a launch needs of the row store. That is lists, sites, the page records and errors
// of earlier runs, and what is kept of those that are gone.
type Store interface {
	rowstore.Lists
	rowstore.Sites
	rowstore.Pages
	LinkErrors(ctx context.Context, job ids.ID, after *model.Unit,
		most int) ([]rowstore.LinkError, error)
	EachCharged(ctx context.Context, scraper ids.ID, visit func(hashes []uint64) error) error
}

// Guard is the address check of everything that goes out.
type Guard interface {
	// CheckURL says without DNS whether an address can be crawled at all. Its error has the code
	// INVALID_URL.
	CheckURL(url string) error
	// CheckHost resolves a host (without port) and says whether it may be reached. Its errors have
	// page codes.
	CheckHost(ctx context.Context, host string) error
}

// Caller is who asks for a run.
type Caller struct {
	auth.Principal
	// View is the state as it was when the call arrived, or later.
	View *client.View
	Call *client.Call // the idempotency of the call; nil without a key
	// Operation names the call in the claim of its list where it has no key.
	Operation string
	// Job is the run that was made, or may have been in spite of an error; out.
	Job ids.ID
	// Joined says that Job is the trial of another call, which pays for it; out.
	Joined bool
}

// Errors are what every launch can answer.
func Errors() []fault.Code {
	return []fault.Code{fault.ScraperAlreadyRunning, fault.TierUnavailable,
		fault.WalletInsufficient, fault.LimitReached, fault.IdempotencyInFlight,
		fault.IdempotencyOverflow, fault.SchemaGone, fault.ScraperChanged, fault.OutOfSpace}
}

// affordable refuses a launch that cannot fetch a single page before anything is taken in. The
// command decides.
func affordable(v *client.View, customer string) error {
	w := v.Wallet(customer)
	if w == nil || v.Settings().BillingOff || w.Balance() > 0 || w.Free+w.FreeHeld > 0 {
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

// Tiers are the ways of fetching that a run of the scraper may use: what the scraper allows of what
// the server has. Its fault is tier_unavailable.
func Tiers(v *client.View, scraper *model.Scraper) (model.TierSet, error) {
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
