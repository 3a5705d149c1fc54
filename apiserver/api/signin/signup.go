package signin

import (
	"context"
	"net/http"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// signUpPath is where people create accounts for themselves.
const signUpPath = "/sign-up"

// signUpPage is GET /sign-up.
func (r Resource) signUpPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_up_page", Routes: operation.Routes("GET " + signUpPath), Group: group,
		Summary: "Shows a sign-up form, if the operator allows sign-ups",
		Access:  auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		return r.renderSignUp(from, shown{}, 0)
	})
}

func (r Resource) renderSignUp(from *operation.Caller, s shown, status int) (operation.Raw, error) {
	s.Clear, s.SignUp = from.Way == operation.InTheClear, r.Accounts.SignsUp()
	s.Agreed = r.Agreement
	return r.render(from, "sign-up", s, status)
}

var errNoSignUp = fault.New(fault.InvalidRequest, "The operator of this service makes accounts.")

// enterSignUp is POST /sign-up.
func (r Resource) enterSignUp() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_up_form", Routes: operation.Routes("POST " + signUpPath), Group: group,
		Summary: "Sends a link that creates an account to its address",
		Description: "The answer is the same whether or not an account already has the " +
			"address. If one has, its owner gets a notice with a link that sets a new " +
			"password. The link is valid once, for 30 minutes; whoever follows it chooses the " +
			"password. The account gets a new customer of its own.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *recoverRequest) (operation.Raw,
		error) {
		err := r.askLetter(ctx, from, in, true)
		if err == nil {
			return r.renderSignUp(from, shown{Done: true}, 0)
		}
		status := fault.Lookup(fault.CodeOf(err)).Status
		if status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		return r.renderSignUp(from, shown{Email: in.Body.Email, Problem: problemText(err)}, status)
	})
}
