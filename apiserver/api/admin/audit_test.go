package admin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
)

// The audit trail tells what admins did, who did it, for whom, from where and under which id. It
// reads the same from the state and from the archive.
func TestAudit(t *testing.T) {
	store := apitest.NewStore(t)
	s := apitest.Start(t, apitest.WithStore(store))
	const list = "GET /api/admin/audit"
	asAlice := map[string]string{"X-Customer-Ref": "alice", "X-Request-Id": "call-1",
		"Idempotency-Key": "1"}
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: list, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "nor is every sign-in", As: apitest.SignIn, Do: list, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "no time", As: apitest.Admin, Do: list + "?from=x", Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "from"}},
		apitest.Scenario{Name: "no order", As: apitest.Admin, Do: list + "?order=x", Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": "order"}},
		apitest.Scenario{Name: "no cursor", As: apitest.Admin, Do: list + "?cursor=x",
			Status: 400, Code: "invalid_cursor"},
		apitest.Scenario{Name: "an admin for alice", As: apitest.Admin, Header: asAlice,
			Do:   "PUT /api/scraper/group",
			Body: `{"name":"shop","dataTable":"shop","startType":"MANUAL"}`, Status: 200},
		apitest.Scenario{Name: "alice herself", As: apitest.User, Do: "PUT /api/scraper/group",
			Header: map[string]string{"Idempotency-Key": "2"},
			Body:   `{"name":"mine","dataTable":"mine","startType":"MANUAL"}`, Status: 200},
		apitest.Scenario{Name: "a block", As: apitest.Admin,
			Do: "PUT /api/admin/customers/bob/block", Status: 204},
		apitest.Scenario{Name: "an adjustment", As: apitest.Admin,
			Do:     "POST /api/admin/customers/bob/wallet/adjustments",
			Header: map[string]string{"Idempotency-Key": "1"},
			Body:   `{"amountMicros":500,"note":"gift"}`, Status: 200},
		apitest.Scenario{Name: "again", As: apitest.Admin,
			Do:     "POST /api/admin/customers/bob/wallet/adjustments",
			Header: map[string]string{"Idempotency-Key": "1"},
			Body:   `{"amountMicros":500,"note":"gift"}`, Status: 200},
	)
	for _, archived := range []bool{false, true} {
		if archived {
			s.Client.Archive(t, store, 0)
			s.Run(t, apitest.Scenario{Name: "a key", As: apitest.User,
				Header: map[string]string{"Idempotency-Key": "3"},
				Do:     "PUT /api/key/generate?name=k&scope=LLM_READ", Status: 200})
		}
		first, content := 0, 7
		if archived {
			first, content = 1, 8
		}
		at := func(n int, member string) string {
			return fmt.Sprintf("items.%d.%s", first+n, member)
		}
		s.Run(t,
			apitest.Scenario{Name: "newest first", As: apitest.Admin, Do: list, Status: 200,
				Has: map[string]any{at(0, "action"): "svc_adjust_wallet",
					at(0, "customerUniqueRef"):    "bob",
					at(0, "actor.subject"):        "root",
					at(0, "actor.admin"):          true,
					at(0, "actor.address"):        "127.0.0.1",
					at(1, "action"):               "svc_admin_block_customer",
					at(1, "changes.0.record"):     "customers bob",
					at(1, "changes.0.before"):     nil,
					at(1, "at"):                   "2026-01-02T03:04:05.000Z",
					at(2, "actor.correlationId"):  "call-1",
					at(2, "customerUniqueRef"):    "alice",
					at(2, "changes.0.after.name"): "shop", "hasMore": false},
				Lacks: []string{fmt.Sprintf("items.%d", content)}},
			apitest.Scenario{Name: "of bob", As: apitest.Admin, Do: list + "?customer=bob",
				Status: 200, Has: map[string]any{"items.1.action": "svc_admin_block_customer"},
				Lacks: []string{"items.3"}},
			apitest.Scenario{Name: "by root", As: apitest.Admin,
				Do: list + "?actor=root&order=oldest&limit=1", Status: 200,
				Has: map[string]any{"items.0.customerUniqueRef": "alice", "hasMore": true},
				Check: func(t *testing.T, a apitest.Answer) {
					cursor := a.JSON.(map[string]any)["nextCursor"].(string)
					s.Run(t, apitest.Scenario{Name: "the next", As: apitest.Admin,
						Do:     list + "?actor=root&order=oldest&limit=1&cursor=" + cursor,
						Status: 200, Has: map[string]any{
							"items.0.action": "svc_admin_block_customer"}},
						apitest.Scenario{Name: "the cursor of another read", As: apitest.Admin,
							Do:     list + "?actor=alice&order=oldest&limit=1&cursor=" + cursor,
							Status: 400, Code: "invalid_cursor"})
				}},
			apitest.Scenario{Name: "before", As: apitest.Admin,
				Do: list + "?to=2026-01-02T03:04:05Z", Status: 200,
				Has: map[string]any{"items": []any{}}},
			apitest.Scenario{Name: "all, as lines", As: apitest.Admin,
				Do: list + "?format=jsonl&order=oldest", Status: 200,
				Headers: map[string]string{"Content-Type": "application/x-ndjson"},
				Check: func(t *testing.T, a apitest.Answer) {
					lines := strings.Split(strings.TrimSpace(string(a.Body)), "\n")
					if len(lines) != content {
						t.Errorf("%d lines, want %d", len(lines), content)
					}
					before := strings.Repeat("0", 64)
					for i, line := range lines {
						var e struct {
							Number             int
							Hash, PreviousHash string
						}
						if err := json.Unmarshal([]byte(line), &e); err != nil {
							t.Fatal(err)
						}
						if e.Number != i+1 || e.PreviousHash != before {
							t.Errorf("line %d does not follow the one before: %s", i+1, line)
						}
						before = e.Hash
					}
					for _, secret := range s.Secrets {
						if secret != "" && strings.Contains(string(a.Body), secret) {
							t.Error("a secret is told")
						}
					}
				}},
		)
	}
}

// The pages together have each entry once.
func TestLongAuditPages(t *testing.T) {
	s := apitest.Start(t)
	for n := range 20 {
		s.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: s.IDs.New(), Amount: 1,
			Note: fmt.Sprint(n)})
	}
	seen, cursor := 0, ""
	for {
		a := s.Call(t, apitest.Scenario{As: apitest.Admin,
			Do: "GET /api/admin/audit?limit=7" + cursor})
		var page struct {
			Items      []struct{ Number int }
			NextCursor *string
		}
		if err := json.Unmarshal(a.Body, &page); err != nil {
			t.Fatal(err)
		}
		seen += len(page.Items)
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if seen != 24 {
		t.Errorf("%d entries on all pages", seen)
	}
}
