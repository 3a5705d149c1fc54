package groups_test

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// A group is shared by e-mail address, listed by both sides, and revoked.
func TestShare(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	s.Client.Must(t, client.SignUp{Customer: "alice", Email: "alice@x.test"})
	s.Client.Must(t, client.SignUp{Customer: "bob", Email: "Bob@x.test"})
	path := "/api/scraper/shared/group/" + group.String()
	const listed = "GET /api/scraper/shared/group/list"
	n := 0
	put := func(name, body string, status int, code, field string) apitest.Scenario {
		n++
		sc := apitest.Scenario{Name: name, As: apitest.User, Do: "PUT " + path, Body: body,
			Header: key(fmt.Sprint(n)), Status: status, Code: code}
		if field != "" {
			sc.Has = map[string]any{"errors.0.field": field}
		}
		return sc
	}
	foreign := put("foreign", `[{"email":"c@x.test"}]`, 400, "not_found", "id")
	foreign.As = apitest.Other
	reader := put("reader", `[{"email":"c@x.test"}]`, 403, "scope_rejected", "")
	reader.As = apitest.Reader
	s.Run(t,
		apitest.Scenario{Name: "no key", As: apitest.User, Do: "PUT " + path,
			Body: `[{"email":"c@x.test"}]`, Status: 400, Code: "idempotency_key_required"},
		foreign, reader,
		put("empty", `[]`, 400, "invalid_request", ""),
		put("no address", `[{"email":"c@x.test"},{"email":"bob"}]`, 400, "invalid_request",
			"[1].email"),
		put("writing", `[{"email":"c@x.test","permission":"WRITE"}]`, 400, "invalid_request",
			"[0].permission"),
		put("its own", `[{"email":"ALICE@x.test"}]`, 400, "invalid_request", "email"),
		put("too many", "["+strings.Repeat(`{"email":"c@x.test"},`, 100)+
			`{"email":"c@x.test"}]`, 400, "invalid_request", ""),
		apitest.Scenario{Name: "nothing", As: apitest.Other, Do: listed, Status: 200,
			Has: map[string]any{"": []any{}}},
		put("two", `[{"email":"bob@x.test","permission":"READ"},{"email":"later@x.test"}]`, 204,
			"", ""),
		put("again", `[{"email":"BOB@x.test"}]`, 204, "", ""),
		apitest.Scenario{Name: "recipients", As: apitest.Reader, Do: "GET " + path + "/list",
			Status: 200, Has: map[string]any{"": []any{"bob@x.test", "later@x.test"}}},
		apitest.Scenario{Name: "recipients, for one", As: apitest.Other,
			Do: "GET " + path + "/list", Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "the owner's list", As: apitest.User, Do: listed, Status: 200,
			Has: map[string]any{"": []any{}}},
		apitest.Scenario{Name: "list", As: apitest.Other, Do: listed, Status: 200,
			Has: map[string]any{"0.id": group, "0.name": "g", "0.customerRef": "alice"}},
		apitest.Scenario{Name: "no group of its own", As: apitest.Other,
			Do: "GET /api/scraper/group/list", Status: 200, Has: map[string]any{"": []any{}}},
		apitest.Scenario{Name: "told", As: apitest.Other, Do: "GET /api/notifications",
			Status: 200, Has: map[string]any{"totalElements": 2,
				"content.0.event": "GROUP_SHARED", "content.0.groupId": group,
				"content.0.title": `The group "g" is shared with you`}},
		apitest.Scenario{Name: "revoke nobody's", As: apitest.User, Header: key("r1"),
			Do: "DELETE " + path + "?email=d@x.test", Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "revoke as the recipient", As: apitest.Other, Header: key("r2"),
			Do: "DELETE " + path + "?email=bob@x.test", Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "revoke", As: apitest.User, Header: key("r3"),
			Do: "DELETE " + path + "?email=boB@x.test", Status: 204},
		apitest.Scenario{Name: "revoke under the same key", As: apitest.User,
			Header: key("r3"), Do: "DELETE " + path + "?email=boB@x.test", Status: 204,
			Headers: map[string]string{"Idempotency-Replayed": "true"}},
		apitest.Scenario{Name: "revoked", As: apitest.Other, Do: listed, Status: 200,
			Has: map[string]any{"": []any{}}},
	)
}
