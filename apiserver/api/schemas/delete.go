package schemas

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

func deletion(from *operation.Caller, id ids.ID) client.Deletion {
	return client.Deletion{Customer: from.Customer, Operation: client.OpDeleteSchema, Target: id}
}

type previewRequest struct {
	ID ids.ID `path:"id"`
}

// previewDelete is POST /api/schema/customer/{id}/preview-delete.
func (r Resource) previewDelete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_preview_delete_customer_schema",
		Routes: operation.Routes("POST /api/schema/customer/{id}/preview-delete"), Group: group,
		Summary:     "Shows what deleting a schema of the customer would do",
		Description: api.PreviewDescription,
		Access:      auth.Write, Agents: operation.Adds, Rate: limits.General,
		Errors: []fault.Code{fault.SchemaNotFound},
	}, func(ctx context.Context, from *operation.Caller,
		in *previewRequest) (api.DeletionPreview, error) {
		return api.PreviewDelete(ctx, r.Client, deletion(from, in.ID), warnings)
	})
}

func warnings(p *client.Preview) []string {
	if n := p.Cascade.Count("scrapers"); n > 0 {
		return []string{"Runs of " + api.Counted(n, "scraper", "scrapers") +
			" with this schema will fail."}
	}
	return nil
}

type deleteRequest struct {
	ID ids.ID `path:"id"`
	api.PreviewToken
}

// delete is DELETE /api/schema/customer/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteSchema, Routes: operation.Routes("DELETE /api/schema/customer/{id}"),
		Group:    group,
		Summary:  "Deletes a schema of the customer after a preview",
		ToAgents: api.CommitToAgents,
		Description: api.CommitDescription + " AI_CONF scrapers that refer to the schema stay, " +
			"and fail at their next run.",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.SchemaNotFound}, api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		_, err := client.Do(ctx, r.Client,
			client.DeleteSchema{Deletion: deletion(from, in.ID), Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}
