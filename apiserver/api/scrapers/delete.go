package scrapers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// target is the target of both calls of a deletion.
type target struct {
	ID       ids.ID `path:"id"`
	WithData bool   `query:"withData" default:"false" doc:"Also delete its rows"`
}

// deletion is the requested deletion, with the count of rows that it affects. Rows of runs that are
// not closed may still increase, so they are not counted.
func (in *target) deletion(ctx context.Context, r Resource, from *operation.Caller) (
	client.Deletion, error) {
	d := client.Deletion{Customer: from.Customer, Operation: client.OpDeleteScraper,
		Target: in.ID}
	if !in.WithData {
		return d, nil
	}
	d.Query = client.WithData
	view, err := r.Reader.Fresh(ctx)
	if err != nil {
		return d, err
	}
	scraper, err := ownership.Scraper(view, from.Customer, in.ID, "id")
	if err != nil {
		return d, err
	}
	open := view.OpenJobsOf(scraper.ID)
	for _, group := range view.GroupsOf(scraper) {
		scope := client.Shown(view, group, scraper.ID)
		for _, job := range open {
			scope.Without = append(scope.Without, job.ID)
		}
		rows, err := r.Store.Count(ctx, scope, nil)
		if err != nil {
			return d, fmt.Errorf("rows of scraper %s: %w", scraper.ID, err)
		}
		d.Rows += rows
	}
	return d, nil
}

var deleteErrors = []fault.Code{fault.ScraperNotFound}

// previewDelete is POST /api/scraper/{id}/preview-delete.
func (r Resource) previewDelete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:      "svc_preview_delete_scraper",
		Routes:  operation.Routes("POST /api/scraper/{id}/preview-delete"),
		Group:   group,
		Summary: "Shows what deleting a scraper would do",
		Description: api.PreviewDescription + " rows counts the rows of ended runs; the " +
			"openRuns are stopped.",
		Access: auth.Write, Agents: operation.Adds, Rate: limits.General, Errors: deleteErrors,
	}, func(ctx context.Context, from *operation.Caller, in *target) (api.DeletionPreview, error) {
		deletion, err := in.deletion(ctx, r, from)
		if err != nil {
			return api.DeletionPreview{}, err
		}
		return api.PreviewDelete(ctx, r.Client, deletion, in.warnings)
	})
}

func (in *target) warnings(p *client.Preview) []string {
	said := []string{"Its runs leave the history, unless deleted ones are asked for."}
	if in.WithData {
		said = append(said, api.LostRows(p))
	} else {
		said = append(said, "Its rows stay in the group.")
	}
	return slices.Concat(said, api.LostSites(p), api.StoppedRuns(p, in.WithData))
}

type deleteRequest struct {
	target
	api.PreviewToken
}

// delete is DELETE /api/scraper/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteScraper, Routes: operation.Routes("DELETE /api/scraper/{id}"),
		Group:    group,
		Summary:  "Deletes a scraper after a preview",
		ToAgents: api.CommitToAgents + " Its runs are stopped.",
		Description: api.CommitDescription + " Its runs are stopped. Their records and charges " +
			"stay. Without withData its rows stay, too, and can be read by group or run. With " +
			"withData its rows are hidden at once and deleted in the background.",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.LimitReached, fault.ScraperNotFound},
			api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		deletion, err := in.deletion(ctx, r, from)
		if errors.Is(err, fault.New(fault.ScraperNotFound, "")) {
			deletion.Rows, err = 0, nil // a repeated call gets the result of the first
		}
		if err != nil {
			return operation.None{}, err
		}
		_, err = client.Do(ctx, r.Client,
			client.DeleteScraper{Deletion: deletion, Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}
