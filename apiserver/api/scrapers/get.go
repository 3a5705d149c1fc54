package scrapers

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/ownership"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type getRequest struct {
	ID ids.ID `path:"id"`
}

// get is GET /api/scraper/{id}.
func (Resource) get() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_scraper", Routes: operation.Routes("GET /api/scraper/{id}"), Group: group,
		Summary: "Returns a scraper",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.ScraperNotFound},
	}, func(_ context.Context, from *operation.Caller, in *getRequest) (Scraper, error) {
		s, err := ownership.Scraper(from.View, from.Customer, in.ID, "id")
		if err != nil {
			return Scraper{}, err
		}
		return NewScraper(from.View, s), nil
	})
}

// getV2 is GET /api/scraper/v2/{id}.
func (Resource) getV2() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_scraper_v2", Routes: operation.Routes("GET /api/scraper/v2/{id}"),
		Group:   group,
		Summary: "Returns a scraper in the enriched form",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.ScraperNotFound},
	}, func(_ context.Context, from *operation.Caller, in *getRequest) (EnrichedScraper, error) {
		s, err := ownership.Scraper(from.View, from.Customer, in.ID, "id")
		if err != nil {
			return EnrichedScraper{}, err
		}
		return newEnriched(from.View, s), nil
	})
}
