package signin_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

// Registrations are checked against their limits.
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
		"twice":         {`{"redirect_uris":["https://a.example"],"redirect_uris":["https://b.example"]}`, "invalid_client_metadata"},
		"another name":  {`{"Redirect_URIs":["https://a.example"]}`, "invalid_redirect_uri"},
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

// Agents in a browser can read the metadata from a page of any site. It is public, and a protocol
// header does not prevent it.
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
				"Access-Control-Allow-Headers": "*, Authorization"}})
	}
}

// Operations that accept no cookies are open to pages of other sites, which must know a credential.
// A service on this machine accepts only pages of this machine, and one in the clear accepts none.
// All other operations are closed to pages.
func TestPagesOfOtherSites(t *testing.T) {
	s := start(t, mailing, func(c *apiserver.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	behind := func(host, protocol string) map[string]string {
		return map[string]string{"Host": host, "X-Forwarded-For": "192.0.2.9",
			"X-Forwarded-Proto": protocol}
	}
	spot := start(t)
	for name, c := range map[string]struct {
		s      *apitest.Server
		to     map[string]string
		origin string
		open   bool
	}{
		"a site":              {s, behind("shoal.example", "https"), "https://agent.example", true},
		"this machine":        {s, behind("shoal.example", "https"), "http://localhost:6274", true},
		"a site in the clear": {s, behind("shoal.example", "https"), "http://agent.example", false},
		"no site":             {s, behind("shoal.example", "https"), "null", false},
		"no address":          {s, behind("shoal.example", "https"), "https://", false},
		"to the clear":        {s, behind("shoal.example", "http"), "https://agent.example", false},
		"on the spot":         {spot, nil, "http://localhost:6274", true},
		"by address":          {spot, nil, "http://127.0.0.1:6274", true},
		"a site to the spot":  {spot, nil, "https://agent.example", false},
		"its like":            {spot, nil, "https://localhost.agent.example", false},
		"rebound": {spot, map[string]string{"Host": "agent.example"},
			"https://agent.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			calls := map[string]string{"Origin": c.origin, "Sec-Fetch-Site": "cross-site"}
			maps.Copy(calls, c.to)
			open := map[string]bool{"POST /mcp": true, "DELETE /mcp": true, "GET /mcp": true,
				"POST /oauth/register": true, "POST /oauth/token": true,
				"POST /oauth/revoke": true, "GET /api/wallet": false,
				"PUT /api/schema/customer": false, "POST /api/auth/sign-in": false,
				"POST /api/auth/sign-out": false,
				"POST /oauth/authorize":   false}
			for call, takes := range open {
				method, path, _ := strings.Cut(call, " ")
				a := c.s.Call(t, apitest.Scenario{Do: call, Header: calls, Body: "{}"})
				read := a.Header.Get("Access-Control-Allow-Origin")
				if wanted := takes && c.open; wanted != (read == "*") || wanted &&
					a.Text("code") == "cross_site_refused" || read != "" && read != "*" ||
					a.Header.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: %d, read by %q: %s", call, a.Status, read, a.Body)
				}
				if takes && !c.open && method != "GET" && a.Text("code") != "cross_site_refused" {
					t.Errorf("%s: %d %s", call, a.Status, a.Body)
				}
				asks := maps.Clone(calls)
				asks["Access-Control-Request-Method"] = method
				asks["Access-Control-Request-Headers"] = "authorization,mcp-session-id"
				a = c.s.Call(t, apitest.Scenario{Do: "OPTIONS " + path, Header: asks})
				h := a.Header
				if wanted := takes && c.open; wanted != (a.Status == 204) || wanted !=
					(h.Get("Access-Control-Allow-Origin") == "*") || wanted &&
					(!strings.Contains(h.Get("Access-Control-Allow-Methods"), method) ||
						!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization")) {
					t.Errorf("preflight of %s: %d %v", call, a.Status, h)
				}
			}
		})
	}
}

// Where pages of other sites may call, a cookie is not a credential.
func TestNoCookieIsTakenFromOtherSites(t *testing.T) {
	s := start(t)
	in := s.Call(t, apitest.Scenario{Do: "POST /api/auth/sign-in", Body: entered})
	cookie := "shoal-session=" + cookies(in)["shoal-session"].Value
	for _, site := range []string{"same-origin", "cross-site"} {
		s.Run(t, apitest.Scenario{Name: site, Do: "POST /mcp", Status: 401, Code: "unauthorized",
			Body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, Header: map[string]string{
				"Cookie": cookie, "Origin": "http://localhost:6274", "Sec-Fetch-Site": site}})
	}
}
