package signin

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// programsPath is where people see which programs they have authorized.
const programsPath = "/sign-in/programs"

// Grant is a program that may call on the customer's behalf.
type Grant struct {
	ID        ids.ID      `json:"id"`
	Name      string      `json:"name" doc:"Name that the program gave itself"`
	Scope     model.Scope `json:"scope" enum:"LLM_READ,LLM_FULL"`
	AccountID ids.ID      `json:"accountId" doc:"Account that granted it"`
	CreatedAt api.Time    `json:"createdAt"`
	UsedAt    api.Time    `json:"usedAt" doc:"When the program last got tokens"`
}

// NewGrant converts a grant to the API's form.
func NewGrant(g *client.Grant) Grant {
	return Grant{ID: g.ID, Name: g.Name, Scope: g.Scope, AccountID: g.Account,
		CreatedAt: api.Time(g.CreatedAt), UsedAt: api.Time(g.UsedAt)}
}

// GrantList lists the grants of a customer.
type GrantList struct {
	Grants []Grant `json:"grants"`
}

// listGrants is GET /api/auth/grants.
func (r Resource) listGrants() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_grants", Routes: operation.Routes("GET /api/auth/grants"), Group: programs,
		Summary:     "Lists the programs that may call on the customer's behalf",
		Description: "Oldest first.", Access: auth.Read, Agents: operation.Reads,
		Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (GrantList, error) {
		list := GrantList{Grants: []Grant{}}
		for _, g := range from.View.GrantsOf(from.Customer) {
			list.Grants = append(list.Grants, NewGrant(g))
		}
		return list, nil
	})
}

type grantRequest struct {
	ID ids.ID `path:"id" doc:"The grant's id"`
}

// endGrant is DELETE /api/auth/grants/{id}.
func (r Resource) endGrant() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_end_grant", Routes: operation.Routes("DELETE /api/auth/grants/{id}"),
		Group: programs, Summary: "Ends a grant and all its tokens at once",
		Access: auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *grantRequest) (operation.None,
		error) {
		if grant := from.View.Grant(in.ID); grant == nil || grant.Customer != from.Customer {
			return operation.None{}, fault.Invalid(fault.NotFound, "id", "no grant has this id")
		}
		_, err := client.Do(ctx, r.Client, client.EndGrant{Customer: from.Customer, Grant: in.ID},
			nil)
		return operation.None{}, err
	})
}

// programsPage is GET /sign-in/programs.
func (r Resource) programsPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_programs_page", Routes: operation.Routes("GET " + programsPath), Group: programs,
		Summary: "Shows the programs that the account has authorized, or redirects to the " +
			"sign-in page",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		return r.showPrograms(ctx, from, shown{}, 0)
	})
}

// showPrograms renders the page of the account's grants.
func (r Resource) showPrograms(ctx context.Context, from *operation.Caller, s shown,
	status int) (operation.Raw, error) {
	return r.showOwn(ctx, from, s, status, "programs", func(v *client.View, s *shown) {
		s.Grants = v.Grants(from.Session.Account)
	})
}

type endRequest struct {
	Body struct {
		Token string `json:"token" max:"1024"`
		Grant string `json:"grant" max:"1024"`
	} `body:"form" limit:"4096"`
}

// endProgram is POST /sign-in/programs.
func (r Resource) endProgram() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_programs_form", Routes: operation.Routes("POST " + programsPath), Group: programs,
		Summary: "Ends the grant in the form, and shows the others", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *endRequest) (operation.Raw, error) {
		return r.endOwn(ctx, from, in.Body.Token, in.Body.Grant, r.showPrograms, r.Grants.End)
	})
}
