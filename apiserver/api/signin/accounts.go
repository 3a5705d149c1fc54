package signin

import (
	"context"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

type accountsRequest struct {
	Q        string `query:"q" max:"254" doc:"Only accounts with this text in their e-mail address; case does not matter. A whole address finds only its account"`
	Customer string `query:"customer" max:"128" doc:"Only accounts of the customer with this customerUniqueRef"`
	Disabled bool   `query:"disabled" default:"false" doc:"Only disabled accounts"`
	Page     int    `query:"page" default:"0" min:"0" code:"invalid_page" doc:"Page number, from 0; page times size may be at most 100,000"`
	Size     int    `query:"size" default:"50" min:"1" clamp:"200" code:"invalid_page"`
}

func (r *accountsRequest) wants(a *client.Account) bool {
	return (!r.Disabled || a.DisabledAt != 0) && (r.Customer == "" || a.Customer == r.Customer) &&
		strings.Contains(strings.ToLower(a.Email), strings.ToLower(r.Q))
}

// each visits the accounts that may be wanted, by address. An index finds a whole address without a
// walk over all accounts.
func (r *accountsRequest) each(view *client.View, visit func(*client.Account) bool) {
	if account := view.AccountByEmail(r.Q); account != nil {
		visit(account)
		return
	}
	view.EachAccount(visit)
}

// list is GET /api/admin/accounts.
func (r Resource) list() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_accounts", Routes: operation.Routes("GET /api/admin/accounts"),
		Group: group, Summary: "Lists the accounts by e-mail address",
		Access: auth.Admin, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, in *accountsRequest) (api.Page[Account],
		error) {
		if err := api.Reach(in.Page, in.Size, "narrow the list with q or customer"); err != nil {
			return api.Page[Account]{}, err
		}
		var content []Account
		found, first := 0, in.Page*in.Size
		in.each(from.View, func(a *client.Account) bool {
			if in.wants(a) {
				if found >= first && found < first+in.Size {
					content = append(content, NewAccount(a))
				}
				found++
			}
			return true
		})
		return api.NewPage(content, int64(found), in.Page, in.Size), nil
	})
}

type accountIDRequest struct {
	ID ids.ID `path:"id" doc:"The account's id"`
}

// disable is PUT /api/admin/accounts/{id}/disable.
func (r Resource) disable() *operation.Operation {
	return r.switching("svc_admin_disable_account", "PUT /api/admin/accounts/{id}/disable",
		"Disables an account: it cannot sign in, and its sessions end",
		"Its sessions are refused from the next request on, on every server. So are tokens of "+
			"the issuer that signs its person in. Their open streams end. The customer's API "+
			"keys and other accounts stay valid. Repeating the call changes nothing.", false)
}

// enable is DELETE /api/admin/accounts/{id}/disable.
func (r Resource) enable() *operation.Operation {
	return r.switching("svc_admin_enable_account", "DELETE /api/admin/accounts/{id}/disable",
		"Lets an account sign in again", "If the account is not disabled, nothing changes.", true)
}

func (r Resource) switching(id, route, summary, description string,
	enable bool) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: id, Routes: operation.Routes(route), Group: group, Summary: summary,
		Description: description, Access: auth.Admin, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *accountIDRequest) (operation.None,
		error) {
		own := from.Account
		if from.Session != nil {
			own = from.Session.Account
		}
		if !enable && !own.IsZero() && own == in.ID {
			return operation.None{}, fault.Invalid(fault.InvalidRequest, "id",
				"an admin cannot disable the account that it has signed in with: nobody might be "+
					"left to take it back")
		}
		_, err := client.Do(ctx, r.Client,
			client.DisableAccount{Account: in.ID, Enable: enable}, nil)
		return operation.None{}, err
	})
}

// remove is DELETE /api/admin/accounts/{id}.
func (r Resource) remove() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_remove_account", Routes: operation.Routes("DELETE /api/admin/accounts/{id}"),
		Group: group, Summary: "Removes an account, and ends its sessions",
		Description: "The customer and all its data stay. The e-mail address can be used by " +
			"another account.",
		Access: auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *accountIDRequest) (operation.None,
		error) {
		if from.Session != nil && from.Session.Account == in.ID {
			return operation.None{}, fault.Invalid(fault.InvalidRequest, "id",
				"an admin cannot remove the account that it has signed in with: nobody might be "+
					"left")
		}
		if from.View.Account(in.ID) == nil {
			return operation.None{}, fault.Invalid(fault.NotFound, "id", "no account has this id")
		}
		_, err := client.Do(ctx, r.Client, client.RemoveAccount{Account: in.ID}, nil)
		return operation.None{}, err
	})
}
