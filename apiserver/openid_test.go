package apiserver_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/oidc/oidctest"
)

// withIssuer makes the server accept an issuer's tokens; the subject "chief" is listed as an admin.
func withIssuer(t *testing.T, at *oidctest.Issuer) apitest.Option {
	return func(c *apiserver.Config) {
		c.OpenID = &apiserver.OpenID{Issuer: at.URL, Audiences: []string{oidctest.Audience},
			Admins: []string{"chief"}, Egress: oidctest.Egress(t)}
	}
}

const carla = `{"firstname":"Carla","lastname":"S","email":"carla@shop.test","agreeWithTerms":true}`

// Keys, tokens of the local issuer and tokens of the other issuer work side by side.
func TestOpenIDTokens(t *testing.T) {
	at := oidctest.Start(t)
	s := apitest.Start(t, withIssuer(t, at))
	now := s.Clock.Now()
	token := func(subject string, change map[string]any) string {
		claims := at.Claims(subject, now)
		maps.Copy(claims, change)
		return at.Sign(t, claims, nil)
	}
	who, carlas := "GET /api/key/whoami", token("carla", nil)
	as := func(ref string) map[string]string { return map[string]string{"X-Customer-Ref": ref} }
	s.Run(t,
		apitest.Scenario{Name: "another issuer's", Do: who,
			As:     token("carla", map[string]any{"iss": "https://id.test"}),
			Status: 401, Code: "unauthorized",
			Headers: map[string]string{"WWW-Authenticate": "Bearer"},
			Has:     map[string]any{"detail": "the token is of another issuer"}},
		apitest.Scenario{Name: "says it is local", As: token("carla", map[string]any{"iss": "shoal",
			"aud": "shoal"}), Do: who, Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "says it is the operator's", As: token("self", nil), Do: who,
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "a stranger", As: carlas, Do: who, Status: 403,
			Code: "customer_required"},
		apitest.Scenario{Name: "a stranger names itself", As: carlas, Do: who,
			Header: as("carla"), Status: 403, Code: "customer_required"},
		apitest.Scenario{Name: "a stranger for another", As: carlas, Do: who,
			Header: as("alice"), Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "an admin who is a stranger", As: token("chief", nil),
			Do: "GET /api/admin/status", Status: 403, Code: "customer_required"},
		apitest.Scenario{Name: "for a customer", As: token("chief", nil), Do: who,
			Header: as("alice"), Status: 200, Has: map[string]any{"customerRef": "alice"}},
		apitest.Scenario{Name: "signs up", As: carlas, Do: "POST /api/customer", Body: carla,
			Status: 200, Has: map[string]any{"customerUniqueRef": "carla",
				"email": "carla@shop.test"}},
		apitest.Scenario{Name: "is a customer", As: carlas, Do: "GET /api/wallet", Status: 200,
			Has: map[string]any{"freeRequestsRemaining": 5}},
		apitest.Scenario{Name: "and no admin", As: carlas, Do: "GET /api/admin/status",
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "a customer of before", As: token("alice", nil), Do: who,
			Status: 200, Has: map[string]any{"customerRef": "alice"}},
		apitest.Scenario{Name: "an admin by role", As: token("carla", map[string]any{
			"roles": []string{"admin"}}), Do: "GET /api/admin/status", Status: 200},
		apitest.Scenario{Name: "a key", As: apitest.User, Do: who, Status: 200,
			Has: map[string]any{"customerRef": "alice", "name": "user"}},
		apitest.Scenario{Name: "a local token", As: apitest.SignIn, Do: who, Status: 200,
			Has: map[string]any{"customerRef": "alice"}},
		apitest.Scenario{Name: "a local first use", As: apitest.Admin, Do: "GET /api/wallet",
			Status: 200, Has: map[string]any{"freeRequestsRemaining": 5}},
		apitest.Scenario{Name: "ready", Do: "GET /readyz", Status: 200,
			Has: map[string]any{"status": "ok", "issuer": "reachable"}},
	)
	s.Clock.Advance(7 * time.Minute)
	s.Run(t, apitest.Scenario{Name: "expired", As: carlas, Do: who, Status: 401,
		Code: "unauthorized", Has: map[string]any{"detail": "the token has expired"}})
}

