package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

type removeNodeRequest struct {
	Name string `path:"name" min:"1" max:"128" doc:"The node's name"`
}

// removeNode is DELETE /api/admin/nodes/{name}.
func (r Resource) removeNode() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_remove_node", Routes: operation.Routes("DELETE /api/admin/nodes/{name}"),
		Group:   group,
		Summary: "Takes a node that is gone for good out of the cluster",
		Description: "A node that is there is refused: stop it first. So is one without whose " +
			"vote no majority would be left. " +
			"What its fetcher held goes to others when its leases have ended. Should the node " +
			"come back all the same, it " +
			"joins again.",
		Access: auth.Admin, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound, fault.NodeAlive, fault.QuorumAtRisk},
	}, func(ctx context.Context, _ *operation.Caller, in *removeNodeRequest) (operation.None,
		error) {
		return operation.None{}, r.Operator.RemoveNode(ctx, in.Name)
	})
}
