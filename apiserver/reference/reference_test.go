package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// ask sends a request to a reference, and returns nil if it is not for the reference.
func ask(t *testing.T, method, uri string, headers ...string) *fasthttp.Response {
	t.Helper()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(method)
	rc.Request.SetRequestURI(uri)
	for i := 0; i < len(headers); i += 2 {
		rc.Request.Header.Set(headers[i], headers[i+1])
	}
	if !r.Serve(&rc) {
		return nil
	}
	return &rc.Response
}

// TestOthersAreLeftAlone: the description itself is served by an operation.
func TestOthersAreLeftAlone(t *testing.T) {
	for _, uri := range []string{"/v3/api-docs", "/v3/api-docs/mcp", "/v3/api-docs/references",
		"/", "/api/wallet"} {
		if answer := ask(t, "GET", uri); answer != nil {
			t.Errorf("%s is answered: %d", uri, answer.StatusCode())
		}
	}
}

// TestAnswers: only the page and its scripts exist, each with a strict policy.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		method, uri string
		status      int
	}{{"GET", Path, 200}, {"HEAD", Path, 200}, {"GET", Path + "?x=1", 200}, {"POST", Path, 405},
		{"GET", Path + "/", 404}, {"GET", Path + "/redoc.js", 404}, {"PUT", Path + "/x", 405}} {
		answer := ask(t, c.method, c.uri)
		if answer == nil || answer.StatusCode() != c.status {
			t.Fatalf("%s %s is not answered %d", c.method, c.uri, c.status)
		}
		policy := string(answer.Header.Peek("Content-Security-Policy"))
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s %s: the policy is %q", c.method, c.uri, policy)
		}
	}
}

// TestPageHasNonces: each answer has a new nonce, which every script and style carries, and no
// script is inline.
func TestPageHasNonces(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		answer := ask(t, "GET", Path)
		found := regexp.MustCompile(`script-src 'nonce-([A-Z2-7]{26})'; style-src 'nonce-([A-Z2-7]{26})' `).
			FindStringSubmatch(string(answer.Header.Peek("Content-Security-Policy")))
		if found == nil || found[1] != found[2] || seen[found[1]] {
			t.Fatalf("the nonces are %v", found)
		}
		seen[found[1]] = true
		body := string(answer.Body())
		for _, tag := range regexp.MustCompile(`<(script|style)[^>]*>`).FindAllString(body, -1) {
			if !strings.Contains(tag, `nonce="`+found[1]+`"`) {
				t.Errorf("%s has no nonce", tag)
			}
		}
		if strings.Contains(body, "://") || !strings.Contains(body, "></script>") {
			t.Errorf("the page leads elsewhere, or has scripts of its own: %s", body)
		}
	}
}

// TestScripts: both scripts come compressed or plain, and may be cached for good.
func TestScripts(t *testing.T) {
	paths := regexp.MustCompile(`src="([^"]+)"`).FindAllStringSubmatch(
		string(ask(t, "GET", Path).Body()), -1)
	if len(paths) != 2 {
		t.Fatalf("%d scripts", len(paths))
	}
	for _, path := range paths {
		packed := ask(t, "GET", path[1], "Accept-Encoding", "gzip, br")
		plain := ask(t, "GET", path[1])
		if string(packed.Header.Peek("Content-Encoding")) != "gzip" ||
			len(plain.Header.Peek("Content-Encoding")) > 0 ||
			!strings.Contains(string(plain.Header.Peek("Cache-Control")), "immutable") ||
			!bytes.Equal(unpack(t, packed.Body()), plain.Body()) {
			t.Errorf("%s: %s, %s", path[1], &packed.Header, &plain.Header)
		}
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// published is the SHA-256 of bundles/redoc.standalone.js in redoc-2.5.4.tgz from npm.
const published = "dcaf76612bc4a3fbcc923a8966dee2f6146a5f32e5ce1b6f02dd60cbbf89500b"

// logo is the text in the package that our copy replaces with ours, once.
const logo, ours = `src:"https://cdn.redoc.ly/redoc/logo-mini.svg"`, `src:"data:,"`

// TestRendererIsAsPublished: the renderer equals the published file except for the logo, its
// licenses are kept, and a page load takes at most 350 kB.
func TestRendererIsAsPublished(t *testing.T) {
	plain := unpack(t, renderer)
	if bytes.Count(plain, []byte(ours)) != 1 || bytes.Contains(plain, []byte(logo)) {
		t.Error("the renderer asks another server for its logo")
	}
	sum := sha256.Sum256(bytes.Replace(plain, []byte(ours), []byte(logo), 1))
	if got := hex.EncodeToString(sum[:]); got != published {
		t.Errorf("the renderer is %s", got)
	}
	if len(renderer)+len(start)+len(source) > 350_000 {
		t.Errorf("the page loads %d bytes", len(renderer)+len(start)+len(source))
	}
	for _, name := range []string{"LICENSE", "redoc.standalone.js.LICENSE.txt"} {
		text, err := os.ReadFile("third_party/redoc/" + name)
		if err != nil || !strings.Contains(string(text), "MIT") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
