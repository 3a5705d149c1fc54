package keys

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type deleteRequest struct {
	ID ids.ID `path:"id" doc:"The key's id, not its prefix"`
}

// delete is DELETE /api/key/{id}.
func (r Resource) delete() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_delete_key", Routes: operation.Routes("DELETE /api/key/{id}"), Group: group,
		Summary: "Revokes an API key at once",
		Description: "A key may revoke any key of its customer, itself included; keys of scope " +
			"LLM_READ cannot.",
		Access: auth.Write, Agents: operation.Destroys, Rate: limits.General,
		Errors: []fault.Code{fault.KeyNotFound},
	}, func(ctx context.Context, from *operation.Caller, in *deleteRequest) (operation.None,
		error) {
		_, err := client.Do(ctx, r.Client, client.RevokeKey{Customer: from.Customer, ID: in.ID},
			nil)
		return operation.None{}, err
	})
}
