package admin

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

type customerRequest struct {
	Ref string `path:"ref" min:"1" max:"128" doc:"The customer's customerUniqueRef"`
}

// blockCustomer is PUT /api/admin/customers/{ref}/block.
func (r Resource) blockCustomer() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_block_customer", Group: group,
		Routes: operation.Routes("PUT /api/admin/customers/{ref}/block",
			"POST /api/admin/customers/{ref}/block"),
		Summary: "Blocks a customer: its credentials are refused from now on",
		Description: "Every call with one of its keys or tokens gets 403 customer_blocked, and " +
			"its open streams and exports end. No new runs are launched, not even by an admin " +
			"on its behalf. Runs under way go on and are charged. To end them, an admin stops " +
			"them with X-Customer-Ref. Nothing is removed. Repeating the call changes nothing. " +
			"Admins cannot block themselves.",
		Access: auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *customerRequest) (operation.None,
		error) {
		if in.Ref == from.Subject {
			return operation.None{}, fault.Invalid(fault.InvalidRequest, "ref",
				"an admin cannot block itself: nobody might be left to take it back")
		}
		_, err := client.Do(ctx, r.Client,
			client.BlockCustomer{Customer: in.Ref, By: from.Subject}, nil)
		return operation.None{}, err
	})
}

// unblockCustomer is DELETE /api/admin/customers/{ref}/block.
func (r Resource) unblockCustomer() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_unblock_customer",
		Routes: operation.Routes("DELETE /api/admin/customers/{ref}/block"), Group: group,
		Summary:     "Unblocks a customer: its credentials are valid again",
		Description: "If the customer is not blocked, nothing changes.",
		Access:      auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, _ *operation.Caller, in *customerRequest) (operation.None,
		error) {
		_, err := client.Do(ctx, r.Client, client.UnblockCustomer{Customer: in.Ref}, nil)
		return operation.None{}, err
	})
}
