package signin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/oidc"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// Paths of the sign-in at the issuer: to the issuer, back from it, and the sign-up after it.
const (
	openIDPath     = pagePath + "/openid"
	callbackPath   = openIDPath + "/callback"
	openIDSignPath = openIDPath + "/sign-up"
)

// How long a person may take at the issuer, and on the sign-up page. The cookies last as long.
const (
	askedLife  = 10 * time.Minute
	signUpLife = 30 * time.Minute
)

const (
	askedCookie  = "shoal-openid"   // proves that the returning browser began the sign-in
	signUpCookie = "shoal-stranger" // the issuer's user who is not a customer yet
)

// maxKeptNext is the longest next address that a cookie has room for, bytes: browsers drop cookies
// of more than 4,096. After a longer one, people arrive at the portal's first page.
const maxKeptNext = 1_800

// OpenID configures the issuer at which people sign in.
type OpenID struct {
	Issuer *oidc.Issuer
	Key    []byte // 32 bytes that encrypt cookies; all servers have the same key
	Clock  clock.Clock
}

// asked is what the browser stores while its user is at the issuer.
type asked struct {
	oidc.Asked
	Next string `json:"x,omitempty"`
}

// stranger is a user of the issuer who has to sign up.
type stranger struct {
	Subject string `json:"s"`
	Email   string `json:"e"`
	Admin   bool   `json:"a,omitempty"`
	Next    string `json:"x,omitempty"`
}

// sealed is an encrypted value in the browser, with its expiry. Nobody can read or change it.
type sealed[T any] struct {
	Until int64 `json:"u"`
	Value T     `json:"v"`
}

func (o *OpenID) cipher() cipher.AEAD {
	block, err := aes.NewCipher(o.Key)
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return aead
}

// keep stores an encrypted value in the browser for a time.
func keep[T any](o *OpenID, from *operation.Caller, cookie string, value T,
	life time.Duration) error {
	var text bytes.Buffer
	writer := json.NewEncoder(&text)
	writer.SetEscapeHTML(false) // an & would take six bytes
	if err := writer.Encode(sealed[T]{o.Clock.Now().Add(life).UnixMilli(), value}); err != nil {
		return err
	}
	from.SetCookie(cookie, base64.RawURLEncoding.EncodeToString(
		o.cipher().Seal(nil, nil, text.Bytes(), []byte(cookie))), life)
	return nil
}

// kept returns the value in the browser, if this service encrypted it and it has not expired.
func kept[T any](o *OpenID, from *operation.Caller, cookie string) (value T, good bool) {
	var s sealed[T]
	data, err := base64.RawURLEncoding.DecodeString(from.Cookie(cookie))
	if err != nil {
		return value, false
	}
	text, err := o.cipher().Open(nil, nil, data, []byte(cookie))
	if err != nil || json.Unmarshal(text, &s) != nil ||
		o.Clock.Now().UnixMilli() >= s.Until {
		return value, false
	}
	return s.Value, true
}

// openIDOperations are the operations if people sign in at an issuer. Of the local pages, only
// signing out remains.
func (r Resource) openIDOperations() []*operation.Operation {
	return []*operation.Operation{r.signOut(), r.signOutEverywhere(), r.list(), r.disable(),
		r.enable(), r.remove(), r.page(), r.leave(), r.ownPages(), r.beginOpenID(), r.callback(),
		r.strangerPage(), r.enterStranger()}
}

// ownPages redirects the pages for passwords, passkeys and programs, which portals link to, to the
// sign-in page.
func (r Resource) ownPages() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_openid_own_pages", Group: group, Routes: operation.Routes("GET "+passwordPath,
			"GET /sign-in/passkeys", "GET /sign-in/programs"),
		Summary: "Redirects to the sign-in page: the issuer handles this", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		return back(), nil
	})
}

