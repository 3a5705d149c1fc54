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
	Links uint32 `query:"links" min:"1" max:"5000000" doc:"How many addresses the run will have. Default: those of the scraper or its site, or of its newest list"`
}

// RunEstimate is the probable cost of a run launched now. Money is in micros.
type RunEstimate struct {
	Links          uint32 `json:"links" doc:"How many addresses the estimate is for"`
	Pages          int64  `json:"pages" doc:"Pages delivered"`
	MinMicros      int64  `json:"minMicros" doc:"Micros, millionths of a euro"`
	MaxMicros      int64  `json:"maxMicros" doc:"Micros, millionths of a euro; 9007199254740991 means that much or more"`
	BalanceMicros  int64  `json:"balanceMicros" doc:"Micros, millionths of a euro"`
	Affordable     bool   `json:"affordable" doc:"The balance covers maxMicros, or nothing is charged"`
	RunsConsidered int    `json:"runsConsidered" doc:"How many past runs the estimate is based on, at most 20; 0: it is the whole possible range"`
}

// estimate is POST /api/scraper/{id}/estimate.
func (r Resource) estimate() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: estimateID, Routes: operation.Routes("POST /api/scraper/{id}/estimate"), Group: group,
		Summary: "Estimates what a run of a scraper will cost",
		Description: "It is based on up to 20 of the newest completed runs with the current " +
			"recipe. It takes their pages and tiers per link at today's prices, with a margin " +
			"of 11 to 30%. Without such runs it is the whole possible range. That is from one " +
			"page per link by the cheapest tier to the longest chains by the most expensive. A " +
			"sample narrows the tiers to those that it needed. If domains have their own " +
			"prices, those of the scraper's addresses count. Free requests are deducted. For a " +
			"new list, estimate its template scraper and give links. The estimate is not a " +
			"cap: maxChargeMicros of a launch is.",
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
