package admin

import (
	"context"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// Recount is POST /api/admin/billing/recount. It changes nothing, but it is work.
func Recount(s api.Services) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_recount", Routes: operation.Routes("POST /api/admin/billing/recount"), Group: group,
		Summary: "Computes every closed run's charge anew from its page records",
		Description: "Nothing is changed. A run whose ledger entry is not what its page records say has equal false. Runs that a " +
			"restore undid, and of which something is stored still, have undone true; they are in no ledger.",
		Access: auth.Admin, Rate: limits.General, Timeout: 10 * time.Minute,
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) ([]api.Recounted, error) {
		runs, err := s.Recount(ctx, from.View)
		if runs == nil {
			runs = []api.Recounted{}
		}
		return runs, err
	})
}
