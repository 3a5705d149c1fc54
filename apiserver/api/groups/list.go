package groups

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// List is GET /api/scraper/group/list.
func List(api.Services) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_groups", Routes: operation.Routes("GET /api/scraper/group/list"), Group: group,
		Summary: "Lists the customer's own groups, oldest first",
		Access:  auth.Read, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) ([]Group, error) {
		list := []Group{}
		for _, g := range from.View.Groups(from.Customer) {
			list = append(list, newGroup(g))
		}
		return list, nil
	})
}
