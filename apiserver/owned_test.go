package apiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// ofNoGroup lists the customers' routes that name something outside groups, and the kind of each
// name. TestSharedRoutes covers things in groups.
func ofNoGroup(t *testing.T) []string {
	t.Helper()
	// These name only the caller's own things, or things that everybody has. Routes under /api/auth
	// need a browser's session and have their own tests.
	exempt := []string{"/api/scraper", "/api/admin/", "/api/auth/", "/api/schema/{type}/",
		"/api/uploads/", "/api/wallet/statements/",
		"/api/customer/preferences/additional-info/"}
	kinds := map[string]string{"/api/key/": "{key}", "/api/notifications/": "{notice}",
		"/api/schema/": "{schema}", "/api/webhooks/": "{webhook}"}
	bodies := map[string]string{
		"PUT /api/webhooks/{webhook}": ` {"url":"https://two.test/",` +
			`"events":["API_KEY_CREATED"]}`,
		"POST /api/webhooks/{webhook}/rotate": ` {"overlapHours":1}`,
		"PUT /api/notifications/{notice}":     ` {"read":true}`}
	var calls []string
	for path, methods := range describedPaths(t) {
		if !strings.Contains(path, "{") || slices.ContainsFunc(exempt, func(prefix string) bool {
			return strings.HasPrefix(path, prefix)
		}) {
			continue
		}
		for prefix, name := range kinds {
			if strings.HasPrefix(path, prefix) {
				path = strings.ReplaceAll(path, "{id}", name)
			}
		}
		for method := range methods {
			call := strings.ToUpper(method) + " " + path
			calls = append(calls, call+bodies[call])
		}
	}
	return calls
}

// The owner and a stranger call every route that names something outside groups; so does a call for
// a missing id. The answer for a foreign thing equals that for a missing one, byte for byte.
func TestOwnedRoutes(t *testing.T) {
	s := apitest.Start(t, func(c *apiserver.Config) {
		c.Payments = struct{ payment.Provider }{} // no call asks it for anything
	})
	real, missing := owned(t, s), map[string]string{}
	for name := range real {
		missing[name] = s.IDs.New().String()
	}
	calls := ofNoGroup(t)
	slices.SortFunc(calls, func(a, b string) int { // deletions come last
		late := strings.NewReplacer("DELETE", "Z")
		return strings.Compare(late.Replace(a), late.Replace(b))
	})
	var table bytes.Buffer
	table.WriteString("\town\tforeign\tmissing\n")
	for n, call := range calls {
		do := func(as string, of map[string]string) (apitest.Answer, string) {
			filled := call
			for name, id := range of {
				filled = strings.ReplaceAll(filled, name, id)
			}
			if rest, _, _ := strings.Cut(filled, ` {"`); strings.Contains(rest, "{") {
				t.Fatalf("nothing is known of %s", call)
			}
			method, rest, _ := strings.Cut(filled, " ")
			path, body, _ := strings.Cut(rest, " ")
			a := s.Call(t, apitest.Scenario{As: as, Do: method + " " + path, Body: body,
				Header: map[string]string{"Idempotency-Key": fmt.Sprint(n, as, of["{key}"])}})
			said := strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "")
			for _, id := range of {
				said = strings.ReplaceAll(said, id, "id")
			}
			return a, fmt.Sprint(a.Status, " ", said)
		}
		gone, missed := do(apitest.Other, missing)
		foreign, refused := do(apitest.Other, real)
		own, _ := do(apitest.User, real)
		fmt.Fprintf(&table, "%s\t%s\t%s\t%s\n", call, verdict(own), verdict(foreign),
			verdict(gone))
		if diff := cmp.Diff(missed, refused); diff != "" {
			t.Errorf("%s: foreign is not as missing: %s", call, diff)
		}
	}
	holdTable(t, "owned.txt", table.Bytes())
}

// owned makes one of everything outside groups for alice, by the placeholder of routes.
func owned(t *testing.T, s *apitest.Server) map[string]string {
	t.Helper()
	key, hook, schema := s.IDs.New(), s.IDs.New(), s.IDs.New()
	s.Client.Must(t, client.PutWebhook{ID: hook, Customer: "alice", URL: "https://hook.test/",
		Secret: []byte("one"), Events: []model.Event{model.APIKeyCreated}})
	s.Client.Must(t, client.MintKey{ID: key, Customer: "alice", Prefix: "sk000001",
		Hash: client.Hash{7}, Name: "a key", Scope: model.ScopeUser})
	s.Client.Must(t, client.PutSchema{ID: schema, Customer: "alice", Name: "s", Version: 1,
		Type: "product", Content: []byte(`{}`)})
	s.Client.Must(t, client.OpenTopUp{Session: "cs_alice", Customer: "alice", Amount: 5_000_000,
		Expires: 1 << 42, URL: "https://pay.test/"})
	var notice, delivery ids.ID
	view := s.Client.View()
	view.Notices("alice", func(n *client.Notice) bool { notice = n.ID; return false })
	view.Deliveries(hook, func(d *client.Delivery) bool { delivery = d.Notice.ID; return false })
	if notice.IsZero() || delivery.IsZero() {
		t.Fatal("nothing was told of a key")
	}
	return map[string]string{"{key}": key.String(), "{webhook}": hook.String(),
		"{schema}": schema.String(), "{sessionId}": "cs_alice", "{notice}": notice.String(),
		"{deliveryId}": delivery.String()}
}

// describedPaths returns the paths of the API's description, each with its methods.
func describedPaths(t *testing.T) map[string]map[string]json.RawMessage {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	return document.Paths
}