// beginOpenID is GET /sign-in/openid.
func (r Resource) beginOpenID() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_openid_begin", Routes: operation.Routes("GET " + openIDPath), Group: group,
		Summary: "Redirects a browser to the issuer, to sign in there", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *pageRequest) (operation.Raw, error) {
		next := r.onward(in.Next)
		own := from.Base()
		if own == "" {
			return r.show(ctx, from, shown{}, http.StatusBadRequest)
		}
		ask := asked{Asked: oidc.NewAsked()}
		if len(next) <= maxKeptNext {
			ask.Next = next
		}
		to, err := r.OpenID.Issuer.AuthorizeURL(ctx, ask.Asked, own+callbackPath)
		if err != nil {
			return r.refuseOpenID(ctx, from, next, err)
		}
		return lead(to), keep(r.OpenID, from, askedCookie, ask, askedLife)
	})
}

// refuseOpenID shows on the sign-in page why the sign-in failed.
func (r Resource) refuseOpenID(ctx context.Context, from *operation.Caller, next string,
	err error) (operation.Raw, error) {
	entry := fault.Lookup(fault.CodeOf(err))
	var coded *fault.Error
	if !errors.As(err, &coded) || fault.CodeOf(err) == fault.Internal {
		return operation.Raw{}, err
	}
	return r.show(ctx, from, shown{Problem: sentence(coded.Detail), Next: next}, entry.Status)
}

// sentence capitalizes a text and ends it with a period.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if text = strings.ToUpper(string(first)) + text[size:]; !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

type callbackRequest struct {
	Code   string `query:"code" max:"4096" doc:"Code that the issuer gives for a sign-in"`
	State  string `query:"state" max:"256" doc:"State with which the browser was sent to the issuer"`
	Issuer string `query:"iss" max:"512" doc:"The issuer's name (RFC 9207)"`
	Error  string `query:"error" max:"256" doc:"Why the sign-in failed"`
}

var (
	errState = fault.New(fault.InvalidRequest, "This sign-in was not begun in this browser, or "+
		"took longer than ten minutes. Sign in again.")
	errDenied = fault.New(fault.Unauthorized, "The identity provider has signed nobody in. Sign "+
		"in again.")
	errMixed = fault.New(fault.Unauthorized, "The answer is of another identity provider. Sign "+
		"in again.")
)

// callback is GET /sign-in/openid/callback.
func (r Resource) callback() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_openid_callback", Routes: operation.Routes("GET " + callbackPath), Group: group,
		Summary: "Begins the session of a person returning from the issuer, and redirects to " +
			"the portal",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Lenient: true,
		Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *callbackRequest) (operation.Raw,
		error) {
		ask, good := kept[asked](r.OpenID, from, askedCookie)
		if !good || subtle.ConstantTimeCompare([]byte(ask.State), []byte(in.State)) != 1 {
			// keep the cookie: another site's link must not end a sign-in under way
			return r.refuseOpenID(ctx, from, "", errState)
		}
		from.SetCookie(askedCookie, "", 0)
		who, err := r.comeBack(ctx, from, in, ask)
		if err != nil {
			return r.refuseOpenID(ctx, from, ask.Next, err)
		}
		return r.admit(ctx, from, stranger{Subject: who.Subject, Email: who.Email,
			Admin: who.Admin, Next: ask.Next})
	})
}

// comeBack returns the identity that the issuer has authenticated.
func (r Resource) comeBack(ctx context.Context, from *operation.Caller, in *callbackRequest,
	ask asked) (oidc.Identity, error) {
	switch {
	case in.Issuer != "" && in.Issuer != r.OpenID.Issuer.Name():
		return oidc.Identity{}, errMixed
	case in.Error != "" || in.Code == "":
		return oidc.Identity{}, errDenied
	}
	who, err := r.OpenID.Issuer.Exchange(ctx, in.Code, ask.Asked, from.Base()+callbackPath)
	if fault.CodeOf(err) == fault.Unauthorized {
		r.Accounts.NoteForeign(ctx, from.Address)
	}
	return who, err
}

// admit begins the person's session, or redirects someone who is not a customer yet to sign up.
func (r Resource) admit(ctx context.Context, from *operation.Caller, who stranger) (operation.Raw,
	error) {
	err := r.openForeign(ctx, from, who, nil)
	switch {
	case errors.Is(err, accounts.ErrStranger):
		return lead(openIDSignPath), keep(r.OpenID, from, signUpCookie, who, signUpLife)
	case err != nil:
		return r.refuseOpenID(ctx, from, who.Next, err)
	}
	return lead(cmp.Or(r.onward(who.Next), r.Portal, pagePath)), nil
}

