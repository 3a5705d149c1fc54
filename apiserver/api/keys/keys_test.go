package keys_test

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestWhoAmI(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t,
		apitest.Scenario{Name: "no credential", Do: "GET /api/key/whoami", Status: 401,
			Code: "unauthorized",
			Headers: map[string]string{"WWW-Authenticate": `Bearer resource_metadata="` + s.URL +
				`/.well-known/oauth-protected-resource"`}},
		apitest.Scenario{Name: "unknown key", As: "svc_live_abcdefg.secret",
			Do: "GET /api/key/whoami", Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "wrong secret", As: s.Secrets[apitest.User] + "x",
			Do: "GET /api/key/whoami", Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: "GET /api/key/whoami",
			Status: 200,
			Has: map[string]any{"customerRef": "alice", "scope": "LLM_READ", "name": "reader",
				"createdAt": "2026-01-02T03:04:05.000Z", "lastUsedAt": "2026-01-02T03:04:05.000Z"}},
		apitest.Scenario{Name: "sign-in", As: apitest.SignIn, Do: "GET /api/key/whoami",
			Status: 200,
			Has:    map[string]any{"customerRef": "alice", "prefix": "", "id": ""}},
		apitest.Scenario{Name: "first use of a token makes its customer", As: apitest.Admin,
			Do:     "GET /api/wallet",
			Status: 200, Has: map[string]any{"freeRequestsRemaining": 5}},
	)
	s.Clock.Advance(2 * time.Hour)
	s.Run(t, apitest.Scenario{Name: "token expired", As: apitest.SignIn, Do: "GET /api/key/whoami",
		Status: 401,
		Code:   "unauthorized"})
}

func TestImpersonation(t *testing.T) {
	s := apitest.Start(t)
	as := func(ref string) map[string]string { return map[string]string{"X-Customer-Ref": ref} }
	s.Run(t,
		apitest.Scenario{Name: "admin", As: apitest.Admin, Do: "GET /api/key/whoami",
			Header: as("bob"), Status: 200,
			Has: map[string]any{"customerRef": "bob"}},
		apitest.Scenario{Name: "admin for nobody", As: apitest.Admin, Do: "GET /api/key/whoami",
			Header: as("carol"),
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "not an admin", As: apitest.SignIn, Do: "GET /api/key/whoami",
			Header: as("bob"),
			Status: 403, Code: "scope_rejected"},
		apitest.Scenario{Name: "a key", As: apitest.User, Do: "GET /api/key/whoami",
			Header: as("bob"), Status: 403,
			Code: "scope_rejected"},
	)
}

func TestGenerate(t *testing.T) {
	s := apitest.Start(t)
	const path = "PUT /api/key/generate"
	s.Run(t,
		apitest.Scenario{Name: "read keys may not", As: apitest.Reader,
			Do: path + "?name=n&scope=USER", Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "full keys may not", As: apitest.LLM,
			Do: path + "?name=n&scope=USER", Status: 403,
			Code: "scope_rejected"},
		apitest.Scenario{Name: "invalid scope", As: apitest.User, Do: path + "?name=n&scope=ADMIN",
			Status: 422,
			Code:   "invalid_scope", Has: map[string]any{"errors.0.field": "scope"}},
		apitest.Scenario{Name: "everything missing", As: apitest.User, Do: path, Status: 400,
			Code: "invalid_request",
			Has: map[string]any{"errors.0.field": "name", "errors.1.field": "scope",
				"errors.1.code": "invalid_scope"}},
		apitest.Scenario{Name: "name too long", As: apitest.User,
			Do:     path + "?scope=USER&name=" + strings.Repeat("é", 65),
			Status: 400, Code: "invalid_request"},
		apitest.Scenario{Name: "blank name", As: apitest.User, Do: path + "?scope=USER&name=%20",
			Status: 400,
			Code:   "invalid_request"},
		apitest.Scenario{Name: "unknown parameter", As: apitest.User,
			Do: path + "?scope=USER&name=n&scop=1", Status: 400,
			Code: "unknown_parameter", Has: map[string]any{"errors.0.field": "scop"}},
	)
	for name, at := range map[string]string{"past": "2026-01-02T03:04:04.999Z",
		"now": "2026-01-02T03:04:05Z", "empty": "", "no time": "tomorrow",
		"no zone": "2026-01-02T03:04:06", "beginning of time": "1970-01-01T00:00:00Z"} {
		s.Run(t, apitest.Scenario{Name: "expires: " + name, As: apitest.User,
			Do: path + "?name=n&scope=USER&expiresAt=" + at, Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "expiresAt"}})
	}
	minted := s.Call(t, apitest.Scenario{As: apitest.SignIn,
		Do: path + "?name=mine&scope=LLM_FULL"})
	key := minted.Text("key")
	if minted.Status != 200 || len(minted.Text("prefix")) != 7 ||
		!strings.HasPrefix(key, "svc_live_"+minted.Text("prefix")+".") {
		t.Fatalf("minted: %s", minted.Body)
	}
	s.Run(t, apitest.Scenario{Name: "the key works", As: key, Do: "GET /api/key/whoami",
		Status: 200,
		Has:    map[string]any{"id": minted.Text("id"), "scope": "LLM_FULL"}})
}

