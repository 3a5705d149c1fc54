package signin

import (
	"context"
	"net/http"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// recoverPath is where people request a link to set a new password.
const recoverPath = "/sign-in/recover"

// recoverPage is GET /sign-in/recover.
func (r Resource) recoverPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_recover_page", Routes: operation.Routes("GET " + recoverPath), Group: group,
		Summary: "Shows a form to request a link that sets a new password", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		return r.renderRecover(from, shown{}, 0)
	})
}

func (r Resource) renderRecover(from *operation.Caller, s shown, status int) (operation.Raw,
	error) {
	s.Clear, s.Silent = from.Way == operation.InTheClear, !r.Accounts.SendsLetters()
	return r.render(from, "recover", s, status)
}

type recoverRequest struct {
	Body struct {
		Token string `json:"token" max:"1024"`
		Email string `json:"email" max:"1024"`
	} `body:"form" limit:"4096"`
}

var errNoLetters = fault.New(fault.InvalidRequest, "This service sends no e-mails.")

// enterRecover is POST /sign-in/recover.
func (r Resource) enterRecover() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_recover_form", Routes: operation.Routes("POST " + recoverPath), Group: group,
		Summary: "Sends an account's address a link that sets a new password",
		Description: "The answer is the same whether or not an account has the address. The " +
			"link is valid once, for 30 minutes. An account has at most three links.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *recoverRequest) (operation.Raw,
		error) {
		err := r.askLetter(ctx, from, in, false)
		if err == nil {
			return r.renderRecover(from, shown{Done: true}, 0)
		}
		status := fault.Lookup(fault.CodeOf(err)).Status
		if status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		return r.renderRecover(from, shown{Email: in.Body.Email, Problem: problemText(err)}, status)
	})
}

// askLetter requests an e-mail with a link, if the form is valid.
func (r Resource) askLetter(ctx context.Context, from *operation.Caller, in *recoverRequest,
	signUp bool) error {
	switch {
	case from.Way == operation.InTheClear:
		return errClear
	case !fresh(from, in.Body.Token):
		return errForm
	case !r.Accounts.SendsLetters():
		return errNoLetters
	case signUp && !r.Accounts.SignsUp():
		return errNoSignUp
	case len(api.CheckEmail(in.Body.Email)) > 0:
		return errNoAddress
	}
	retry, err := r.Accounts.SendLetter(ctx, accounts.Asking{Email: in.Body.Email,
		SignUp: signUp, Address: from.Address, Device: from.Cookie(deviceCookie)})
	from.RetryAfter = retry
	return err
}

var errNoAddress = fault.New(fault.InvalidRequest, "This is no e-mail address.")

type newPasswordRequest struct {
	Link string `query:"link" max:"1024" doc:"Link as received by e-mail"`
}

// newPasswordPage is GET /sign-in/new-password.
func (r Resource) newPasswordPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_new_password_page", Routes: operation.Routes("GET " + accounts.LinkPath),
		Group:   group,
		Summary: "Shows a form to set a new password, if the link is valid",
		Description: "Opening the page does not use up the link, since e-mail scanners follow " +
			"links, too.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *newPasswordRequest) (operation.Raw,
		error) {
		return r.renderNewPassword(ctx, from, in.Link, shown{}, 0)
	})
}

// renderNewPassword renders the page of a link. For an invalid link the page says so.
func (r Resource) renderNewPassword(ctx context.Context, from *operation.Caller, link string,
	s shown, status int) (operation.Raw, error) {
	if s.Clear = from.Way == operation.InTheClear; s.Clear {
		return r.render(from, "new-password", s, status)
	}
	letter, err := r.Accounts.Follow(ctx, link)
	switch code := fault.CodeOf(err); {
	case err == nil:
		s.Email, s.Link, s.New = letter.Email, link, letter.Account.IsZero()
	case code == fault.Unauthorized:
		s.Problem = problemText(err)
	default:
		return operation.Raw{}, err
	}
	return r.render(from, "new-password", s, status)
}

type newPasswordForm struct {
	Body struct {
		Token string `json:"token" max:"1024"`
		Link  string `json:"link" max:"1024"`
		Next  string `json:"next" max:"1024"`
		Again string `json:"again" max:"1024"`
	} `body:"form" limit:"8192"`
}

// enterNewPassword is POST /sign-in/new-password.
func (r Resource) enterNewPassword() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_new_password_form", Routes: operation.Routes("POST " + accounts.LinkPath),
		Group:       group,
		Summary:     "Sets the new password of the link's account, or creates the account",
		Description: "All sessions and links of the account end.",
		Access:      auth.Public, Rate: limits.Anonymous, Browser: true,
		Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *newPasswordForm) (operation.Raw,
		error) {
		made, err := r.useLink(ctx, from, in)
		if err == nil {
			return r.render(from, "new-password", shown{Done: true, New: made}, 0)
		}
		status := fault.Lookup(fault.CodeOf(err)).Status
		if status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		return r.renderNewPassword(ctx, from, in.Body.Link, shown{Problem: problemText(err)},
			status)
	})
}

// useLink sets the new password or creates the account, if the form is valid.
func (r Resource) useLink(ctx context.Context, from *operation.Caller,
	in *newPasswordForm) (made bool, err error) {
	switch {
	case from.Way == operation.InTheClear:
		return false, errClear
	case !fresh(from, in.Body.Token):
		return false, errForm
	case in.Body.Next != in.Body.Again:
		return false, errDiffer
	}
	used, retry, err := r.Accounts.UseLink(ctx, in.Body.Link, in.Body.Next, from.Address)
	from.RetryAfter = retry
	if err != nil {
		return false, err
	}
	forget(from) // the session has ended if it was of the account
	from.SetCookie(deviceCookie, used.Device, deviceLife)
	return used.Made, nil
}
