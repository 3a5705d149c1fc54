package keys

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// KeyList lists a customer's keys, oldest first.
type KeyList struct {
	Keys []Key `json:"keys"`
}

type listRequest struct {
	Q    string   `query:"q" agent:"hidden" max:"200" doc:"Text in the name; case does not matter"`
	Sort string   `query:"sort" agent:"hidden" max:"64" code:"invalid_sort" doc:"name or createdAt, then asc or desc; default: oldest first"`
	From api.Time `query:"from" agent:"hidden" doc:"Created at this time or later"`
	To   api.Time `query:"to" agent:"hidden" doc:"Created before this time"`
}

// Validate implements operation.Validator.
func (in *listRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// list is GET /api/key/list.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_keys", Routes: operation.Routes("GET /api/key/list"), Group: group,
		Summary: "Lists the API keys, oldest first, without their secrets",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidSort},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) (KeyList, error) {
		list := KeyList{Keys: []Key{}}
		wanted, err := api.Named[*client.Key]{Q: in.Q, Sort: in.Sort, From: in.From, To: in.To,
			Name:    func(k *client.Key) string { return k.Name },
			Created: func(k *client.Key) int64 { return k.CreatedAt },
		}.Of(from.View.Keys(from.Customer))
		for _, k := range wanted {
			list.Keys = append(list.Keys, NewKey(k, r.Touches))
		}
		return list, err
	})
}
