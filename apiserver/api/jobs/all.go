package jobs

import (
	"context"
	"fmt"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

type allRequest struct {
	Limit  int    `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor string `query:"cursor" doc:"nextCursor of the page before"`
}

// all is GET /api/scraper/load-history/all.
func (r Resource) all() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_all_scraper_jobs",
		Routes: operation.Routes("GET /api/scraper/load-history/all"), Group: group,
		Summary: "Reads all of the customer's runs, newest first, by cursor",
		Description: "There is no last page: the cursor leads to the first run that is still " +
			"kept. Runs that are launched meanwhile are not among those that follow.",
		Access: auth.Read, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller, in *allRequest) (api.CursorPage[Job],
		error) {
		page := api.CursorPage[Job]{Items: []Job{}}
		var behind *rowstore.PastPlace
		if in.Cursor != "" {
			behind = &rowstore.PastPlace{}
			if err := api.ReadCursor(in.Cursor, behind, "jobs", from.Customer); err != nil {
				return page, err
			}
		}
		found, err := r.History.RunsBefore(ctx, from.View, from.Customer, behind, in.Limit+1)
		if err != nil {
			return page, fmt.Errorf("history: %w", err)
		}
		page.HasMore = len(found) > in.Limit
		for _, j := range found[:min(in.Limit, len(found))] {
			page.Items = append(page.Items, newJob(j))
		}
		if page.HasMore {
			last := found[in.Limit-1]
			next := api.NewCursor(rowstore.PastPlace{Value: last.Queued, ID: last.ID}, "jobs",
				from.Customer)
			page.NextCursor = &next
		}
		return page, nil
	})
}
