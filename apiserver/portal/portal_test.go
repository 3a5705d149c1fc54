package portal

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// at is a follow that finds this index.
func at(index uint64) func(*fasthttp.RequestCtx) uint64 {
	return func(*fasthttp.RequestCtx) uint64 { return index }
}

// ask sends a request to a portal, with or without a session cookie.
func ask(t *testing.T, method, uri string, signedIn bool, headers ...string) *fasthttp.Response {
	t.Helper()
	p, err := New(func(*fasthttp.RequestCtx) bool { return signedIn }, at(7), false)
	if err != nil {
		t.Fatal(err)
	}
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(method)
	rc.Request.SetRequestURI(uri)
	for i := 0; i < len(headers); i += 2 {
		rc.Request.Header.Set(headers[i], headers[i+1])
	}
	if !p.Serve(&rc) {
		return nil
	}
	return &rc.Response
}

// The page says whether there is a payment provider, so that the script need not ask.
func TestPageSaysWhetherPaymentsAreTaken(t *testing.T) {
	for payments, want := range map[bool]string{true: "yes", false: "no"} {
		p, err := New(func(*fasthttp.RequestCtx) bool { return true }, at(7), payments)
		if err != nil {
			t.Fatal(err)
		}
		var rc fasthttp.RequestCtx
		rc.Request.SetRequestURI(Path)
		if !p.Serve(&rc) || !bytes.Contains(rc.Response.Body(),
			[]byte(`<meta name="payments" content="`+want+`">`)) {
			t.Errorf("%v: %s", payments, rc.Response.Body())
		}
	}
}

// Requests outside the portal are left to the API.
func TestOthersAreLeftAlone(t *testing.T) {
	for _, uri := range []string{"/api/wallet", "/portals", "/sign-in", "/healthz", "/index.html"} {
		if answer := ask(t, "GET", uri, true); answer != nil {
			t.Errorf("%s is answered: %d", uri, answer.StatusCode())
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		method, uri string
		signedIn    bool
		status      int
		location    string
	}{
		{"GET", "/", false, 303, "/portal"},
		{"GET", "/portal", true, 200, ""},
		{"HEAD", "/portal", true, 200, ""},
		{"GET", "/portal/rows/1?job=2", true, 200, ""},
		{"GET", "/portal/rows/1?job=2", false, 303, "/sign-in?next=%2Fportal%2Frows%2F1%3Fjob%3D2"},
		{"GET", "/portal/assets/none.js", true, 404, ""},
		{"POST", "/portal", true, 405, ""},
	} {
		answer := ask(t, c.method, c.uri, c.signedIn)
		if got := string(answer.Header.Peek("Location")); answer.StatusCode() != c.status ||
			got != c.location {
			t.Errorf("%s %s: %d to %q, want %d to %q", c.method, c.uri, answer.StatusCode(), got,
				c.status, c.location)
		}
		if policy := string(answer.Header.Peek("Content-Security-Policy")); !strings.Contains(
			policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s %s: the policy is %q", c.method, c.uri, policy)
		}
	}
}

// The page runs only what its nonce allows, and each answer has a new nonce.
func TestPageHasNonces(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		answer := ask(t, "GET", "/portal", true)
		policy := string(answer.Header.Peek("Content-Security-Policy"))
		found := regexp.MustCompile(`script-src 'nonce-([A-Z2-7]{26})'; style-src 'nonce-([A-Z2-7]{26})'`).
			FindStringSubmatch(policy)
		if found == nil || found[1] != found[2] || seen[found[1]] {
			t.Fatalf("the policy is %q", policy)
		}
		seen[found[1]] = true
		page := string(answer.Body())
		if strings.Count(page, `nonce="`+found[1]+`"`) != strings.Count(page, "<link")+
			strings.Count(page, "<script")-1 || strings.Count(page, "<script") != 1 || // icon: none
			strings.Contains(page, "<style") || strings.Contains(page, "://") {
			t.Errorf("the page is %s", page)
		}
		if parts := strings.Count(page, `rel="modulepreload"`); parts == 0 ||
			parts != strings.Count(page, "/chunk-") {
			t.Errorf("the page names %d parts of its script: %s", parts, page)
		}
		if !strings.Contains(policy, "require-trusted-types-for 'script'") {
			t.Errorf("scripts may write HTML: %q", policy)
		}
	}
}

// Assets are compressed if the client accepts that, and may be cached for good.
func TestAssetsAreSent(t *testing.T) {
	p, err := New(nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for path := range p.assets {
		plain := ask(t, "GET", path, false)
		small := ask(t, "GET", path, false, "Accept-Encoding", "br, gzip")
		r, err := gzip.NewReader(bytes.NewReader(small.Body()))
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(unpacked, plain.Body()) || len(unpacked) == 0 {
			t.Errorf("%s: %d bytes compressed, %d plain, %v", path, len(unpacked),
				len(plain.Body()), err)
		}
		if !strings.Contains(string(plain.Header.Peek("Cache-Control")), "immutable") ||
			string(small.Header.Peek("Content-Encoding")) != "gzip" {
			t.Errorf("%s: %s", path, &small.Header)
		}
	}
}
