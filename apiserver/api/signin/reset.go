package signin

import (
	"context"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// PasswordLink is the address of a page that sets the password of an account.
type PasswordLink struct {
	Link      string   `json:"link" doc:"Begins with / if the server does not know its public address"`
	ExpiresAt api.Time `json:"expiresAt"`
}

// handLink is POST /api/admin/accounts/{id}/password-link.
func (r Resource) handLink() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_password_link",
		Routes: operation.Routes("POST /api/admin/accounts/{id}/password-link"), Group: group,
		Summary: "Makes a link with which a person sets an account's password",
		Description: "The link is valid once, for 24 hours, and replaces all other links of " +
			"the account. Give it only to that person: whoever has it controls the account. " +
			"Sessions end when the password is set.",
		Access: auth.Admin, Rate: limits.General,
		Errors: []fault.Code{fault.NotFound, fault.AccountDisabled},
	}, func(ctx context.Context, _ *operation.Caller, in *accountIDRequest) (PasswordLink, error) {
		link, expires, err := r.Accounts.HandLink(ctx, in.ID)
		return PasswordLink{Link: link, ExpiresAt: api.Time(expires)}, err
	})
}

// NewPasswordInput is a password that an admin sets for an account.
type NewPasswordInput struct {
	Password string `json:"password" required:"true" min:"12" max:"256" doc:"Neither the e-mail address nor a common password"`
}

type setPasswordRequest struct {
	ID   ids.ID           `path:"id" doc:"The account's id"`
	Body NewPasswordInput `body:"json" limit:"4096"`
}

// setPassword is PUT /api/admin/accounts/{id}/password.
func (r Resource) setPassword() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_admin_set_password",
		Routes: operation.Routes("PUT /api/admin/accounts/{id}/password"), Group: group,
		Summary:     "Sets a new password for an account, and ends its sessions",
		Description: "Then the admin knows the password, too: a link is better.",
		Access:      auth.Admin, Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, _ *operation.Caller, in *setPasswordRequest) (operation.None,
		error) {
		return operation.None{}, r.Accounts.SetPassword(ctx, in.ID, in.Body.Password)
	})
}
