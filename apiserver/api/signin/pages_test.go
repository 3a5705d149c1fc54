package signin

import "testing"

// The sign-in page leads to questions of programs and to places of the portal, and nowhere else. A
// link that does something by GET would be followed with the session of whom it is sent to.
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
