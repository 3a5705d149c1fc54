package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// key mints an LLM_FULL key.
func (r *rig) key(t *testing.T, customer string) string {
	t.Helper()
	secret := auth.NewSecret()
	r.Client.Must(t, client.MintKey{ID: r.IDs.New(), Customer: customer, Prefix: secret.Prefix,
		Hash: secret.Hash, Scope: model.ScopeLLMFull})
	return secret.Text
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":` +
	`"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// TestWhoMayBeAnAgent: only keys with the scopes of agents may call.
func TestWhoMayBeAnAgent(t *testing.T) {
	r := start(t)
	for who, want := range map[string]int{apitest.LLM: 200, apitest.Reader: 200, apitest.User: 403,
		apitest.SignIn: 403, apitest.Admin: 403, apitest.Nobody: 401, "svc_live_abcdefg.x": 401} {
		a := r.post(t, who, initialize)
		if a.Status != want {
			t.Errorf("%s: %d, want %d: %s", who, a.Status, want, a.Body)
		}
		said := a.Text("detail")
		if want == 403 && !strings.Contains(said, "PUT /api/key/generate?scope=LLM_FULL mints it") {
			t.Errorf("%s is not told what agents need: %s", who, said)
		}
		if challenge := a.Header.Get("WWW-Authenticate"); want == 401 &&
			challenge != `Bearer resource_metadata="`+r.URL+
				`/.well-known/oauth-protected-resource/mcp"` {
			t.Errorf("%s: %q", who, challenge)
		}
	}
}

// TestHostileMessages: invalid messages are refused, and the gateway keeps working.
func TestHostileMessages(t *testing.T) {
	r := start(t)
	deep := long(`{"a":`, 20_000) + "1" + long("}", 20_000)
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "text": `"a"`, "a batch": "[" + initialize + "]",
		"too deep":   deep,
		"no request": `{"jsonrpc":"2.0"}`,
		"no method":  `{"jsonrpc":"2.0","id":1,"method":"nothing"}`,
		"no session": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	} {
		a := r.post(t, apitest.LLM, body)
		failed := a.Status >= 400 && a.Status < 500 || strings.Contains(string(a.Body), `"error"`)
		if !failed || a.Status >= 500 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if a := r.post(t, apitest.LLM, `{"a":"`+long("x", 1<<20)+`"}`); a.Status != 413 {
		t.Errorf("a long message: %d", a.Status)
	}
	for _, header := range [][]string{{"Content-Type", "text/plain"}, {"Accept", "text/html"},
		{"Mcp-Protocol-Version", "1999-01-01"}, {"Mcp-Session-Id", "nobody's"},
		{"Origin", "https://evil.test"}, {"Host", "evil.test"},
		{"Host", "evil.test", "Origin", "http://evil.test"}, {"Sec-Fetch-Site", "cross-site"}} {
		if a := r.post(t, apitest.LLM, initialize, header...); a.Status < 400 || a.Status >= 500 {
			t.Errorf("%v: %d %s", header, a.Status, a.Body)
		}
	}
	r.Run(t, apitest.Scenario{Name: "no stream without a message", As: apitest.LLM,
		Do: "GET /mcp", Status: 405, Code: "method_not_allowed",
		Headers: map[string]string{"Allow": "DELETE, POST"}})
	r.connect(t, apitest.LLM, "", nil).want("svc_whoami", nil,
		map[string]any{"result.scope": "LLM_FULL"})
}

// TestRefusalsAreShort: a refusal repeats only a short part of a call.
func TestRefusalsAreShort(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.Reader, "", nil)
	many := args{long("x", 300_000): 1}
	for n := range 20_000 {
		many[fmt.Sprint(n)] = 1
	}
	for _, arguments := range []args{many, {long("x", 300_000): 1}} {
		result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "svc_get_wallet",
			Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(result); err != nil || !result.IsError || len(text) > 10_000 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}
}

