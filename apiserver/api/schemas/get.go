package schemas

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type getRequest struct {
	ID ids.ID `path:"id"`
}

// get is GET /api/schema/get/{id}.
func (Resource) get() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_schema", Routes: operation.Routes("GET /api/schema/get/{id}"), Group: group,
		Summary: "Reads a schema of the customer, or a global one",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.SchemaNotFound},
	}, func(_ context.Context, from *operation.Caller, in *getRequest) (Schema, error) {
		s, err := ownership.Schema(from.View, from.Customer, in.ID, "id")
		if err != nil {
			return Schema{}, err
		}
		return NewSchema(s), nil
	})
}

type versionRequest struct {
	Type    string `path:"type" enum:"PRODUCT,REVIEW,ARTICLE,JOB_POSTING,REAL_ESTATE,EVENT,ORGANIZATION,SERP,CUSTOM"`
	Version int64  `path:"version" min:"0"`
}

// getGlobal is GET /api/schema/{type}/{version}.
func (Resource) getGlobal() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_get_global_schema", Routes: operation.Routes("GET /api/schema/{type}/{version}"),
		Group:   group,
		Summary: "Reads the global schema of a type and version",
		Access:  auth.Admin, Rate: limits.Read,
		Errors: []fault.Code{fault.SchemaNotFound},
	}, func(_ context.Context, from *operation.Caller, in *versionRequest) (Schema, error) {
		s := from.View.GlobalSchema(in.Type, in.Version)
		if s == nil {
			return Schema{}, fault.Invalid(fault.SchemaNotFound, "version",
				"there is no such schema")
		}
		return NewSchema(s), nil
	})
}

type listRequest struct {
	Q    string   `query:"q" agent:"hidden" max:"200" doc:"Text in the name; case does not matter"`
	Sort string   `query:"sort" agent:"hidden" max:"64" code:"invalid_sort" doc:"name or createdAt, then asc or desc; default: oldest first"`
	From api.Time `query:"from" agent:"hidden" doc:"Created at this time or later"`
	To   api.Time `query:"to" agent:"hidden" doc:"Created before this time"`
}

// Validate implements operation.Validator.
func (in *listRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// of returns the entries of a list that the request asks for.
func (in *listRequest) of(list []*client.Schema) ([]SchemaListEntry, error) {
	wanted, err := api.Named[*client.Schema]{Q: in.Q, Sort: in.Sort, From: in.From, To: in.To,
		Name:    func(s *client.Schema) string { return s.Name },
		Created: func(s *client.Schema) int64 { return s.CreatedAt },
	}.Of(list)
	return newList(wanted), err
}

// list is GET /api/schema/customer.
func (Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_customer_schemas", Routes: operation.Routes("GET /api/schema/customer"),
		Group:   group,
		Summary: "Lists the customer's own schemas, oldest first",
		Access:  auth.Read, Agents: operation.Reads, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidSort},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) ([]SchemaListEntry, error) {
		return in.of(from.View.Schemas(from.Customer))
	})
}

// listGlobal is GET /api/schema.
func (Resource) listGlobal() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_global_schemas", Routes: operation.Routes("GET /api/schema"), Group: group,
		Summary: "Lists the global schemas, oldest first",
		Access:  auth.Admin, Rate: limits.Read,
		Errors: []fault.Code{fault.InvalidSort},
	}, func(_ context.Context, from *operation.Caller, in *listRequest) ([]SchemaListEntry, error) {
		return in.of(from.View.Schemas(""))
	})
}
