package agents_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestUnknownVersions: an unsupported protocol version gets a JSON-RPC error that lists the
// supported ones. A client that proposes one in initialize is offered another.
func TestUnknownVersions(t *testing.T) {
	r := start(t)
	for _, version := range []string{"1999-01-01", "2099-01-01", "next"} {
		for _, body := range []string{initialize, `{"jsonrpc":"2.0","id":1,"method":"tools/list",` +
			`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `"}}}`} {
			a := r.post(t, apitest.LLM, body, "Mcp-Protocol-Version", version)
			holdError(t, a, 400, mcp.CodeUnsupportedProtocolVersion)
			if got, _ := a.At("error.data.requested"); got != version {
				t.Errorf("%s: it was asked for %v", version, got)
			}
			if said := string(a.Body); !strings.Contains(said, `"2025-11-25"`) {
				t.Errorf("%s: %s does not say what is spoken", version, said)
			}
		}
		a := r.post(t, apitest.LLM, strings.Replace(initialize, sessionful, version, 1))
		if a.Status != 200 || !strings.Contains(string(a.Body), `"protocolVersion":"2025-11-25"`) {
			t.Errorf("%s is answered %d %s", version, a.Status, a.Body)
		}
	}
}

// TestUnknownMethods: an unknown method gets a JSON-RPC error, and an unknown notification is
// ignored.
func TestUnknownMethods(t *testing.T) {
	r := start(t)
	session := r.connect(t, apitest.LLM, sessionful, nil).ID()
	const call = `{"jsonrpc":"2.0","id":"7","method":%q,"params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	for _, method := range []string{"nothing", "tools/delete", "Tools/List", long("x", 9999)} {
		a := r.post(t, apitest.LLM, fmt.Sprintf(call, method), "Mcp-Session-Id", session,
			"Mcp-Protocol-Version", sessionful)
		holdError(t, a, 200, jsonrpc.CodeMethodNotFound)
		a = r.post(t, apitest.LLM, fmt.Sprintf(call, method), "Mcp-Protocol-Version", "2026-07-28")
		holdError(t, a, 404, jsonrpc.CodeMethodNotFound)
		if id, _ := a.At("id"); id != "7" || len(a.Body) > 500 {
			t.Errorf("%.30s is answered %s", method, a.Body)
		}
	}
	ignored := r.post(t, apitest.LLM, `{"jsonrpc":"2.0","method":"notifications/nothing"}`,
		"Mcp-Session-Id", session, "Mcp-Protocol-Version", sessionful)
	if ignored.Status != 202 || len(ignored.Body) > 0 {
		t.Errorf("a notification is answered %d %s", ignored.Status, ignored.Body)
	}
}

// TestKnownMethods: methods that the library knows reach it.
func TestKnownMethods(t *testing.T) {
	r := start(t)
	for _, method := range []string{"tools/list", "resources/list", "resources/templates/list",
		"prompts/list", "server/discover"} {
		a := r.post(t, apitest.LLM, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`, method),
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method)
		if a.Status != 200 || !strings.Contains(string(a.Body), `"result"`) {
			t.Errorf("%s is answered %d %.300s", method, a.Status, a.Body)
		}
	}
}

// ofTheProgram matches implementation names, which no answer may contain.
var ofTheProgram = regexp.MustCompile(`\bGo \b|struct field|reflect|unmarshal|\*\w+\.|` +
	`mcp\.[A-Z]|jsonrpc2|\bfloat64\b|\bint64\b|map\[|wire[A-Z]`)

