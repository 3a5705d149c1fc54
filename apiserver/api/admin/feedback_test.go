package admin_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

func TestFeedback(t *testing.T) {
	s := apitest.Start(t)
	const list = "GET /api/admin/feedback"
	s.Client.Must(t, client.SignUp{Customer: "alice", Email: "alice@shop.test"})
	s.Client.Must(t, client.OpenCustomer{Customer: "auth0|bob", Entry: s.IDs.New()})
	for n := range 3 {
		for _, ref := range []string{"alice", "auth0|bob"} {
			s.Clock.Advance(time.Second)
			s.Client.Must(t, client.GiveFeedback{ID: s.IDs.New(), Customer: ref,
				Text: fmt.Sprint(ref, " ", n)})
		}
	}
	find := func(name, query string, total int, texts ...string) apitest.Scenario {
		sc := apitest.Scenario{Name: name, As: apitest.Admin, Do: list + query, Status: 200,
			Has:   map[string]any{"totalElements": total},
			Lacks: []string{fmt.Sprintf("content.%d", len(texts))}}
		for i, text := range texts {
			sc.Has[fmt.Sprintf("content.%d.text", i)] = text
		}
		return sc
	}
	refused := func(name, as string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: as, Do: list, Status: status, Code: code}
	}
	s.Run(t,
		refused("nobody", apitest.Nobody, 401, "unauthorized"),
		refused("a key is no admin", apitest.User, 401, "unauthorized"),
		refused("nor is every sign-in", apitest.SignIn, 401, "unauthorized"),
		apitest.Scenario{Name: "too deep", As: apitest.Admin, Do: list + "?size=100&page=1001",
			Status: 400, Code: "invalid_page", Has: map[string]any{"errors.0.field": "page"}},
		apitest.Scenario{Name: "misspelt", As: apitest.Admin, Do: list + "?ref=x",
			Status: 400, Code: "unknown_parameter"},
		find("the newest first", "", 6, "auth0|bob 2", "alice 2", "auth0|bob 1", "alice 1",
			"auth0|bob 0", "alice 0"),
		find("the second page", "?size=2&page=1", 6, "auth0|bob 1", "alice 1"),
		find("behind the last", "?size=2&page=3", 6),
		find("of a customer", "?customerRef=auth0%7Cbob&size=1", 3, "auth0|bob 2"),
		find("of nobody", "?customerRef=alic", 0),
		apitest.Scenario{Name: "all of it", As: apitest.Admin,
			Do: list + "?customerRef=alice&size=1", Status: 200,
			Has: map[string]any{"content.0.customerUniqueRef": "alice",
				"content.0.email": "alice@shop.test", "content.0.text": "alice 2",
				"content.0.createdAt": "2026-01-02T03:04:10.000Z"}},
	)
}