// The e-mail address of a profile is the one that the issuer has verified.
func TestSignUpWithAnIssuer(t *testing.T) {
	at := oidctest.Start(t)
	s := apitest.Start(t, withIssuer(t, at))
	token := func(subject string, change map[string]any) string {
		claims := at.Claims(subject, s.Clock.Now())
		maps.Copy(claims, change)
		return at.Sign(t, claims, nil)
	}
	do, key := "POST /api/customer", map[string]string{"Idempotency-Key": "k"}
	carlas := token("carla", map[string]any{"email": "Carla@Shop.test"})
	s.Run(t,
		apitest.Scenario{Name: "a key", As: apitest.User, Do: do, Body: carla, Status: 403,
			Code: "sign_in_required"},
		apitest.Scenario{Name: "not verified", Do: do, Body: carla, Status: 403,
			As:   token("carla", map[string]any{"email_verified": false}),
			Code: "email_not_verified"},
		apitest.Scenario{Name: "no address", Do: do, Body: carla, Status: 403,
			As: token("carla", map[string]any{"email": nil}), Code: "email_not_verified"},
		apitest.Scenario{Name: "no mail goes there", Do: do, Body: carla, Status: 403,
			As:   token("carla", map[string]any{"email": "Carla <carla@shop.test>"}),
			Code: "email_not_verified"},
		apitest.Scenario{Name: "another address", As: carlas, Do: do, Status: 400,
			Body: strings.Replace(carla, "carla@", "chief@", 1), Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "email"}},
		apitest.Scenario{Name: "nobody came to be", As: carlas, Do: "GET /api/customer",
			Status: 403, Code: "customer_required"},
		apitest.Scenario{Name: "signs up", As: carlas, Do: do, Body: carla, Header: key,
			Status: 200, Has: map[string]any{"email": "Carla@Shop.test"}},
		apitest.Scenario{Name: "asks again", As: carlas, Do: do, Body: carla, Header: key,
			Status: 200, Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "signs up again", As: carlas, Do: do, Body: carla, Status: 409,
			Code: "customer_exists"},
		apitest.Scenario{Name: "the address is taken", Do: do, Body: carla, Header: key,
			As: token("dora", map[string]any{"email": "carla@shop.test"}), Status: 409,
			Code: "email_taken"},
		apitest.Scenario{Name: "and dora is nobody", As: token("dora", nil), Do: "GET /api/wallet",
			Status: 403, Code: "customer_required"},
		apitest.Scenario{Name: "a local customer", As: apitest.SignIn, Do: do, Status: 200,
			Body: strings.Replace(carla, "carla@", "alice@", 1)},
	)
}

// A stranger gets customer_required on every route that needs a credential, and can sign up.
func TestStrangersSignUpFirst(t *testing.T) {
	at := oidctest.Start(t)
	s := apitest.Start(t, withIssuer(t, at))
	paths, ok := s.Call(t, apitest.Scenario{Do: "GET /v3/api-docs"}).At("paths")
	if !ok {
		t.Fatal("no description")
	}
	stranger := at.Token(t, "carla", s.Clock.Now(), "admin")
	parameter, asked := regexp.MustCompile(`\{[^}]*\}`), 0
	for path, methods := range paths.(map[string]any) {
		for method, described := range methods.(map[string]any) {
			security, _ := described.(map[string]any)["security"].([]any)
			if len(security) == 0 || method+" "+path == "post /api/customer" {
				continue
			}
			do := strings.ToUpper(method) + " " + parameter.ReplaceAllString(path,
				"66f0c2a1b7d4e8f9000000aa")
			header := map[string]string{"Idempotency-Key": "k"}
			answer := s.Call(t, apitest.Scenario{As: stranger, Do: do, Header: header})
			if answer.Status != http.StatusForbidden || answer.Text("code") !=
				"customer_required" {
				t.Errorf("%s: %d %s", do, answer.Status, answer.Body)
			}
			asked++
		}
	}
	if asked < 50 {
		t.Errorf("only %d routes were asked", asked)
	}
}

// An unreachable issuer affects only its own tokens, and not those whose keys are known.
func TestIssuerAway(t *testing.T) {
	at := oidctest.Start(t)
	at.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	s := apitest.Start(t, withIssuer(t, at))
	token, who := at.Token(t, "alice", s.Clock.Now()), "GET /api/key/whoami"
	s.Run(t,
		apitest.Scenario{Name: "its token", As: token, Do: who, Status: 503, Code: "unavailable"},
		apitest.Scenario{Name: "a key", As: apitest.User, Do: who, Status: 200},
		apitest.Scenario{Name: "a local token", As: apitest.SignIn, Do: who, Status: 200},
		apitest.Scenario{Name: "ready", Do: "GET /readyz", Status: 200,
			Has: map[string]any{"status": "ok", "issuer": "away"}},
		apitest.Scenario{Name: "metrics", As: apitest.Admin, Do: "GET /metrics", Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				if !strings.Contains(string(a.Body), "shoal_apiserver_issuer_reachable 0\n") {
					t.Errorf("%s", a.Body)
				}
			}},
	)
	at.Answer(nil)
	s.Clock.Advance(time.Minute)
	s.Run(t, apitest.Scenario{Name: "it is back", As: token, Do: who, Status: 200})
}

// Keys rotate while API keys, local tokens and the issuer's tokens are in use: no call is refused.
func TestKeysRotateUnderCalls(t *testing.T) {
	at := oidctest.Start(t)
	s := apitest.Start(t, withIssuer(t, at))
	if a := s.Call(t, apitest.Scenario{As: at.Token(t, "alice", s.Clock.Now()),
		Do: "GET /api/wallet"}); a.Status != 200 {
		t.Fatalf("%s", a.Body)
	}
	for round, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA} {
		s.Clock.Advance(time.Minute)
		at.Rotate(t, algorithm)
		credentials := []string{at.Token(t, "alice", s.Clock.Now()), apitest.User, apitest.SignIn}
		var wait sync.WaitGroup
		for n := range 60 {
			wait.Go(func() {
				a := s.Call(t, apitest.Scenario{As: credentials[n%3], Do: "GET /api/wallet"})
				if a.Status != 200 {
					t.Errorf("round %d, %s: %d %s", round, fmt.Sprint(n%3), a.Status, a.Body)
				}
			})
		}
		wait.Wait()
	}
	if slices.Contains([]int{0, 1}, at.Fetches()) || at.Fetches() > 6 {
		t.Errorf("%d fetches", at.Fetches())
	}
}