// TestMistypedMessages: a message with wrong types is refused in terms of the protocol, naming the
// member.
func TestMistypedMessages(t *testing.T) {
	r := start(t)
	session := r.connect(t, apitest.LLM, sessionful, nil).ID()
	for body, member := range map[string]string{
		`{"jsonrpc":2,"id":1,"method":"ping"}`:                           "jsonrpc",
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                       "jsonrpc",
		`{"id":1,"method":"ping"}`:                                       "jsonrpc",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                      "id",
		`{"jsonrpc":"2.0","id":[1],"method":"ping"}`:                     "id",
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                    "id",
		`{"jsonrpc":"2.0","id":1,"method":5}`:                            "method",
		`{"jsonrpc":"2.0","id":1,"method":{}}`:                           "method",
		`{"jsonrpc":"2.0","id":1,"error":"no"}`:                          "error",
		`{"jsonrpc":"2.0","id":1,"error":{"code":"no"}}`:                 "error.code",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1.5}}`:                  "error.code",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:           "params",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}`:    "params",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`:    "params",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}`:      "params",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":"x"}`:    "params",
		`{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":true}`: "params",
	} {
		held(t, r.post(t, apitest.LLM, body, "Mcp-Session-Id", session,
			"Mcp-Protocol-Version", sessionful), body, member)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
	for method, members := range map[string][]string{"initialize": {"protocolVersion",
		"capabilities", "clientInfo"}, "tools/call": {"name"}, "tools/list": {"cursor"},
		"prompts/get": {"name", "arguments"}, "prompts/list": {"cursor"},
		"resources/read": {"uri"}, "resources/list": {"cursor"},
		"resources/templates/list": {"cursor"}, "resources/subscribe": {"uri"},
		"resources/unsubscribe": {"uri"}, "logging/setLevel": {"level"},
		"completion/complete": {"argument", "context"}} {
		for _, member := range members {
			for _, wrong := range []string{`7`, `[]`, `[{}]`, `true`} {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%q:%s,%s}}`,
					method, member, wrong, meta)
				held(t, r.post(t, apitest.LLM, body, "Mcp-Session-Id", session,
					"Mcp-Protocol-Version", sessionful), body, "params."+member)
				held(t, r.post(t, apitest.LLM, body, "Mcp-Protocol-Version", "2026-07-28",
					"Mcp-Method", method), body, "params."+member)
			}
		}
	}
	for _, arguments := range []string{`7`, `[]`, `"x"`, `true`, `{"id":7}`, `{"id":[]}`,
		`{"page":"x"}`, `{"size":{}}`, `{"filters":[[]]}`} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` +
			`"svc_get_data","arguments":` + arguments + `}}`
		held(t, r.post(t, apitest.LLM, body, "Mcp-Session-Id", session,
			"Mcp-Protocol-Version", sessionful), body, "")
	}
}

