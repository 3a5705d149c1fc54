package admin

import (
	"context"
	"io"
	"iter"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// Recount is POST /api/admin/billing/recount. It changes nothing, but it is work.
func Recount(s api.Services) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_recount", Routes: operation.Routes("POST /api/admin/billing/recount"),
		Group:   group,
		Summary: "Computes every closed run's charge anew from its page records",
		Description: "Nothing is changed. A run whose ledger entry is not what its page records " +
			"say has equal false. Runs that a " +
			"restore undid, and of which something is stored still, have undone true; they are " +
			"in no ledger.",
		Access: auth.Admin, Rate: limits.General, Timeout: 10 * time.Minute,
	}, func(ctx context.Context, from *operation.Caller,
		_ *struct{}) (operation.Streamed[[]api.Recounted], error) {
		var answer operation.Streamed[[]api.Recounted]
		for _, err := range s.Recount(ctx, from.View) {
			if err != nil {
				return answer, err // it has a code as long as nothing is sent
			}
			break
		}
		answer.Write = func(ctx context.Context, w io.Writer) error {
			next, stop := iter.Pull2(s.Recount(ctx, from.View))
			defer stop()
			return api.WriteArray(w, func() ([]api.Recounted, error) {
				run, err, more := next()
				if !more {
					return nil, nil
				}
				return []api.Recounted{run}, err
			})
		}
		return answer, nil
	})
}
