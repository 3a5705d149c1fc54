package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/browser"
)

// agentInAPage is how a client in a page comes to its first answer. It is refused, finds out who
// grants access, and registers. It asks for tokens with an invalid code, and calls with a key.
const agentInAPage = `(async (server, key) => {
	const said = [];
	const mcp = (method, headers) => fetch(server + "/mcp", { method, headers: { ...headers,
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream" },
		body: method === "POST" ? JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize",
			params: { protocolVersion: "2025-06-18", capabilities: {},
				clientInfo: { name: "page", version: "1" } } }) : undefined });
	const refused = await mcp("POST");
	const at = /resource_metadata="([^"]+)"/.exec(refused.headers.get("WWW-Authenticate"))[1];
	said.push(refused.status);
	const [granter] = (await (await fetch(at)).json()).authorization_servers;
	const found = await (await fetch(granter + "/.well-known/oauth-authorization-server")).json();
	const program = await fetch(found.registration_endpoint, { method: "POST",
		headers: { "Content-Type": "application/json" },
		body: JSON.stringify({ redirect_uris: [location.origin + "/back"] }) });
	said.push(program.status);
	const { client_id } = await program.json();
	const tokens = await fetch(found.token_endpoint, { method: "POST", body: new URLSearchParams({
		grant_type: "authorization_code", client_id, code: "none", code_verifier: "none" }) });
	said.push((await tokens.json()).error);
	const by = { Authorization: "Bearer " + key };
	const answer = await mcp("POST", by);
	said.push(answer.status, (await answer.text()).includes("serverInfo"));
	const session = { ...by, "Mcp-Session-Id": answer.headers.get("Mcp-Session-Id"),
		"Mcp-Protocol-Version": "2025-06-18" };
	said.push((await mcp("GET", session)).status, (await mcp("DELETE", session)).status);
	return said.join(" ");
})`

// TestAgentsInABrowser: a page of this machine finds its way to the tools. For a page of another
// name the service appears not to exist.
func TestAgentsInABrowser(t *testing.T) {
	t.Parallel()
	path := browser.Path(t)
	product := &single{data: t.TempDir(), args: append(suite.Fast(), "--chromium", "none")}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	var key struct{ Key string }
	if err := s.Call(t.Context(), "PUT", "/api/key/generate?name=agent&scope=LLM_READ", nil, nil,
		&key); err != nil {
		t.Fatal(err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>An agent</title>")
	}))
	t.Cleanup(page.Close)
	p := newPerson(t, path, s.Server,
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"))
	ask := func(from string) string {
		t.Helper()
		p.do(chromedp.Navigate(from))
		said, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf(
			"%s(%q, %q).catch(e => String(e))", agentInAPage, s.Server, key.Key),
			chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said := ask(page.URL); said != "401 201 invalid_request 200 true 405 204" {
		t.Errorf("a page of this machine is told %q", said)
	}
	there := strings.Replace(page.URL, "127.0.0.1", "agent.example", 1)
	if said := ask(there); said != "TypeError: Failed to fetch" {
		t.Errorf("a page of another name is told %q", said)
	}
	product.Down(t)
}
