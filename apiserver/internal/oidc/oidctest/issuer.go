// Package oidctest is an OpenID Connect issuer for tests. It publishes keys, rotates them and signs
// whatever it is told to.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"shoal.dev/shoal/pkg/egress"
)

// Audience is the default audience of its tokens.
const Audience = "shoal"

// Issuer is a running issuer. It is safe for concurrent use.
type Issuer struct {
	URL string // its name as well

	mu      sync.Mutex
	keys    []jose.JSONWebKey // published, with their private parts
	signing jose.JSONWebKey
	made    int
	fetches int
	codes   map[string]given
	person  map[string]any   // answers at userinfo; nil: about dora
	hostile http.HandlerFunc // answers every request instead; nil: off
}

// Start starts an issuer with one ES256 key, until the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{}
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.Rotate(t, jose.ES256)
	return i
}

// Egress is a way to the issuer, and to nothing outside this machine.
func Egress(t testing.TB) *egress.Client {
	t.Helper()
	client, err := egress.New(egress.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxIdle: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	hostile, keys, person := i.hostile, jose.JSONWebKeySet{}, i.person
	for _, key := range i.keys {
		keys.Keys = append(keys.Keys, key.Public())
	}
	if r.URL.Path == "/keys" {
		i.fetches++
	}
	i.mu.Unlock()
	var answer any
	switch {
	case hostile != nil:
		hostile(w, r)
		return
	case r.URL.Path == "/keys":
		answer = keys
	case r.URL.Path == "/person" && r.Header.Get("Authorization") == "Bearer opaque":
		if answer = person; person == nil {
			answer = map[string]any{"sub": "dora", "email": "dora@shop.test",
				"email_verified": true}
		}
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		i.redeem(w, r)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		answer = map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys",
			"authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"userinfo_endpoint": i.URL + "/person"}
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

// Answer has a function answer every request; nil ends that.
func (i *Issuer) Answer(by http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hostile = by
}

// Tell sets what the userinfo endpoint says about a person.
func (i *Issuer) Tell(person map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.person = person
}

// Fetches is how often the keys were fetched.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Rotate makes a key, publishes it with the earlier ones, and signs with it from now on.
func (i *Issuer) Rotate(t testing.TB, algorithm jose.SignatureAlgorithm) {
	t.Helper()
	private := NewKey(t, algorithm)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	i.signing = jose.JSONWebKey{Key: private, KeyID: fmt.Sprintf("key %d", i.made),
		Algorithm: string(algorithm), Use: "sig"}
	i.keys = append(i.keys, i.signing)
}

// Withdraw leaves only the newest key published.
func (i *Issuer) Withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = i.keys[len(i.keys)-1:]
}

// NewKey makes a private key for RS256, ES256 or EdDSA.
func NewKey(t testing.TB, algorithm jose.SignatureAlgorithm) any {
	t.Helper()
	var key any
	var err error
	switch algorithm {
	case jose.RS256:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Claims are the claims of a valid token of a subject, for five minutes from now.
func (i *Issuer) Claims(subject string, now time.Time) map[string]any {
	return map[string]any{"iss": i.URL, "aud": Audience, "sub": subject,
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"email": subject + "@shop.test", "email_verified": true}
}

// Token is a valid token of a subject, with these roles.
func (i *Issuer) Token(t testing.TB, subject string, now time.Time, roles ...string) string {
	t.Helper()
	claims := i.Claims(subject, now)
	if len(roles) > 0 {
		claims["roles"] = roles
	}
	return i.Sign(t, claims, nil)
}

// Sign signs claims with the newest key. The default header has the key's id and the type JWT; ""
// leaves a member out.
func (i *Issuer) Sign(t testing.TB, claims any, header map[jose.HeaderKey]string) string {
	t.Helper()
	i.mu.Lock()
	key := i.signing
	i.mu.Unlock()
	return SignWith(t, key, claims, header)
}

// SignWith signs claims with any key.
func SignWith(t testing.TB, key jose.JSONWebKey, claims any,
	header map[jose.HeaderKey]string) string {
	t.Helper()
	all := map[jose.HeaderKey]any{jose.HeaderType: "JWT", "kid": key.KeyID}
	for name, value := range header {
		if all[name] = value; value == "" {
			delete(all, name)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Key: key.Key,
		Algorithm: jose.SignatureAlgorithm(key.Algorithm)}, &jose.SignerOptions{ExtraHeaders: all})
	if err != nil {
		t.Fatal(err)
	}
	payload, ok := claims.([]byte)
	if !ok {
		if payload, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
