package signin

import "testing"

// The sign-in page redirects only to requests of programs and places of the portal. A link to an
// operation that acts on GET would run in its recipient's session.
func TestOnward(t *testing.T) {
	r := Resource{Portal: "/portal"}
	for text, want := range map[string]string{
		"/portal":                        "/portal",
		"/portal/rows/1a?job=2b&field=x": "/portal/rows/1a?field=x&job=2b",
		"/oauth/authorize?state=1":       "/oauth/authorize?state=1",
		"/portal/../api/scraper/1/run":   "",
		"/portal/%2e%2e/api/scraper":     "",
		"/portal//other.example":         "",
		"/portal/a%2fb":                  "/portal/a/b",
		"/portalx":                       "",
		"//other.example/portal":         "",
		"https://other.example/portal":   "",
		"/api/scraper/1/run":             "",
		"/":                              "",
		"":                               "",
	} {
		if got := r.onward(text); got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
	if got := (Resource{}).onward("/portal"); got != "" {
		t.Errorf("%q leads to a portal that there is not", got)
	}
}
