package signin

import (
	"context"
	"net/http"

	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// passwordPath is where a person changes the password.
const passwordPath = "/sign-in/password"

// PasswordInput is a change of password.
type PasswordInput struct {
	CurrentPassword string `json:"currentPassword" required:"true" max:"256"`
	NewPassword     string `json:"newPassword" required:"true" min:"12" max:"256" doc:"Neither the e-mail address nor a common password"`
}

type passwordRequest struct {
	Body PasswordInput `body:"json" limit:"4096"`
}

// changePassword is POST /api/auth/password.
func (r Resource) changePassword() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_change_password", Routes: operation.Routes("POST /api/auth/password"),
		Group: group, Summary: "Changes the password of the signed-in account",
		Description: "All other sessions of the account end; this one stays. A wrong current " +
			"password counts as a sign-in attempt.",
		Access: auth.SignInOnly, Rate: limits.General, Browser: true,
	}, func(ctx context.Context, from *operation.Caller, in *passwordRequest) (operation.None,
		error) {
		return operation.None{}, r.change(ctx, from, in.Body.CurrentPassword, in.Body.NewPassword)
	})
}

// change changes the password of the caller's account.
func (r Resource) change(ctx context.Context, from *operation.Caller, current,
	next string) error {
	if from.Way == operation.InTheClear {
		return errClear
	}
	retry, err := r.Accounts.ChangePassword(ctx, &from.Principal, accounts.Change{
		Current: current, Next: next, Address: from.Address, Device: from.Cookie(deviceCookie)})
	from.RetryAfter = retry
	return err
}

// passwordPage is GET /sign-in/password.
func (r Resource) passwordPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_password_page", Routes: operation.Routes("GET " + passwordPath), Group: group,
		Summary: "Shows a form to change the password, or redirects to the sign-in page",
		Access:  auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		return r.showPassword(ctx, from, shown{}, 0)
	})
}

// showPassword renders the page for a person who has signed in.
func (r Resource) showPassword(ctx context.Context, from *operation.Caller, s shown,
	status int) (operation.Raw, error) {
	if err := r.look(ctx, from, &s); err != nil {
		return operation.Raw{}, err
	}
	if s.Customer == "" && !s.Clear {
		return back(), nil
	}
	return r.render(from, "password", s, status)
}

type passwordForm struct {
	Body struct {
		Token   string `json:"token" max:"1024"`
		Current string `json:"current" max:"1024"`
		Next    string `json:"next" max:"1024"`
		Again   string `json:"again" max:"1024"`
	} `body:"form" limit:"4096"`
}

var errDiffer = fault.New(fault.InvalidRequest, "The two new passwords differ.")

// enterPassword is POST /sign-in/password.
func (r Resource) enterPassword() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_password_form", Routes: operation.Routes("POST " + passwordPath), Group: group,
		Summary: "Accepts the password form, and shows the result", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *passwordForm) (operation.Raw, error) {
		var s shown
		if err := r.look(ctx, from, &s); err != nil {
			return operation.Raw{}, err
		}
		if s.Customer == "" && !s.Clear {
			return back(), nil
		}
		var err error = errForm
		switch {
		case from.Way != operation.InTheClear && !fresh(from, in.Body.Token):
		case in.Body.Next != in.Body.Again:
			err = errDiffer
		default:
			err = r.change(ctx, from, in.Body.Current, in.Body.Next)
		}
		if err == nil {
			s.Done = true
			return r.render(from, "password", s, 0)
		}
		status := fault.Lookup(fault.CodeOf(err)).Status
		if status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		s.Problem = problemText(err)
		return r.render(from, "password", s, status)
	})
}
