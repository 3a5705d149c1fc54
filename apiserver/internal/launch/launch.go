// Package launch makes runs. It takes in their link lists, checks what can be checked beforehand,
// and proposes the command that makes a run. It knows no HTTP: callers get a run, or a fault of the
// catalogue. The loop then works the run.
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

// Launcher makes runs. Set its fields before its first use; it is then safe for concurrent use.
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

// Store is what a launch needs of the row store: lists, sites, and the page records and errors of
// earlier runs. It also has what is kept of removed runs.
type Store interface {
	rowstore.Lists
	rowstore.Sites
	rowstore.Pages
	LinkErrors(ctx context.Context, job ids.ID, after *model.Unit,
		most int) ([]rowstore.LinkError, error)
	EachCharged(ctx context.Context, scraper ids.ID, visit func(hashes []uint64) error) error
}

// Guard checks every address before anything is sent to it.
type Guard interface {
	// CheckURL says, without DNS, whether an address can be crawled at all. Its error has the code
	// INVALID_URL.
	CheckURL(url string) error
	// CheckHost resolves a host (without a port) for a customer and says whether it may be reached.
	// Its errors have page codes.
	CheckHost(ctx context.Context, customer, host string) error
}

// Caller is who asks for a run.
type Caller struct {
	auth.Principal
	// View is the state when the call arrived, or later.
	View *client.View
	Call *client.Call // the idempotency of the call; nil without a key
	// Operation names the call in the claim of its list if the call has no key.
	Operation string
	// Job is set to the run that was made, or that may exist despite an error.
	Job ids.ID
	// Joined is set if Job is the trial of another call, which pays for it.
	Joined bool
}

// Errors are the codes that every launch can answer.
func Errors() []fault.Code {
	return []fault.Code{fault.ScraperAlreadyRunning, fault.TierUnavailable,
		fault.WalletInsufficient, fault.LimitReached, fault.IdempotencyInFlight,
		fault.IdempotencyOverflow, fault.SchemaGone, fault.ScraperChanged, fault.OutOfSpace}
}

// affordable refuses a launch that cannot pay for a single page before anything is stored. The
// command makes the final decision.
func affordable(v *client.View, customer string) error {
	w := v.Wallet(customer)
	if w == nil || v.Settings().BillingOff || w.Balance() > 0 || w.Free+w.FreeHeld > 0 {
		return nil
	}
	return fault.New(fault.WalletInsufficient, "the balance is %d micros and no free "+
		"request is left", w.Balance())
}

// idle refuses to launch a scraper that is running. The command makes the final decision.
func idle(v *client.View, scraper ids.ID) error {
	for _, job := range v.OpenJobsOf(scraper) {
		if !job.State.Final() {
			return fault.New(fault.ScraperAlreadyRunning, "job %s of this scraper is still running",
				job.ID)
		}
	}
	return nil
}

// Tiers are the ways of fetching that a run of the scraper may use: those that both the scraper and
// the server allow. Its fault is tier_unavailable.
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
