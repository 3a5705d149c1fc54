package scrapers

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/pkg/fault"
)

// starts is GET /api/scraper/{id}/starts.
func (Resource) starts() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_scraper_starts", Routes: operation.Routes("GET /api/scraper/{id}/starts"),
		Group: group,
		Summary: "Returns when a scraper next starts automatically, and the outcome of its " +
			"newest starts",
		Description: "A scraper without its own schedule starts with its group, and the starts " +
			"are the group's. SCHEDULED_START_REFUSED is sent for the first start that the " +
			"balance, the plan or the recipe refuses. Later starts refused for the same reason " +
			"send nothing.",
		Access: auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.ScraperNotFound},
	}, func(_ context.Context, from *operation.Caller, in *getRequest) (api.Starts, error) {
		s, err := ownership.Scraper(from.View, from.Customer, in.ID, "id")
		if err != nil {
			return api.Starts{}, err
		}
		return api.StartsOf(from.View, s), nil
	})
}
