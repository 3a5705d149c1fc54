package signin

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// AccountInput is a new account.
type AccountInput struct {
	Email       string `json:"email" required:"true" max:"254" format:"email" doc:"Never changes"`
	Password    string `json:"password" required:"true" min:"12" max:"256" doc:"Not the e-mail address, and not one that everybody takes"`
	CustomerRef string `json:"customerRef" max:"128" form:"line" doc:"As whom the account signs in; \"\" is a customer of its own"`
	Admin       bool   `json:"admin" doc:"It administers the service"`
}

type accountRequest struct {
	Body AccountInput `body:"json" limit:"4096"`
}

// Validate implements operation.Validator.
func (r *accountRequest) Validate() fault.List { return api.CheckEmail(r.Body.Email) }

// Account is the account of a person who signs in here.
type Account struct {
	ID                ids.ID   `json:"id"`
	Email             string   `json:"email"`
	CustomerRef       string   `json:"customerRef"`
	Admin             bool     `json:"admin"`
	CreatedAt         api.Time `json:"createdAt"`
	DisabledAt        api.Time `json:"disabledAt" doc:"Since when it does not sign in; null: it does"`
	PasswordChangedAt api.Time `json:"passwordChangedAt" doc:"Null: it is the first password"`
}

// NewAccount converts an account to the API's form.
func NewAccount(a *client.Account) Account {
	return Account{ID: a.ID, Email: a.Email, CustomerRef: a.Customer, Admin: a.Admin,
		CreatedAt: api.Time(a.CreatedAt), DisabledAt: api.Time(a.DisabledAt),
		PasswordChangedAt: api.Time(a.PasswordAt)}
}

// create is POST /api/admin/accounts.
func (r Resource) create() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_create_account", Routes: operation.Routes("POST /api/admin/accounts"),
		Group: group, Summary: "Makes an account with which a person signs in",
		Description: "Its customer comes into being with it. A repeat is refused, as the address " +
			"is taken.",
		Access: auth.Admin, Rate: limits.General,
		Errors: []fault.Code{fault.EmailTaken, fault.LimitReached},
	}, func(ctx context.Context, _ *operation.Caller, in *accountRequest) (Account, error) {
		made, err := r.Accounts.Create(ctx, accounts.NewAccount{Email: in.Body.Email,
			Password: in.Body.Password, Customer: in.Body.CustomerRef, Admin: in.Body.Admin})
		if err != nil {
			return Account{}, err
		}
		return NewAccount(&made), nil
	})
}