// openForeign begins the session of an issuer's user.
func (r Resource) openForeign(ctx context.Context, from *operation.Caller, who stranger,
	profile *accounts.Profile) error {
	opened, err := r.Accounts.SignInForeign(ctx, accounts.Foreign{
		Issuer: r.OpenID.Issuer.Name(), Subject: who.Subject, Email: who.Email, Admin: who.Admin,
		Profile: profile, Address: from.Address, Device: from.Cookie(deviceCookie)})
	if err != nil {
		return err
	}
	from.SetCookie(operation.SessionCookie, opened.Session, sessionLife)
	from.SetCookie(deviceCookie, opened.Device, deviceLife)
	return nil
}

// strangerPage is GET /sign-in/openid/sign-up.
func (r Resource) strangerPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_openid_sign_up_page", Routes: operation.Routes("GET " + openIDSignPath),
		Group: group, Summary: "Shows a sign-up form to a person signed in at the issuer",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		who, good := kept[stranger](r.OpenID, from, signUpCookie)
		if !good {
			return back(), nil
		}
		return r.renderStranger(from, shown{Email: who.Email}, 0)
	})
}

func (r Resource) renderStranger(from *operation.Caller, s shown, status int) (operation.Raw,
	error) {
	s.Agreed = r.Agreement
	return r.render(from, "stranger", s, status)
}

type strangerForm struct {
	Body struct {
		Token     string `json:"token" max:"1024"`
		Firstname string `json:"firstname" max:"1024"`
		Lastname  string `json:"lastname" max:"1024"`
		Agree     string `json:"agree" max:"1024"`
	} `body:"form" limit:"16384"`
}

// maxName is the longest first or last name, in characters (interface, 4.12).
const maxName = 100

// profile returns the profile in the form, or what is wrong with it.
func (f *strangerForm) profile() (*accounts.Profile, error) {
	p := &accounts.Profile{Firstname: strings.TrimSpace(f.Body.Firstname),
		Lastname: strings.TrimSpace(f.Body.Lastname)}
	for _, name := range []string{p.Firstname, p.Lastname} {
		if name == "" || utf8.RuneCountInString(name) > maxName || !isLine(name) {
			return nil, fault.New(fault.InvalidRequest,
				"Enter a first and a last name, of at most %d characters each.", maxName)
		}
	}
	if f.Body.Agree == "" {
		return nil, fault.New(fault.InvalidRequest, "Agree to the terms, or you cannot sign up.")
	}
	return p, nil
}

// isLine reports whether a text contains no control characters.
func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool {
		return c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029'
	})
}

// enterStranger is POST /sign-in/openid/sign-up.
func (r Resource) enterStranger() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_openid_sign_up_form", Routes: operation.Routes("POST " + openIDSignPath),
		Group: group, Summary: "Signs up a person signed in at the issuer, and begins the " +
			"session",
		Description: "The e-mail address is the one that the issuer verified, and the " +
			"reference is the issuer's user id. Neither ever changes.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *strangerForm) (operation.Raw, error) {
		who, good := kept[stranger](r.OpenID, from, signUpCookie)
		if !good {
			return back(), nil
		}
		profile, err := in.profile()
		if !fresh(from, in.Body.Token) {
			err = errForm
		}
		if err == nil {
			err = r.openForeign(ctx, from, who, profile)
		}
		if err == nil {
			from.SetCookie(signUpCookie, "", 0)
			return lead(cmp.Or(r.onward(who.Next), r.Portal, pagePath)), nil
		}
		if fault.CodeOf(err) == fault.CustomerExists {
			from.SetCookie(signUpCookie, "", 0)
			return back(), nil
		}
		status := fault.Lookup(fault.CodeOf(err)).Status
		if status >= http.StatusInternalServerError {
			return operation.Raw{}, err
		}
		return r.renderStranger(from, shown{Email: who.Email, Firstname: in.Body.Firstname,
			Lastname: in.Body.Lastname, Problem: problemText(err)}, status)
	})
}

// at names the issuer for people: the host of its name.
func (o *OpenID) at() string {
	name, err := url.Parse(o.Issuer.Name())
	if err != nil {
		return o.Issuer.Name()
	}
	return name.Host
}
