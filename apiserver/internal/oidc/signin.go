package oidc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4/json"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// maxAnswer bounds the issuer's answer to a code, in bytes.
const maxAnswer = 64 << 10

// places are the issuer's addresses for signing browsers in, from its discovery document.
type places struct {
	authorize string // "": there is none that may be used
	token     string
	person    string // userinfo: more about the person who signed in; "": none
	post      bool   // it accepts a client's secret in the form only
}

// Asked is what one browser must show when it comes back. All of it is secret.
type Asked struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE (RFC 7636)
}

// NewAsked makes an unguessable Asked.
func NewAsked() Asked {
	return Asked{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text()}
}

// Name is the issuer's name, as its tokens spell it.
func (i *Issuer) Name() string { return i.config.Issuer }

// SignsIn says whether browsers sign in at the issuer.
func (i *Issuer) SignsIn() bool { return i.config.ClientID != "" }

// AuthorizeURL is where a browser signs in, to return to redirect afterwards. Faults: unavailable.
func (i *Issuer) AuthorizeURL(ctx context.Context, asked Asked, redirect string) (string, error) {
	at, err := i.places(ctx)
	if err != nil {
		return "", err
	}
	to, err := url.Parse(at.authorize)
	if err != nil {
		return "", errNoPlaces
	}
	sum := sha256.Sum256([]byte(asked.Verifier))
	query := to.Query()
	for name, value := range map[string]string{"response_type": "code",
		"client_id": i.config.ClientID, "redirect_uri": redirect, "scope": "openid email profile",
		"state": asked.State, "nonce": asked.Nonce, "code_challenge_method": "S256",
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:])} {
		query.Set(name, value)
	}
	to.RawQuery = query.Encode()
	return to.String(), nil
}

var (
	errNoPlaces = fault.New(fault.Unavailable, "the issuer's discovery document names no address "+
		"where browsers sign in")
	errAway = "the issuer cannot be reached; try again in a while"
)

// places are the issuer's places, which are fetched with its keys.
func (i *Issuer) places(ctx context.Context) (places, error) {
	for range maxRefreshes {
		if keys := i.keys.current(); keys != nil {
			if keys.places.authorize == "" || keys.places.token == "" {
				return places{}, errNoPlaces
			}
			return keys.places, nil
		}
		if again, err := i.keys.refresh(ctx, nil); err != nil || !again {
			return places{}, fault.Wrap(fault.Unavailable, err, "%s", errAway)
		}
	}
	return places{}, fault.New(fault.Unavailable, "%s", errAway)
}

// Exchange redeems the code with which a browser came back, and returns whom the issuer signed in.
// Faults: unauthorized for an invalid code or token, unavailable.
func (i *Issuer) Exchange(ctx context.Context, code string, asked Asked,
	redirect string) (Identity, error) {
	at, err := i.places(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, access, err := i.redeem(ctx, at, url.Values{"grant_type": {"authorization_code"},
		"code": {code}, "redirect_uri": {redirect}, "code_verifier": {asked.Verifier}})
	if err != nil {
		return Identity{}, err
	}
	who, err := i.check(ctx, token, wanted{audiences: []string{i.config.ClientID},
		client: i.config.ClientID, nonce: asked.Nonce})
	if err == nil && who.Email == "" && at.person != "" && access != "" {
		who.Email, err = i.askEmail(ctx, at.person, access, who.Subject)
	}
	return who, err
}

// askEmail is the e-mail address that the issuer has verified, "" if none. Some issuers give it
// only at the userinfo endpoint (OpenID Connect Core, 5.4).
func (i *Issuer) askEmail(ctx context.Context, at, access, subject string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	response, err := i.config.Egress.Do(ctx, &egress.Request{URL: at, MaxBody: maxAnswer,
		Private: true, Header: []egress.Field{{Name: "Accept", Value: "application/json"},
			{Name: "Authorization", Value: "Bearer " + access}}})
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "%s", errAway)
	}
	defer response.Release()
	var said struct {
		Subject  text     `json:"sub"`
		Email    text     `json:"email"`
		Verified verified `json:"email_verified"`
	}
	if response.Status != http.StatusOK || json.Unmarshal(response.Body, &said) != nil {
		return "", fault.New(fault.Unavailable, "%s", errAway)
	}
	if string(said.Subject) != subject || !bool(said.Verified) {
		return "", nil // about somebody else, or not verified
	}
	return string(said.Email), nil
}

// redeem exchanges a code for an ID token, and an access token for the issuer's own endpoints.
func (i *Issuer) redeem(ctx context.Context, at places, form url.Values) (token, access string,
	err error) {
	header := []egress.Field{{Name: "Accept", Value: "application/json"},
		{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}
	id, secret := i.config.ClientID, i.config.ClientSecret
	if secret != "" && !at.post {
		pair := url.QueryEscape(id) + ":" + url.QueryEscape(secret) // RFC 6749, 2.3.1
		header = append(header, egress.Field{Name: "Authorization",
			Value: "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))})
	} else {
		form.Set("client_id", id)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	response, err := i.config.Egress.Do(ctx, &egress.Request{Method: http.MethodPost,
		URL: at.token, MaxBody: maxAnswer, Private: true, Header: header,
		Body: []byte(form.Encode())})
	if err != nil {
		return "", "", fault.Wrap(fault.Unavailable, err, "%s", errAway)
	}
	defer response.Release()
	var said struct {
		Token  text `json:"id_token"`
		Access text `json:"access_token"`
		Error  text `json:"error"`
	}
	read := json.Unmarshal(response.Body, &said)
	switch {
	case response.Status == http.StatusOK && read == nil && said.Token != "":
		return string(said.Token), string(said.Access), nil
	case said.Error == "invalid_grant":
		return "", "", refuse("the sign-in was used already, or took too long: sign in again")
	}
	i.config.Logger.Warn("the issuer answers no sign-in with a token", "issuer", i.config.Issuer,
		"status", response.Status, "error", string(said.Error[:min(len(said.Error), 100)]))
	return "", "", fault.New(fault.Unavailable, "the issuer does not say who has signed in; the "+
		"operator of the service finds why in its log")
}

// placesOf are the places of a discovery document, without those that may not be used.
func (s *source) placesOf(authorize, token, person string, methods []string) places {
	check := func(address string) string {
		at, err := url.Parse(address)
		if err != nil || at.Host == "" || at.Fragment != "" || s.checkAddress(at) != nil {
			return ""
		}
		return address
	}
	return places{authorize: check(authorize), token: check(token), person: check(person),
		post: len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") &&
			slices.Contains(methods, "client_secret_post")}
}

// CheckClient says why an issuer cannot sign browsers in under this client id.
func CheckClient(id string) error {
	if !isSubject(id) {
		return errors.New("want 1 to 128 printable bytes, as the issuer calls this service")
	}
	return nil
}
