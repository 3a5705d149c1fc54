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
		Summary: "Removes a node that is gone for good from the cluster",
		Description: "A running node is refused: stop it first. A node whose vote is needed " +
			"for a majority is refused, too. What its fetcher held goes to others when its " +
			"leases end. If the node comes back, it joins again.",
		Access: auth.Admin, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound, fault.NodeAlive, fault.QuorumAtRisk},
	}, func(ctx context.Context, _ *operation.Caller, in *removeNodeRequest) (operation.None,
		error) {
		return operation.None{}, r.Operator.RemoveNode(ctx, in.Name)
	})
}
