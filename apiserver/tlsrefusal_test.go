package apiserver

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"shoal.dev/shoal/testkit/tool"
)

// largeBody is more than any call may have and than the buffers of both systems hold.
const largeBody = 40 << 20

// serveTLS serves one call over TLS and returns its address.
func serveTLS(t *testing.T) string {
	files := newPairFiles(t)
	files.write(t, 1, true, true)
	certificate, err := OpenCertificate(files.cert, files.key)
	if err != nil {
		t.Fatal(err)
	}
	address := serveTest(t, func(c *Config) { c.Certificate = certificate })
	return "https://" + address + "/livez"
}

// TestRefusalsArriveOverTLS: a client that still sends sees the 413 over TLS, too, whether it
// announces a length or sends chunks.
func TestRefusalsArriveOverTLS(t *testing.T) {
	address := serveTLS(t)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for name, body := range map[string]io.Reader{
		"length": bytes.NewReader(make([]byte, largeBody)),
		"chunks": io.LimitReader(endless{}, largeBody),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge ||
			!bytes.Contains(said, []byte("payload_too_large")) {
			t.Errorf("%s: %s, %v: %s", name, response.Status, err, said)
		}
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// pythonOverTLS sends a body in one go and reads the answer if it can.
const pythonOverTLS = `
import sys, ssl, http.client
host, size = sys.argv[1:]
c = http.client.HTTPSConnection(host, timeout=60, context=ssl._create_unverified_context())
c.request("GET", "/livez", b" " * int(size))
r = c.getresponse()
print(r.read().decode())
print(r.status)
`

// TestOtherClientsSeeTheRefusalOverTLS: so do Python's client and curl.
func TestOtherClientsSeeTheRefusalOverTLS(t *testing.T) {
	address := serveTLS(t)
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, largeBody), 0o600); err != nil {
		t.Fatal(err)
	}
	curl := []string{"curl", "--silent", "--show-error", "--max-time", "60", "--insecure",
		"--http1.1", "--request", "GET", "--data-binary", "@" + large, "--header", "Expect:",
		"--write-out", "\n%{http_code}\n", address}
	host := strings.TrimSuffix(strings.TrimPrefix(address, "https://"), "/livez")
	for name, command := range map[string][]string{
		"curl": curl,
		"curl in chunks": append([]string{"curl", "--header", "Transfer-Encoding: chunked"},
			curl[1:]...),
		"python": {"python3", "-c", pythonOverTLS, host, strconv.Itoa(largeBody)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool.Need(t, command[0])
			output, err := exec.CommandContext(t.Context(), command[0],
				command[1:]...).CombinedOutput()
			answer := strings.TrimSpace(string(output))
			if err != nil || !strings.HasSuffix(answer, "\n413") ||
				!strings.Contains(answer, "payload_too_large") {
				t.Errorf("%v: %.500s", err, answer)
			}
		})
	}
}
