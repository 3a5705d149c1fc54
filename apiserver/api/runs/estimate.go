package runs

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const estimateID = "svc_estimate_scraper"

type estimateRequest struct {
	ID    ids.ID `path:"id"`
	Links uint32 `query:"links" min:"1" max:"5000000" doc:"Addresses that the run will have; those of the scraper or its site, or of the list last given, unless told"`
}

// RunEstimate is the probable cost of a run launched now. Money is in micros.
type RunEstimate struct {
	Links          uint32 `json:"links" doc:"Addresses that the estimate is for"`
	Pages          int64  `json:"pages" doc:"Pages delivered"`
	MinMicros      int64  `json:"minMicros" doc:"Micros, millionths of a euro"`
	MaxMicros      int64  `json:"maxMicros" doc:"Micros, millionths of a euro; 9007199254740991 stands for all that is more"`
	BalanceMicros  int64  `json:"balanceMicros" doc:"Micros, millionths of a euro"`
	Affordable     bool   `json:"affordable" doc:"The balance pays for maxMicros, or nothing is charged"`
	RunsConsidered int    `json:"runsConsidered" doc:"Runs of the past that the estimate goes by, at most 20; 0: it is the range of all that may be"`
}

// estimate is POST /api/scraper/{id}/estimate.
func (r Resource) estimate() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: estimateID, Routes: operation.Routes("POST /api/scraper/{id}/estimate"), Group: group,
		Summary: "Says what a run of a scraper will probably cost",
		Description: "It goes by the newest 20 completed runs with the recipe as it is now. Their " +
			"pages and tiers a link count, at today's prices, and a margin of 11 to 30%. Without " +
			"one it is all that may be. That is from one page a link by the cheapest tier to the " +
			"longest chains by the dearest. A sample narrows the tiers to those it needed. " +
			"Where domains have prices of their own, those of the scraper's addresses count. " +
			"Free requests are taken off. A new list is estimated by the scraper that is to be " +
			"its template, with links. It is no cap: maxChargeMicros of a launch is.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.ScraperNotFound, fault.TierUnavailable, fault.SchemaGone,
			fault.SearchNotConfigured, fault.TypeNotRunnable},
	}, func(ctx context.Context, from *operation.Caller, in *estimateRequest) (RunEstimate, error) {
		e, err := r.Launcher.Estimate(ctx, api.Launching(from, estimateID), in.ID, in.Links)
		if err != nil {
			return RunEstimate{}, err
		}
		balance := balanceOf(from)
		return RunEstimate{Links: e.Links, Pages: e.Pages, MinMicros: e.Min, MaxMicros: e.Max,
			BalanceMicros: balance, Affordable: e.Max == 0 || balance >= e.Max,
			RunsConsidered: e.Runs}, nil
	})
}

// balanceOf is the balance of the caller's wallet.
func balanceOf(from *operation.Caller) int64 {
	return wallet.New(from.View, from.Customer).BalanceMicros
}
