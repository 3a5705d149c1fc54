package apiserver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/testkit/tool"
)

// overBound exceeds the limit of an operation's body and the buffers of both systems.
const overBound = 40 << 20

// pythonSends sends a body in one go, as Python's own client does, and reads the answer if it can.
// A server that closes early causes an exception.
const pythonSends = `
import sys, http.client
host, path, token, size = sys.argv[1:]
c = http.client.HTTPConnection(host, timeout=60)
c.request("POST", path, b" " * int(size),
          {"Content-Type": "application/json", "Authorization": "Bearer " + token})
r = c.getresponse()
print(r.read().decode())
print(r.status)
`

// Clients other than Go's see the 413, too: Python's, and curl with a length, with Expect, and with
// chunks.
func TestOtherClientsSeeTheRefusal(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t)
	token := s.Secrets[apitest.User]
	const path = "/api/scraper/url-list-run"
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, []byte(strings.Repeat(" ", overBound)), 0o600); err != nil {
		t.Fatal(err)
	}
	curl := func(header string) []string {
		return []string{"curl", "--silent", "--show-error", "--max-time", "60", "--http1.1",
			"--data-binary", "@" + large, "--header", "Content-Type: application/json",
			"--header", "Authorization: Bearer " + token, "--header", header,
			"--write-out", "\n%{http_code}\n", s.URL + path}
	}
	for name, command := range map[string][]string{
		"curl at once":    curl("Expect:"),
		"curl asks first": curl("Expect: 100-continue"),
		"curl in chunks":  curl("Transfer-Encoding: chunked"),
		"python": {"python3", "-c", pythonSends, strings.TrimPrefix(s.URL, "http://"), path,
			token, fmt.Sprint(overBound)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool.Need(t, command[0])
			output, err := exec.CommandContext(t.Context(), command[0],
				command[1:]...).CombinedOutput()
			answer := strings.TrimSpace(string(output))
			if err != nil || !strings.HasSuffix(answer, "\n413") ||
				!strings.Contains(answer, "payload_too_large") ||
				!strings.Contains(answer, "correlationId") {
				t.Errorf("%v: %.500s", err, answer)
			}
		})
	}
}
