package apiserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

// endless is a large body that is sent whether or not there is an answer already.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(e.left, len(p))
	for i := range p[:n] {
		p[i] = ' '
	}
	e.left -= n
	return n, nil
}

// A client that is still sending sees why it was refused, not a reset connection.
func TestRefusedSendersSeeTheAnswer(t *testing.T) {
	// exceeds the limit of any operation and the buffers of both systems
	const size = 40 << 20
	s := apitest.Start(t, apitest.WithRateLimits, func(config *apiserver.Config) {
		config.Rates = map[string]apiserver.Rate{"list-run": {Count: 40, Per: time.Hour},
			"preview": {Count: 1, Per: time.Hour}}
	})
	preview := apitest.Scenario{As: apitest.LLM, Do: "POST /api/scraper-simple/preview-from-url",
		Body: "{}"}
	s.Call(t, preview) // the only one that the rate allows
	for name, c := range map[string]struct {
		as, path, media string
		status          int
	}{
		"too large":      {apitest.User, "/api/scraper/url-list-run", "application/json", 413},
		"media type":     {apitest.User, "/api/scraper/url-list-run", "text/csv", 415},
		"no credential":  {apitest.Nobody, "/api/scraper/url-list-run", "application/json", 401},
		"bad credential": {"svc_live_none", "/api/scraper/url-list-run", "application/json", 401},
		"scope":          {apitest.Reader, "/api/scraper/url-list-run", "application/json", 403},
		"parameters":     {apitest.User, "/api/scraper/url-list-run?limit=x", "text/uri-list", 400},
		"rate": {apitest.LLM, "/api/scraper-simple/preview-from-url", "application/json",
			429},
		"no such path": {apitest.User, "/api/nothing", "application/json", 404},
	} {
		for _, framing := range []string{"length", "chunked", "expect"} {
			t.Run(name+" "+framing, func(t *testing.T) {
				t.Parallel()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					s.URL+c.path, &endless{size})
				if err != nil {
					t.Fatal(err)
				}
				if framing != "chunked" {
					request.ContentLength = size
				}
				if framing == "expect" {
					request.Header.Set("Expect", "100-continue")
				}
				request.Header.Set("Content-Type", c.media)
				credential, known := s.Secrets[c.as]
				if !known {
					credential = c.as
				}
				request.Header.Set("Authorization", "Bearer "+credential)
				transport := &http.Transport{ExpectContinueTimeout: time.Minute}
				defer transport.CloseIdleConnections()
				response, err := (&http.Client{Transport: transport}).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = response.Body.Close() }()
				body, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != c.status ||
					!strings.Contains(string(body), "correlationId") {
					t.Errorf("status %d, want %d: %s %v", response.StatusCode, c.status, body, err)
				}
			})
		}
	}
}
