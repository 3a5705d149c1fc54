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
	Password    string `json:"password" required:"true" min:"12" max:"256" doc:"Neither the e-mail address nor a common password"`
	CustomerRef string `json:"customerRef" max:"128" form:"line" doc:"The customer as which the account signs in; \"\" makes a new customer"`
	Admin       bool   `json:"admin" doc:"The account administers the service"`
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
	DisabledAt        api.Time `json:"disabledAt" doc:"Since when the account is disabled; null: it is not"`
	PasswordChangedAt api.Time `json:"passwordChangedAt" doc:"When the password last changed; null: it is still the first one"`
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
		Group: group, Summary: "Creates an account with which a person signs in",
		Description: "A new customer is created with the account. A repeated call is refused, " +
			"because the address is taken.",
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