func TestExpiry(t *testing.T) {
	s := apitest.Start(t)
	s.Clock.Advance(time.Millisecond) // the newest key is the last of the list
	minted := s.Call(t, apitest.Scenario{As: apitest.User,
		Do: "PUT /api/key/generate?name=short&scope=USER&expiresAt=2026-01-02T04:04:06.001%2B01:00"})
	const at = "2026-01-02T03:04:06.001Z"
	if minted.Status != 200 || minted.Text("expiresAt") != at {
		t.Fatalf("minted: %s", minted.Body)
	}
	key := minted.Text("key")
	s.Clock.Advance(time.Second - time.Millisecond)
	s.Run(t, apitest.Scenario{Name: "a millisecond before", As: key, Do: "GET /api/key/whoami",
		Status: 200, Has: map[string]any{"expiresAt": at}})
	s.Clock.Advance(time.Millisecond)
	s.Run(t,
		apitest.Scenario{Name: "expired", As: key, Do: "GET /api/key/whoami", Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "it is listed still", As: apitest.User, Do: "GET /api/key/list",
			Status: 200, Has: map[string]any{"keys.3.expiresAt": at,
				"keys.3.lastUsedAddress": "127.0.0.1", "keys.0.expiresAt": nil}},
		apitest.Scenario{Name: "and deleted as ever", As: apitest.User,
			Do: "DELETE /api/key/" + minted.Text("id"), Status: 204},
	)
}

// Only a trusted proxy can tell another caller's address.
func TestLastUsedAddress(t *testing.T) {
	for proxied, want := range map[bool]string{true: "192.0.2.1", false: "127.0.0.1"} {
		s := apitest.Start(t, func(config *apiserver.Config) {
			if proxied {
				config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
		})
		s.Run(t,
			apitest.Scenario{Name: "use", As: apitest.Reader, Do: "GET /api/wallet", Status: 200,
				Header: map[string]string{"X-Forwarded-For": "192.0.2.1"}},
			apitest.Scenario{Name: "look", As: apitest.SignIn, Do: "GET /api/key/list", Status: 200,
				Check: func(t *testing.T, a apitest.Answer) {
					for i := range 3 {
						key, got := fmt.Sprintf("keys.%d.", i), "<nil>"
						if a.Text(key+"name") == "reader" {
							got = want
						}
						if address := a.Text(key + "lastUsedAddress"); address != got {
							t.Errorf("behind a proxy %v: %s", proxied, a.Body)
						}
					}
				}},
		)
		if err := s.Stop(); err != nil { // stopping reports uses to the control plane
			t.Fatal(err)
		}
		for _, key := range s.Client.View().Keys("alice") {
			if key.Name == "reader" && key.LastAddress != want {
				t.Errorf("behind a proxy %v: stored %q", proxied, key.LastAddress)
			}
		}
	}
}

func TestList(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t, apitest.Scenario{Name: "own keys only, no secrets", As: apitest.Reader,
		Do: "GET /api/key/list", Status: 200,
		Lacks: []string{"keys.0.key", "keys.0.hash", "keys.3"},
		Check: func(t *testing.T, a apitest.Answer) {
			for i := range 3 {
				key := fmt.Sprintf("keys.%d.", i)
				used := a.Text(key+"lastUsedAt") != "<nil>"
				if used != (a.Text(key+"name") == "reader") {
					t.Errorf("last use: %s", a.Body)
				}
			}
			if strings.Contains(string(a.Body), "svc_live_") {
				t.Errorf("a secret shows: %s", a.Body)
			}
		}})
}

func TestDelete(t *testing.T) {
	s := apitest.Start(t)
	id := func(who string) string {
		return s.Call(t, apitest.Scenario{As: who, Do: "GET /api/key/whoami"}).Text("id")
	}
	user, llm, bob := id(apitest.User), id(apitest.LLM), id(apitest.Other)
	s.Client.Freeze(s.Client.View()) // this node's copy of the state lags from here on
	s.Run(t,
		apitest.Scenario{Name: "malformed id", As: apitest.User, Do: "DELETE /api/key/xyz",
			Status: 400, Code: "invalid_id"},
		apitest.Scenario{Name: "unknown", As: apitest.User,
			Do: "DELETE /api/key/0123456789abcdef01234567", Status: 404,
			Code: "key_not_found", Has: map[string]any{"errors.0.field": "id"}},
		apitest.Scenario{Name: "foreign", As: apitest.User, Do: "DELETE /api/key/" + bob,
			Status: 404,
			Code:   "key_not_found"},
		apitest.Scenario{Name: "read key", As: apitest.Reader, Do: "DELETE /api/key/" + user,
			Status: 403,
			Code:   "scope_rejected"},
		apitest.Scenario{Name: "a higher scope", As: apitest.LLM, Do: "DELETE /api/key/" + user,
			Status: 204},
		apitest.Scenario{Name: "revoked at once", As: apitest.User, Do: "GET /api/key/whoami",
			Status: 401,
			Code:   "unauthorized"},
		apitest.Scenario{Name: "itself", As: apitest.LLM, Do: "DELETE /api/key/" + llm,
			Status: 204},
		apitest.Scenario{Name: "itself revoked", As: apitest.LLM, Do: "GET /api/key/whoami",
			Status: 401,
			Code:   "unauthorized"},
	)
}

func TestListByName(t *testing.T) {
	s := apitest.Start(t)
	for _, name := range apitest.Names() {
		s.Clock.Advance(time.Second)
		s.Call(t, apitest.Scenario{As: apitest.SignIn,
			Do: "PUT /api/key/generate?scope=LLM_READ&name=" + url.QueryEscape(name)})
	}
	s.CheckNames(t, "/api/key/list")
}
