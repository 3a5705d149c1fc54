package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

type drainRequest struct {
	Name string `path:"name" min:"1" max:"128" doc:"The node's name"`
}

// drain is PUT /api/admin/nodes/{name}/drain.
func (r Resource) drain() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_drain_node", Group: group,
		Routes: operation.Routes("PUT /api/admin/nodes/{name}/drain",
			"POST /api/admin/nodes/{name}/drain"),
		Summary: "Drains a node: its fetcher hands over its shards and takes none",
		Description: "The fetcher finishes what it has begun to fetch. The rest goes to other " +
			"fetchers; if there are none, it waits for one. GET /api/admin/nodes shows the " +
			"progress: the node is done when it is DRAINED. The drain lasts until it is " +
			"cancelled, even if the node restarts. Repeating the call changes nothing.",
		Access: auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *drainRequest) (operation.None, error) {
		return order(ctx, r.Client, from.View, in.Name, true)
	})
}

// undrain is DELETE /api/admin/nodes/{name}/drain.
func (r Resource) undrain() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_undrain_node",
		Routes: operation.Routes("DELETE /api/admin/nodes/{name}/drain"), Group: group,
		Summary: "Cancels a drain: the node's fetcher gets its share of the shards again",
		Access:  auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *drainRequest) (operation.None, error) {
		return order(ctx, r.Client, from.View, in.Name, false)
	})
}

// order passes the order on. Undraining is never refused: a node may have lost the role since.
func order(ctx context.Context, c client.Proposer, view *client.View, name string,
	draining bool) (operation.None, error) {
	for _, node := range view.Nodes() {
		if draining && node.Name == name && node.Capacity == 0 {
			return operation.None{}, fault.New(fault.InvalidRequest,
				"node %q is no fetcher: it has nothing to hand over", name)
		}
	}
	_, err := client.Do(ctx, c, client.DrainNode{Name: name, Draining: draining}, nil)
	return operation.None{}, err
}
