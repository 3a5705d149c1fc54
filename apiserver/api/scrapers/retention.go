package scrapers

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// RetentionInput sets how many runs keep their rows.
type RetentionInput struct {
	RetentionCount *int `json:"retentionCount" required:"true" min:"1" doc:"How many of the newest runs keep their rows; null: all"`
}

type retentionRequest struct {
	ID   ids.ID         `path:"id"`
	Body RetentionInput `body:"json"`
}

// retention is PUT /api/scraper/{id}/retention.
func (r Resource) retention() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_update_scraper_retention",
		Routes: operation.Routes("PUT /api/scraper/{id}/retention"), Group: group,
		Summary: "Sets how many of a scraper's runs keep their rows",
		Description: "When a run ends, the rows of older runs are deleted in the background. " +
			"Runs without rows do not count. Run records and charges stay. The group's count " +
			"takes precedence over the scraper's.",
		Access: auth.Write, Agents: operation.Sets, Forgets: true,
		Rate: limits.General, Idempotency: operation.Optional,
		Errors: []fault.Code{fault.ScraperNotFound},
	}, func(ctx context.Context, from *operation.Caller, in *retentionRequest) (Scraper, error) {
		put := client.PutRetention{Customer: from.Customer, Scraper: in.ID}
		if count := in.Body.RetentionCount; count != nil {
			put.Count = *count
		}
		saved, err := client.Do(ctx, r.Client, put, from.Call)
		if err != nil {
			return Scraper{}, err
		}
		return NewScraper(from.View, &saved), nil
	})
}
