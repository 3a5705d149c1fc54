package groups

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type startsRequest struct {
	ID ids.ID `path:"id"`
}

// starts is GET /api/scraper/group/{id}/starts.
func (Resource) starts() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_group_starts",
		Routes: operation.Routes("GET /api/scraper/group/{id}/starts"),
		Group:  group,
		Summary: "Returns when a group next starts automatically, and the outcome of its " +
			"newest starts",
		Description: "Scrapers with a schedule of their own have starts of their own. " +
			"SCHEDULED_START_REFUSED is sent for the first start in which the balance, the " +
			"plan or a recipe refuses scrapers. Later starts refused for the same reason send " +
			"nothing.",
		Access: auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.NotFound},
	}, func(_ context.Context, from *operation.Caller, in *startsRequest) (api.Starts, error) {
		g, err := ownership.Group(from.View, from.Customer, in.ID, "id")
		if err != nil {
			return api.Starts{}, err
		}
		return api.StartsOfGroup(from.View, g), nil
	})
}
