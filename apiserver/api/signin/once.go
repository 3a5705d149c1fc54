package signin

import (
	"cmp"
	"context"
	"net/http"

	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

type onceRequest struct {
	Link string `query:"link" max:"256" doc:"Link as printed by the demo"`
}

// oncePage is GET /sign-in/once.
func (r Resource) oncePage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_once_page", Routes: operation.Routes("GET " + accounts.OncePath), Group: group,
		Summary: "Shows a sign-in button to a visitor with a one-time link",
		Access:  auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(_ context.Context, from *operation.Caller, in *onceRequest) (operation.Raw, error) {
		return r.renderOnce(from, in.Link, shown{}, 0)
	})
}

// renderOnce renders the page of a one-time link. For an invalid link the page says so.
func (r Resource) renderOnce(from *operation.Caller, link string, s shown,
	status int) (operation.Raw, error) {
	if s.Clear = from.Way != operation.OnTheSpot; !s.Clear && s.Problem == "" {
		email, err := r.Accounts.LookOnce(link, from.Address)
		if err != nil {
			s.Problem = problemText(err)
		} else {
			s.Email, s.Link = email, link
		}
	}
	return r.render(from, "once", s, status)
}

type onceForm struct {
	Body struct {
		Token string `json:"token" max:"1024"`
		Link  string `json:"link" max:"1024"`
	} `body:"form" limit:"4096"`
}

// enterOnce is POST /sign-in/once.
func (r Resource) enterOnce() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_once_form", Routes: operation.Routes("POST " + accounts.OncePath), Group: group,
		Summary: "Begins the session of a one-time link, and redirects to the portal",
		Access:  auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *onceForm) (operation.Raw, error) {
		err := r.openOnce(ctx, from, in)
		if err == nil {
			return lead(cmp.Or(r.Portal, pagePath)), nil
		}
		status := fault.Lookup(fault.CodeOf(err)).Status
		if status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		return r.renderOnce(from, in.Body.Link, shown{Problem: problemText(err)}, status)
	})
}

// openOnce begins the session if the form was issued to this browser.
func (r Resource) openOnce(ctx context.Context, from *operation.Caller, in *onceForm) error {
	switch {
	case from.Way != operation.OnTheSpot:
		return errClear
	case !fresh(from, in.Body.Token):
		return errForm
	}
	opened, err := r.Accounts.SignInOnce(ctx, in.Body.Link, from.Address,
		from.Cookie(deviceCookie))
	if err != nil {
		return err
	}
	from.SetCookie(operation.SessionCookie, opened.Session, sessionLife)
	from.SetCookie(deviceCookie, opened.Device, deviceLife)
	return nil
}
