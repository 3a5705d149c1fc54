package scrapers

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// target is what both calls of a deletion name.
type target struct {
	ID       ids.ID `path:"id"`
	WithData bool   `query:"withData" default:"false" doc:"Its rows, too; not in this version"`
}

func (in *target) deletion(from *operation.Caller) (client.Deletion, error) {
	if in.WithData {
		return client.Deletion{}, fault.Invalid(fault.NotSupported, "withData",
			"this version deletes no rows with a scraper")
	}
	return client.Deletion{Customer: from.Customer, Operation: client.OpDeleteScraper,
		Target: in.ID}, nil
}

var deleteErrors = []fault.Code{fault.ScraperNotFound, fault.ScraperAlreadyRunning,
	fault.NotSupported}

// previewDelete is POST /api/scraper/{id}/preview-delete.
func (r Resource) previewDelete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:          "svc_preview_delete_scraper",
		Routes:      operation.Routes("POST /api/scraper/{id}/preview-delete"),
		Group:       group,
		Summary:     "Shows what the deletion of a scraper would do",
		Description: api.PreviewDescription,
		Access:      auth.Write, Rate: limits.General, Errors: deleteErrors,
	}, func(ctx context.Context, from *operation.Caller, in *target) (api.DeletionPreview, error) {
		deletion, err := in.deletion(from)
		if err != nil {
			return api.DeletionPreview{}, err
		}
		return api.PreviewDelete(ctx, r.Client, deletion, deleteWarnings)
	})
}

func deleteWarnings(*client.Preview) []string {
	return []string{"Its runs stay in the history, and their rows in the group."}
}

type deleteRequest struct {
	target
	api.PreviewToken
}

// delete is DELETE /api/scraper/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteScraper, Routes: operation.Routes("DELETE /api/scraper/{id}"),
		Group:   group,
		Summary: "Deletes a scraper after a preview",
		Description: api.CommitDescription + " Its runs and their rows stay; the rows are read " +
			"by group or run from then on. A scraper that runs is refused.",
		Access: auth.Write, Rate: limits.General, Idempotency: operation.Required,
		Errors: append(deleteErrors, api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		deletion, err := in.deletion(from)
		if err != nil {
			return operation.None{}, err
		}
		_, err = client.Do(ctx, r.Client,
			client.DeleteScraper{Deletion: deletion, Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}
