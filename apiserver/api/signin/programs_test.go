package signin_test

import (
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// What registers is held to its bounds.
func TestRegistrations(t *testing.T) {
	s := start(t)
	uris := func(uris ...string) string {
		return `{"redirect_uris":["` + strings.Join(uris, `","`) + `"]}`
	}
	long := "https://a.example/" + strings.Repeat("x", 255-len("https://a.example/"))
	five := slices.Repeat([]string{long}, 5)
	for name, c := range map[string]struct {
		body string
		want string
	}{
		"https":         {uris("https://a.example/x?y=z"), ""},
		"loopback":      {uris("http://localhost/x", "http://[::1]:80/", "http://127.0.0.9"), ""},
		"the most":      {strings.Replace(uris(five...), "{", `{"client_name":"`+strings.Repeat("ü", 64)+`",`, 1), ""},
		"none":          {`{}`, "invalid_redirect_uri"},
		"six":           {uris(append(five, long)...), "invalid_redirect_uri"},
		"too long":      {uris(long + "x"), "invalid_redirect_uri"},
		"in the clear":  {uris("http://a.example/"), "invalid_redirect_uri"},
		"a script":      {uris("javascript:alert(1)"), "invalid_redirect_uri"},
		"a scheme":      {uris("agent://back"), "invalid_redirect_uri"},
		"a fragment":    {uris("https://a.example/#x"), "invalid_redirect_uri"},
		"a user":        {uris("https://a@a.example/"), "invalid_redirect_uri"},
		"no host":       {uris("https:///x"), "invalid_redirect_uri"},
		"no address":    {uris("x y"), "invalid_redirect_uri"},
		"a long name":   {`{"redirect_uris":["https://a.example"],"client_name":"` + strings.Repeat("x", 65) + `"}`, "invalid_client_metadata"},
		"unseen":        {`{"redirect_uris":["https://a.example"],"client_name":"a\u202eb"}`, "invalid_client_metadata"},
		"another shape": {`{"redirect_uris":"https://a.example"}`, "invalid_client_metadata"},
		"no JSON":       {`x`, "invalid_client_metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			a, status := register(t, s, c.body), 201
			if c.want != "" {
				status = 400
			}
			if a.Status != status || a.Text("error") != c.want ||
				c.want == "" && (len(a.Text("client_id")) > 4096 || a.Text("client_id") == "") {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	first, second := register(t, s, uris(long)), register(t, s, uris(long))
	if first.Text("client_id") == second.Text("client_id") {
		t.Error("two programs have one id")
	}
}

// Agents that run in a browser find their way from a page of any site. Who grants access is public,
// and a header of their protocol bars nobody. What writes is open to no other site's page.
func TestMetadataIsReadFromAnywhere(t *testing.T) {
	s := start(t)
	from := map[string]string{"Origin": "https://agent.example", "Sec-Fetch-Site": "cross-site"}
	asks := map[string]string{"Origin": "https://agent.example",
		"Access-Control-Request-Method":  "GET",
		"Access-Control-Request-Headers": "mcp-protocol-version"}
	for _, path := range []string{"/.well-known/oauth-authorization-server",
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		s.Run(t, apitest.Scenario{Name: path, Do: "GET " + path, Header: from, Status: 200,
			Headers: map[string]string{"Access-Control-Allow-Origin": "*"}})
		s.Run(t, apitest.Scenario{Name: "preflight of " + path, Do: "OPTIONS " + path,
			Header: asks, Status: 204, Headers: map[string]string{
				"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET",
				"Access-Control-Allow-Headers": "*"}})
	}
	for _, closed := range []string{"GET /api/wallet", "OPTIONS /api/wallet", "OPTIONS /mcp",
		"POST /mcp", "OPTIONS /oauth/register"} {
		a := s.Call(t, apitest.Scenario{Do: closed, As: apitest.User, Header: from})
		if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" || a.Status < 300 &&
			closed != "GET /api/wallet" {
			t.Errorf("%s: %d, open to %q", closed, a.Status, got)
		}
	}
}
