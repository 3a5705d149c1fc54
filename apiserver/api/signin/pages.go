package signin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// pagePath is the sign-in page. Browsers are redirected back to it.
const pagePath = "/sign-in"

//go:embed *.html
var pageFiles embed.FS

//go:embed passkeys.js
var script []byte

// pages are embedded, so they always parse.
var pages = template.Must(template.ParseFS(pageFiles, "*.html"))

// shown is the content of a page.
type shown struct {
	Done                bool   // the task of the page is done
	Clear               bool   // the connection is not secure: nothing can be entered
	Customer            string // who has signed in; "": nobody
	Admin               bool
	Token               string // of the forms, against forgery
	Email               string // as entered, or of the link
	Link                string // a valid link from an e-mail
	Silent              bool   // no e-mails are sent
	SignUp              bool   // people may create accounts themselves
	New                 bool   // the link creates an account
	Agreed              bool   // signing up includes agreeing to the operator's terms
	Problem             string
	Next                string   // where to go afterwards; "": the portal
	Portal              string   // its path; "": there is none
	OpenID              string   // host of the issuer at which people sign in; "": here
	OpenURL             string   // the path to the issuer
	Firstname, Lastname string   // as entered
	Consent             *consent // a program's request
	Grants              []*client.Grant
	Passkeys            []*client.Passkey
}

type pageRequest struct {
	Next string `query:"next" max:"16384" doc:"Where to go after the sign-in: a program's consent page, or a page of the portal"`
}

// place matches a path below the portal's. None leads out of it.
var place = regexp.MustCompile(`^(?:/[0-9A-Za-z-]+)*$`)

// onward accepts the address of a program's request or of a place in the portal. It returns "" for
// any other, so that no link redirects elsewhere.
func (r Resource) onward(text string) string {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "" || at.Host != "" {
		return ""
	}
	if at.Path == authorizePath {
		return authorizePath + "?" + at.Query().Encode()
	}
	below, found := strings.CutPrefix(at.Path, r.Portal)
	if r.Portal == "" || !found || !place.MatchString(below) {
		return ""
	}
	return (&url.URL{Path: at.Path, RawQuery: at.Query().Encode()}).String()
}

// page is GET /sign-in.
func (r Resource) page() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_in_page", Routes: operation.Routes("GET " + pagePath), Group: group,
		Summary: "Shows the sign-in form, or who is signed in", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *pageRequest) (operation.Raw, error) {
		s := shown{Next: r.onward(in.Next)}
		if err := r.look(ctx, from, &s); err != nil {
			return operation.Raw{}, err
		}
		if r.OpenID != nil && s.Next != "" && s.Customer == "" && s.Problem == "" &&
			from.Cookie(operation.SessionCookie) != "" {
			// its session has ended: someone signed in at the issuer returns at once
			return lead(s.OpenURL), nil
		}
		return r.render(from, "sign-in", s, 0)
	})
}

// show renders the sign-in page for the caller.
func (r Resource) show(ctx context.Context, from *operation.Caller, s shown,
	status int) (operation.Raw, error) {
	if err := r.look(ctx, from, &s); err != nil {
		return operation.Raw{}, err
	}
	return r.render(from, "sign-in", s, status)
}

// look finds out who has signed in in the caller's browser, and makes that the caller.
func (r Resource) look(ctx context.Context, from *operation.Caller, s *shown) error {
	s.Clear, s.SignUp = from.Way == operation.InTheClear, r.Accounts.SignsUp()
	s.Portal = r.Portal
	if r.OpenID != nil {
		s.SignUp, s.OpenID, s.OpenURL = false, r.OpenID.at(), openIDPath
		if s.Next != "" {
			s.OpenURL += "?" + url.Values{"next": {s.Next}}.Encode()
		}
	}
	secret := from.Cookie(operation.SessionCookie)
	if secret == "" {
		return nil
	}
	p, _, err := r.Sessions.Authenticate(ctx, "Bearer "+secret, "")
	switch code := fault.CodeOf(err); {
	case err == nil:
		s.Customer, s.Admin, from.Principal = p.Customer, p.Admin, p
	case code == fault.Unauthorized:
		from.SetCookie(operation.SessionCookie, "", 0)
	case s.Problem == "" && code == fault.CustomerBlocked:
		s.Problem = problemText(err)
	case code != fault.CustomerBlocked:
		return err
	}
	return nil
}

// showOwn renders a page about the signed-in account, or redirects to the sign-in page. fill sets
// the content.
func (r Resource) showOwn(ctx context.Context, from *operation.Caller, s shown, status int,
	page string, fill func(*client.View, *shown)) (operation.Raw, error) {
	if err := r.look(ctx, from, &s); err != nil {
		return operation.Raw{}, err
	}
	if from.Session == nil {
		return back(), nil
	}
	view, err := r.Client.Fresh(ctx)
	if err != nil {
		return operation.Raw{}, err
	}
	fill(view, &s)
	return r.render(from, page, s, status)
}