// TestSessionsAreTheirCredentials: only the credential that began a session can use or end it.
func TestSessionsAreTheirCredentials(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, sessionful, nil)
	const list = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
	header := []string{"Mcp-Session-Id", a.ID(), "Mcp-Protocol-Version", sessionful}
	if got := r.post(t, apitest.LLM, list, header...); got.Status != 200 {
		t.Fatalf("its own: %d %s", got.Status, got.Body)
	}
	for _, other := range []string{apitest.Reader, r.key(t, "bob")} {
		if got := r.post(t, other, list, header...); got.Status != 404 {
			t.Errorf("%s uses it: %d %s", other, got.Status, got.Body)
		}
		r.Run(t, apitest.Scenario{Name: "ended by " + other, As: other, Do: "DELETE /mcp",
			Header: map[string]string{"Mcp-Session-Id": a.ID()}, Status: 404,
			Code: "session_not_found"})
	}
	a.want("svc_whoami", nil, map[string]any{"result.scope": "LLM_FULL"})
}

// TestRevokedKeys: a revoked key cannot use its session.
func TestRevokedKeys(t *testing.T) {
	r := start(t)
	for _, version := range []string{sessionful, ""} {
		secret := r.key(t, "alice")
		a := r.connect(t, secret, version, nil)
		who := a.want("svc_whoami", nil, map[string]any{"result.scope": "LLM_FULL"})
		a.want("svc_delete_key", args{"id": who.Text("result.id")}, map[string]any{"error": nil})
		if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "svc_whoami"}); err == nil {
			t.Error("a revoked key still calls")
		}
	}
}

// TestSessionsAreBounded: a customer's least recently used session makes room for a new one.
func TestSessionsAreBounded(t *testing.T) {
	metrics := telemetry.NewMetrics()
	r := start(t, func(c *apiserver.Config) { c.Metrics = metrics })
	var all []*agent
	for range 21 {
		a := r.connect(t, apitest.LLM, sessionful, nil)
		a.want("svc_whoami", nil, map[string]any{"error": nil})
		all = append(all, a)
		r.Clock.Advance(1)
	}
	if _, err := all[0].CallTool(t.Context(), &mcp.CallToolParams{Name: "svc_whoami"}); err == nil {
		t.Error("the 21st session has not ended the first")
	}
	for _, a := range all[1:] {
		a.want("svc_whoami", nil, map[string]any{"error": nil})
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]float64{}
	for _, family := range families {
		shown[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	if open, most := shown["shoal_apiserver_agent_sessions"],
		shown["shoal_apiserver_agent_sessions_limit"]; open != 20 || most != 4096 {
		t.Errorf("%g sessions of %g are shown", open, most)
	}
}

// TestRatesAreThoseOfREST: a tool call uses the same rate bucket as its operation.
func TestRatesAreThoseOfREST(t *testing.T) {
	r := start(t, apitest.WithRateLimits, func(c *apiserver.Config) {
		c.Rates = map[string]apiserver.Rate{"read": {Count: 3, Per: 1e12},
			"agents": {Count: 50, Per: 1e12}}
	})
	a := r.connect(t, apitest.LLM, "", nil)
	a.want("svc_whoami", nil, map[string]any{"error": nil})
	r.Run(t, apitest.Scenario{Name: "REST", As: apitest.LLM, Do: "GET /api/wallet", Status: 200,
		Headers: map[string]string{"RateLimit-Remaining": "1"}})
	a.want("svc_get_wallet", nil, map[string]any{"error": nil})
	refused := a.refused("svc_get_wallet", nil, "rate_limited")
	if refused.Text("error.retryAfterSeconds") == "" {
		t.Errorf("it does not say when: %s", refused.text)
	}
	for range 50 {
		if a := r.post(t, apitest.LLM, initialize); a.Status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("messages have no limit")
}

// TestEndOfASession: a session that its client ends is gone at once, and so are its calls.
func TestEndOfASession(t *testing.T) {
	r := start(t)
	job := r.launch(t, 1)
	begun := make(chan struct{}, 10)
	a := r.connect(t, apitest.LLM, sessionful, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context,
			*mcp.ProgressNotificationClientRequest) {
			begun <- struct{}{}
		}})
	answered := make(chan error, 1)
	go func() {
		call := &mcp.CallToolParams{Name: "svc_stream_scraper_job", Arguments: args{"id": job}}
		call.SetProgressToken("p")
		_, err := a.CallTool(t.Context(), call)
		answered <- err
	}()
	<-begun
	header := map[string]string{"Mcp-Session-Id": a.ID(), "Mcp-Protocol-Version": sessionful}
	ends := apitest.Scenario{Name: "ends", As: apitest.LLM, Do: "DELETE /mcp", Header: header,
		Status: 204}
	again := ends
	again.Name, again.Status, again.Code = "ends again", 404, "session_not_found"
	r.Run(t, ends, again)
	if got := r.post(t, apitest.LLM, `{"jsonrpc":"2.0","id":7,"method":"ping"}`, "Mcp-Session-Id",
		a.ID(), "Mcp-Protocol-Version", sessionful); got.Status != 404 {
		t.Errorf("a message behind the end is answered %d %s", got.Status, got.Body)
	}
	if err := <-answered; err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("the call under way ends with %v", err)
	}
}

