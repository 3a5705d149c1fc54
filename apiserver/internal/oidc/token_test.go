package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

func start() time.Time { return time.Unix(1_800_000_000, 0) }

// newIssuer makes a checker of an issuer's tokens. Nothing fetches its keys before run.
func newIssuer(t testing.TB, of *oidctest.Issuer, admins ...string) (*Issuer, *clock.Manual) {
	t.Helper()
	manual := clock.NewManual(start())
	issuer, err := New(Config{Issuer: of.URL, Audiences: []string{"other", oidctest.Audience},
		Admins: admins, Egress: oidctest.Egress(t), Clock: manual,
		Logger: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return issuer, manual
}

// run keeps the issuer's keys fresh until the test ends.
func run(t testing.TB, issuer *Issuer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); issuer.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

func TestCheckRefuses(t *testing.T) {
	at := oidctest.Start(t)
	issuer, _ := newIssuer(t, at)
	run(t, issuer)
	says := func(name string, value any) string {
		claims := at.Claims("alice", start())
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
		return at.Sign(t, claims, nil)
	}
	with := func(header map[jose.HeaderKey]string) string {
		return at.Sign(t, at.Claims("alice", start()), header)
	}
	secret := []byte(strings.Repeat("k", 32))
	signedBy := func(key any, algorithm jose.SignatureAlgorithm, id string) string {
		return oidctest.SignWith(t, jose.JSONWebKey{Key: key, KeyID: id,
			Algorithm: string(algorithm)}, at.Claims("alice", start()), nil)
	}
	stranger, modulus := oidctest.NewKey(t, jose.ES256), oidctest.NewKey(t, jose.RS256)
	good := at.Token(t, "alice", start())
	parts := strings.Split(good, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, c := range map[string]struct{ token, why string }{
		"empty":         {"", "cannot be read"},
		"nonsense":      {"a.b.c", "cannot be read"},
		"long":          {good + strings.Repeat("A", maxToken), "cannot be read"},
		"of JSON":       {`{"payload":"` + parts[1] + `"}`, "cannot be read"},
		"none":          {header(`{"alg":"none"}`) + "." + parts[1] + ".", "cannot be read"},
		"None":          {header(`{"alg":"None"}`) + "." + parts[1] + ".", "cannot be read"},
		"HS256":         {signedBy(secret, jose.HS256, "key 1"), "cannot be read"},
		"PS256":         {signedBy(modulus, jose.PS256, ""), "cannot be read"},
		"critical":      {header(`{"alg":"ES256","crit":["exp"]}`) + "." + parts[1] + "." + parts[2], "cannot be read"},
		"not base64":    {header(`{"alg":"ES256","b64":false}`) + "." + parts[1] + "." + parts[2], "cannot be read"},
		"of a sign-out": {with(map[jose.HeaderKey]string{"typ": "logout+jwt"}), "cannot be read"},
		"forged":        {signedBy(stranger, jose.ES256, "key 1"), "signature"},
		"unknown key":   {signedBy(stranger, jose.ES256, "key 9"), "no key"},
		"no key named":  {signedBy(stranger, jose.ES256, ""), "no key"},
		"cut":           {good[:len(good)-4], "signature"},
		"other header":  {header(`{"alg":"ES256","kid":"key 1","typ":"jwt"}`) + "." + parts[1] + "." + parts[2], "signature"},
		"no issuer":     {says("iss", nil), "another issuer"},
		"another one":   {says("iss", at.URL+"/"), "another issuer"},
		"no audience":   {says("aud", nil), "another audience"},
		"another's":     {says("aud", []string{"Shoal"}), "another audience"},
		"no expiry":     {says("exp", nil), "no expiry"},
		"expired":       {says("exp", start().Unix()-61), "expired"},
		"not yet":       {says("nbf", start().Unix()+61), "not valid yet"},
		"no subject":    {says("sub", nil), "subject"},
		"long subject":  {says("sub", strings.Repeat("x", 129)), "subject"},
		"two lines":     {says("sub", "a\nb"), "subject"},
		"spaces":        {says("sub", " a"), "subject"},
		"a number":      {says("sub", 7), "claims"},
		"no object":     {at.Sign(t, []byte(`["iss"]`), nil), "claims"},
		"twice": {at.Sign(t, []byte(`{"iss":"`+at.URL+`","aud":"shoal","exp":9999999999,`+
			`"sub":"alice","sub":"root"}`), nil), "claims"},
		"other case": {at.Sign(t, []byte(`{"iss":"`+at.URL+`","aud":"shoal","exp":9999999999,`+
			`"SUB":"alice"}`), nil), "subject"},
	} {
		said, err := issuer.Check(t.Context(), c.token)
		if fault.CodeOf(err) != fault.Unauthorized || said != (Identity{}) {
			t.Errorf("%s: %+v, %v", name, said, err)
			continue
		}
		var coded *fault.Error
		if errors.As(err, &coded); !strings.Contains(coded.Detail, c.why) {
			t.Errorf("%s: %q, want %q in it", name, coded.Detail, c.why)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	at := oidctest.Start(t)
	issuer, manual := newIssuer(t, at, "chief")
	run(t, issuer)
	for name, c := range map[string]struct {
		change map[string]any
		want   Identity
	}{
		"as is": {nil, Identity{Subject: "alice", Email: "alice@shop.test"}},
		"at the edges": {map[string]any{"exp": start().Unix() - 60, "nbf": start().Unix() + 60,
			"iat": start().Unix() + 600, "sub": strings.Repeat("x", 128)},
			Identity{Subject: strings.Repeat("x", 128), Email: "alice@shop.test"}},
		"of several audiences": {map[string]any{"aud": []string{"x", "shoal"}},
			Identity{Subject: "alice", Email: "alice@shop.test"}},
		"an admin": {map[string]any{"roles": []string{"x", "admin"}},
			Identity{Subject: "alice", Admin: true, Email: "alice@shop.test"}},
		"one role": {map[string]any{"roles": "admin"},
			Identity{Subject: "alice", Admin: true, Email: "alice@shop.test"}},
		"roles of another form": {map[string]any{"roles": map[string]any{"admin": true}},
			Identity{Subject: "alice", Email: "alice@shop.test"}},
		"a listed admin": {map[string]any{"sub": "chief"},
			Identity{Subject: "chief", Admin: true, Email: "alice@shop.test"}},
		"nothing verified": {map[string]any{"email_verified": false}, Identity{Subject: "alice"}},
		"verified in words": {map[string]any{"email_verified": "true"},
			Identity{Subject: "alice", Email: "alice@shop.test"}},
		"not quite":       {map[string]any{"email_verified": 1}, Identity{Subject: "alice"}},
		"no email at all": {map[string]any{"email": nil}, Identity{Subject: "alice"}},
		"many emails": {map[string]any{"email": []string{"a@b.test"}},
			Identity{Subject: "alice"}},
	} {
		claims := at.Claims("alice", manual.Now())
		maps.Copy(claims, c.change)
		c.want.Until = 1000*claims["exp"].(int64) + leeway.Milliseconds()
		if got, err := issuer.Check(t.Context(), at.Sign(t, claims, nil)); err != nil ||
			got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for _, kind := range []string{"", "jwt", "at+jwt", "application/at+JWT"} {
		token := at.Sign(t, at.Claims("alice", manual.Now()),
			map[jose.HeaderKey]string{"typ": kind, "kid": ""})
		if _, err := issuer.Check(t.Context(), token); err != nil {
			t.Errorf("type %q, no key named: %v", kind, err)
		}
	}
	for _, algorithm := range algorithms {
		at.Rotate(t, algorithm)
		manual.Advance(askEvery)
		token := at.Token(t, "alice", manual.Now())
		if _, err := issuer.Check(t.Context(), token); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://id.example": true, "https://id.example/a/": true, "http://localhost:1/": true,
		"http://127.0.0.1": true, "http://[::1]:80": true,
		"http://id.example": false, "http://localhost.id.example": false, "http://10.0.0.1": false,
		"https://u:p@id.example": false, "https://id.example?a": false,
		"https://id.example/?": false,
		"https://id.example#a": false, "ftp://id.example": false, "id.example": false, "": false,
		"https://": false, "https://a/" + strings.Repeat("x", maxIssuer): false,
	} {
		if err := CheckIssuer(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := New(Config{Issuer: "https://id.example"}); err == nil {
		t.Error("tokens for anybody would do")
	}
	if _, err := New(Config{Issuer: "x", Audiences: []string{"a"}}); err == nil {
		t.Error("an issuer without an address")
	}
}

// No unsigned token is accepted, whatever it looks like, and none causes a panic.
func FuzzCheck(f *testing.F) {
	at := oidctest.Start(f)
	issuer, manual := newIssuer(f, at)
	if err := issuer.keys.attempt(f.Context()); err != nil {
		f.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // wait for no key
	good := at.Token(f, "alice", manual.Now())
	parts := strings.Split(good, ".")
	for _, seed := range []string{good, "", "..", "a.b.c", parts[0] + ".." + parts[2],
		parts[0] + "." + parts[1] + ".", good + ".", "{" + good + "}"} {
		f.Add(seed)
	}
	for _, header := range []string{`{"alg":"none"}`, `{"alg":"ES256","kid":"key 1","crit":["b64"],"b64":false}`,
		`{"alg":"ES256","jwk":{"kty":"EC"}}`, `{"alg":["ES256"]}`, `{"alg":"ES256","typ":1}`} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1] + "." +
			parts[2])
	}
	f.Fuzz(func(t *testing.T, token string) {
		said, err := issuer.Check(ended, token)
		// two texts may decode to the same bytes: base64 ignores bits of the last letter
		if err == nil && !slices.Equal(decoded(token), decoded(good)) {
			t.Errorf("%q is accepted: %+v", token, said)
		}
		code := fault.CodeOf(err)
		if err != nil && code != fault.Unauthorized && code != fault.Unavailable {
			t.Errorf("%q: %v", token, err)
		}
	})
}

// decoded returns the decoded parts of a token.
func decoded(token string) (parts []string) {
	for part := range strings.SplitSeq(token, ".") {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return nil
		}
		parts = append(parts, string(text))
	}
	return parts
}

// A key set is refused, or can be used once it is read.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"keys":[]}`, `{"keys":[null,1,"a",{}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","key_ops":["sign"]}]}`} {
		f.Add([]byte(seed))
	}
	token, err := parse("eyJhbGciOiJFZERTQSJ9.e30." + strings.Repeat("A", 86))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, err := parseKeys(document)
		if (err == nil) == (keys == nil) {
			t.Fatalf("%v, %v", keys, err)
		}
		if err == nil && keys.verify(token) == nil {
			t.Errorf("a signature of zeros fits %q", document)
		}
	})
}
