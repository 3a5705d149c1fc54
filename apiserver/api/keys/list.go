package keys

import (
	"context"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// KeyList is a customer's keys, oldest first.
type KeyList struct {
	Keys []Key `json:"keys"`
}

// list is GET /api/key/list.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_keys", Routes: operation.Routes("GET /api/key/list"), Group: group,
		Summary: "Lists the API keys, oldest first, without their secrets",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (KeyList, error) {
		list := KeyList{Keys: []Key{}}
		for _, k := range from.View.Keys(from.Customer) {
			list.Keys = append(list.Keys, NewKey(k, r.Touches))
		}
		return list, nil
	})
}
