package oidctest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// Client and Secret are this service's client id and secret at the issuer.
const (
	Client = "web"
	Secret = "s3cret & more"
)

// given is what a code was issued for.
type given struct {
	challenge, redirect, token string
}

// SignIn signs a person in at the address to which a browser was sent. It returns where the browser
// goes next. change edits the claims of the ID token.
func (i *Issuer) SignIn(t testing.TB, address, subject string, now time.Time,
	change func(claims map[string]any)) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	asked := at.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": Client,
		"code_challenge_method": "S256"} {
		if asked.Get(name) != want {
			t.Fatalf("%s is %q in %s", name, asked.Get(name), address)
		}
	}
	claims := i.Claims(subject, now)
	claims["aud"], claims["nonce"] = Client, asked.Get("nonce")
	if change != nil {
		change(claims)
	}
	token := i.Sign(t, claims, nil)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.codes == nil {
		i.codes = map[string]given{}
	}
	code := fmt.Sprintf("code-%d", len(i.codes))
	i.codes[code] = given{asked.Get("code_challenge"), asked.Get("redirect_uri"), token}
	return asked.Get("redirect_uri") + "?" + url.Values{"code": {code},
		"state": {asked.Get("state")}, "iss": {i.URL}}.Encode()
}

// redeem is the token endpoint. A code is valid once, for the client that asked for it.
func (i *Issuer) redeem(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	id, secret, _ := r.BasicAuth()
	if id != url.QueryEscape(Client) || secret != url.QueryEscape(Secret) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"invalid_client"}`))
		return
	}
	i.mu.Lock()
	code := i.codes[r.PostFormValue("code")]
	i.codes[r.PostFormValue("code")] = given{}
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if code.token == "" || code.redirect != r.PostFormValue("redirect_uri") ||
		code.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"access_token": "opaque",
		"token_type": "Bearer", "id_token": code.token}) // an error means that the client is gone
}
