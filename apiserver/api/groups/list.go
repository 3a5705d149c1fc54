package groups

import (
	"context"
	"io"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
)

// listedAtOnce is how many groups of an answer are in memory at once; a customer may have 10,000.
const listedAtOnce = 1_000

type listRequest struct {
	Q    string   `query:"q" agent:"hidden" max:"200" doc:"Text in the name; case does not matter"`
	Sort string   `query:"sort" agent:"hidden" max:"64" code:"invalid_sort" doc:"name or createdAt, then asc or desc; default: oldest first"`
	From api.Time `query:"from" agent:"hidden" doc:"Created at this time or later"`
	To   api.Time `query:"to" agent:"hidden" doc:"Created before this time"`
}

// Validate implements operation.Validator.
func (in *listRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// of returns the wanted groups of a list, in the wanted order. It modifies list.
func (in *listRequest) of(list []*client.Group) ([]*client.Group, error) {
	return api.Named[*client.Group]{Q: in.Q, Sort: in.Sort, From: in.From, To: in.To,
		Name:    func(g *client.Group) string { return g.Name },
		Created: func(g *client.Group) int64 { return g.CreatedAt },
	}.Of(list)
}

// list is GET /api/scraper/group/list.
func (Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_groups", Routes: operation.Routes("GET /api/scraper/group/list"),
		Group:   group,
		Summary: "Lists the customer's own groups, oldest first",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidSort},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) (
		operation.Streamed[[]Group], error) {
		var answer operation.Streamed[[]Group]
		view := from.View
		all, err := in.of(view.Groups(from.Customer))
		if err != nil {
			return answer, err
		}
		next := func() (part []Group, err error) {
			for _, g := range all[:min(len(all), listedAtOnce)] {
				part = append(part, NewGroup(view, g))
			}
			all = all[len(part):]
			return part, nil
		}
		if len(all) > listedAtOnce {
			answer.Write = func(_ context.Context,
				w io.Writer) error {
				return api.WriteArray(w, next)
			}
			return answer, nil
		}
		part, err := next()
		answer.Whole = append([]Group{}, part...)
		return answer, err
	})
}
