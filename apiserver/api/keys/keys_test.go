package keys_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestWhoAmI(t *testing.T) {
	s := apitest.Start(t)
	s.Run(t,
		apitest.Scenario{Name: "no credential", Do: "GET /api/key/whoami", Status: 401,
			Code:    "unauthorized",
			Headers: map[string]string{"WWW-Authenticate": "Bearer"}},
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
	s.Client.Freeze() // this node's own copy of the state lags from here on
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