// TestStopWithAgents: a server stops while agents have sessions and wait. They get an answer first,
// which says that the wait is unfinished.
func TestStopWithAgents(t *testing.T) {
	for _, version := range []string{sessionful, ""} {
		r := start(t)
		job := r.launch(t, 1)
		begun := make(chan struct{}, 10)
		a := r.connect(t, apitest.LLM, version, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context,
				*mcp.ProgressNotificationClientRequest) {
				begun <- struct{}{}
			}})
		answered := make(chan *mcp.CallToolResult, 1)
		go func() {
			defer close(answered)
			call := &mcp.CallToolParams{Name: "svc_stream_scraper_job", Arguments: args{"id": job}}
			call.SetProgressToken("p")
			result, err := a.CallTool(t.Context(), call)
			if err != nil {
				t.Errorf("%s: %v", version, err)
				return
			}
			answered <- result
		}()
		<-begun
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		result := <-answered
		if result == nil {
			continue
		}
		got := a.read("svc_stream_scraper_job", result)
		if more, _ := got.At("unfinished"); more != true || got.Text("result.state") != "RUNNING" {
			t.Errorf("%s: a wait that a stop ends is answered %s", version, got.text)
		}
	}
}

// TestAccessTokens: an access token works like a key of its scope, until its grant ends.
func TestAccessTokens(t *testing.T) {
	r := start(t)
	account, grant := r.IDs.New(), r.IDs.New()
	access := auth.AccessStart + strings.Repeat("A", 52)
	r.Client.Must(t, client.CreateAccount{ID: account, Customer: "alice", Email: "a@x.test"})
	r.Client.Must(t, client.OpenSession{Account: account, Hash: client.Hash{2}})
	r.Client.Must(t, client.IssueCode{Session: client.Hash{2}, Scope: model.ScopeLLMRead})
	r.Client.Must(t, client.RedeemCode{Grant: grant, Access: auth.HashSession(access)})
	for _, version := range []string{sessionful, ""} {
		a := r.connect(t, access, version, nil)
		a.want("svc_whoami", nil, map[string]any{"result.scope": "LLM_READ"})
		a.refused("svc_stop_group", args{"id": r.group}, "scope_rejected")
	}
	a := r.connect(t, access, sessionful, nil)
	r.Client.Must(t, client.EndGrant{Customer: "alice", Grant: grant})
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "svc_whoami"}); err == nil {
		t.Error("a grant that has ended still calls")
	}
}