// TestIDsComeBack: an answer or a refusal carries the id of its message.
func TestIDsComeBack(t *testing.T) {
	r := start(t)
	session := r.connect(t, apitest.LLM, sessionful, nil).ID()
	for id, taken := range map[string]bool{"0": true, "-7": true, "1.0": true, `"1.5"`: true,
		"9007199254740991": true, "-9007199254740991": true, "1.5": false, "1e-3": false,
		"9007199254740992": false, "1759999999123456789": false, "-9007199254740993": false,
		"1e400": false} {
		a := r.post(t, apitest.LLM, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`,
			"Mcp-Session-Id", session, "Mcp-Protocol-Version", sessionful)
		want := strings.TrimSuffix(id, ".0")
		if said := string(a.Body); !strings.Contains(said, `"id":`+want+`,`) ||
			strings.Contains(said, `"result"`) != taken ||
			!taken && (a.Status != 400 || !strings.Contains(said, "id: must")) {
			t.Errorf("%s is answered %d %s", id, a.Status, said)
		}
	}
}

// TestSessionsOutliveRefusedMessages: a refused message is answered with its id. Otherwise the
// client library cannot match the refusal, and gives up its session.
func TestSessionsOutliveRefusedMessages(t *testing.T) {
	r := start(t)
	for _, version := range []string{sessionful, ""} {
		a := r.connect(t, apitest.LLM, version, nil)
		for name, argument := range map[string]string{
			"nested": long("[", 2_000) + long("]", 2_000), "long": `"` + long("x", 1<<20) + `"`,
			"nested, but not for the library": long("[", 900) + long("]", 900),
			"a number that nothing holds":     "1e999",
		} {
			result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "svc_get_wallet",
				Arguments: json.RawMessage(`{"cursor":` + argument + `}`)})
			if err == nil && !result.IsError {
				t.Errorf("%s is taken", name)
			}
			if err != nil && ofTheProgram.MatchString(err.Error()) {
				t.Errorf("%s: %.300v", name, err)
			}
			a.want("svc_whoami", nil, map[string]any{"result.scope": "LLM_FULL"})
		}
	}
	for _, id := range []string{"", `,"id":null`, `,"id":{}`} {
		a := r.post(t, apitest.LLM, `{"jsonrpc":"2.0","method":"ping"`+id+`,"params":`+
			long("[", 2_000)+long("]", 2_000)+`}`)
		if a.Status != 400 || a.Text("code") != "invalid_body" {
			t.Errorf("without an id it is answered %d %.300s", a.Status, a.Body)
		}
	}
	a := r.post(t, apitest.LLM, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"`+
		long("x", 5<<20)+`"}}`)
	if a.Status != 413 || a.Text("code") != "payload_too_large" {
		t.Errorf("one that is far too long is answered %d %.300s", a.Status, a.Body)
	}
}

// held requires a refusal that names a member and contains no implementation names.
func held(t *testing.T, a apitest.Answer, body, member string) {
	t.Helper()
	said := string(a.Body)
	if !strings.Contains(said, `"error"`) && a.Status < 400 || a.Status >= 500 ||
		!strings.Contains(said, member+" ") && !strings.Contains(said, member+": ") &&
			!strings.Contains(said, `"field":"`+member+`"`) && member != "" {
		t.Errorf("%s is answered %d %.300s, which does not name %q", body, a.Status, said, member)
	}
	if found := ofTheProgram.FindString(said); found != "" {
		t.Errorf("%s is answered %.300s, which says %q", body, said, found)
	}
}

// holdError requires a JSON-RPC error.
func holdError(t *testing.T, a apitest.Answer, status, code int) {
	t.Helper()
	var said struct {
		JSONRPC string `json:"jsonrpc"`
		Error   struct{ Code int }
	}
	if err := json.Unmarshal(a.Body, &said); err != nil || a.Status != status ||
		said.JSONRPC != "2.0" || said.Error.Code != code ||
		a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s, want %d and the error %d (%v)", a.Status, a.Body, status, code, err)
	}
}

// TestAYesCountsOnce: a client that asks a person between two calls may repeat the second one. The
// run is still launched only once.
func TestAYesCountsOnce(t *testing.T) {
	r := start(t)
	call := func(cap int, more string) string {
		a := r.post(t, apitest.LLM, fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call",`+
			`"params":{"name":"svc_run_scraper","arguments":{"id":%q,"maxChargeMicros":%d},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}%s}}`, r.scraper, cap,
			more), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name",
			"svc_run_scraper")
		return string(a.Body)
	}
	asks := func(answer string) string {
		_, rest, found := strings.Cut(answer, `"requestState":"`)
		state, _, _ := strings.Cut(rest, `"`)
		if !found || state == "" {
			t.Fatalf("nobody is asked: %s", answer)
		}
		return state
	}
	runs := func() int { return len(r.Client.View().OpenJobsOfCustomer("alice")) }
	state := asks(call(1_500, ""))
	yes := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"confirm":{"action":"accept",`+
		`"content":{}}}`, state)
	first := call(1_500, yes)
	if !strings.Contains(first, "PENDING") || call(1_500, yes) != first || runs() != 1 {
		t.Errorf("%d runs of one yes: %s", runs(), first)
	}
	asks(call(1_600, yes))
	if asks(call(1_500, strings.Replace(yes, state, "x-1", 1))) == state || runs() != 1 {
		t.Error("a yes to something else counts")
	}
}