// endOwn handles the form of such a page: it ends the item with an id and shows the others.
func (r Resource) endOwn(ctx context.Context, from *operation.Caller, token, text string,
	show func(context.Context, *operation.Caller, shown, int) (operation.Raw, error),
	end func(context.Context, *auth.Principal, ids.ID) error) (operation.Raw, error) {
	id, err := ids.Parse(text)
	if err != nil || !fresh(from, token) {
		return show(ctx, from, shown{Problem: errForm.Detail}, http.StatusBadRequest)
	}
	if err := r.look(ctx, from, &shown{}); err != nil {
		return operation.Raw{}, err
	}
	if from.Session == nil {
		return back(), nil
	}
	if err := end(ctx, &from.Principal, id); err != nil {
		return operation.Raw{}, err
	}
	return show(ctx, from, shown{}, 0)
}

// render renders a page.
func (r Resource) render(from *operation.Caller, name string, s shown, status int) (operation.Raw,
	error) {
	s.Token = r.formToken(from)
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, s); err != nil {
		return operation.Raw{}, err
	}
	return operation.Raw{ContentType: "text/html; charset=utf-8", Body: out.Bytes(),
		Status: status, Forms: true, Scripts: name == "passkeys" ||
			name == "sign-in" && s.Customer == "" && s.OpenID == "" && !s.Clear}, nil
}

// formToken returns the token that the browser has in a cookie and in its forms.
func (r Resource) formToken(from *operation.Caller) string {
	token := from.Cookie(formCookie)
	if token == "" {
		token = rand.Text()
	}
	from.SetCookie(formCookie, token, formLife)
	return token
}

type enterRequest struct {
	Body struct {
		Token    string `json:"token" max:"1024"`
		Email    string `json:"email" max:"1024"`
		Password string `json:"password" max:"1024"`
		Next     string `json:"next" max:"16384"`
	} `body:"form" limit:"65536"`
}

var errForm = fault.New(fault.InvalidRequest, "The form was too old, or your browser keeps no "+
	"cookies. Try again.")

// fresh reports whether a form was issued to this browser.
func fresh(from *operation.Caller, token string) bool {
	given := from.Cookie(formCookie)
	return given != "" && subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1
}

// enter is POST /sign-in.
func (r Resource) enter() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_in_form", Routes: operation.Routes("POST " + pagePath), Group: group,
		Summary: "Accepts the sign-in form, and redirects back to the page", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *enterRequest) (operation.Raw, error) {
		var err error = errForm
		if from.Way == operation.InTheClear || fresh(from, in.Body.Token) {
			if _, err = r.open(ctx, from, in.Body.Email, in.Body.Password); err == nil {
				return lead(cmp.Or(r.onward(in.Body.Next), r.Portal, pagePath)), nil
			}
		}
		entry := fault.Lookup(fault.CodeOf(err))
		if entry.Status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		return r.show(ctx, from, shown{Email: in.Body.Email, Problem: problemText(err),
			Next: r.onward(in.Body.Next)},
			entry.Status)
	})
}

// back redirects to the sign-in page.
func back() operation.Raw {
	return operation.Raw{ContentType: "text/html; charset=utf-8", Status: http.StatusSeeOther,
		Location: pagePath, Forms: true}
}

// problemText explains a fault to a person, as a sentence.
func problemText(err error) string {
	var coded *fault.Error
	if !errors.As(err, &coded) {
		return sentence(err.Error())
	}
	switch coded.Field {
	case "currentPassword":
		return sentence("The current password " + coded.Detail)
	case "newPassword":
		return sentence("The new password " + coded.Detail)
	}
	return sentence(coded.Detail)
}

type leaveRequest struct {
	Body struct {
		Token      string `json:"token" max:"1024"`
		Everywhere string `json:"everywhere" max:"1024"`
	} `body:"form" limit:"4096"`
}

// leave is POST /sign-out.
func (r Resource) leave() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_out_form", Routes: operation.Routes("POST /sign-out"), Group: group,
		Summary: "Ends the session or all the account's sessions, and redirects to the sign-in " +
			"page",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *leaveRequest) (operation.Raw, error) {
		if !fresh(from, in.Body.Token) {
			return r.show(ctx, from, shown{Problem: errForm.Detail}, http.StatusBadRequest)
		}
		p, _, err := r.Sessions.Authenticate(ctx,
			"Bearer "+from.Cookie(operation.SessionCookie), "")
		switch code := fault.CodeOf(err); {
		case code == fault.Unauthorized || code == fault.CustomerBlocked: // nothing to end
			forget(from)
			return back(), nil
		case err != nil:
			return operation.Raw{}, err
		}
		from.Principal = p
		return back(), r.end(ctx, from, in.Body.Everywhere != "")
	})
}
