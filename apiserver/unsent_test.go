package apiserver_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/upload"
)

// unsent is a call whose body is announced and never sent.
type unsent struct {
	route, media string
	most         int64 // the route's limit for a body, bytes
	as           string
}

// unsentCalls has one call for each kind of bound. Bob's files have a lower limit than others.
func unsentCalls(alices, bobs string) map[string]unsent {
	const plain, user = "application/json", apitest.User
	const files = "POST /api/scraper/group/%s/file-scraper?name=%[2]s&format=%[2]s"
	csv, sheet := upload.CSV.MediaTypes()[0], upload.XLSX.MediaTypes()[0]
	return map[string]unsent{
		"usual":      {"PUT /api/scraper/v2", plain, 1 << 20, user},
		"none taken": {"GET /api/scraper/list", plain, 1 << 20, user},
		"list run":   {"POST /api/scraper/url-list-run", plain, 32 << 20, user},
		"streamed list": {"POST /api/scraper/url-list-run?name=n&groupId=" + alices +
			"&itemsConfig=" + url.QueryEscape(`[{"name":"t","selector":"h1","kind":"TEXT"}]`),
			"text/uri-list", 4 << 30, user},
		"agents":      {"POST /mcp", plain, 4 << 20, apitest.LLM},
		"preview":     {"POST /api/scraper-simple/page", plain, 64 << 10, user},
		"csv":         {fmt.Sprintf(files, alices, "csv"), csv, 200_000_000, user},
		"spreadsheet": {fmt.Sprintf(files, alices, "xlsx"), sheet, 36_000_000, user},
		"in JSON": {"POST /api/scraper/group/" + alices + "/file-scraper", plain, 2_000_000,
			user},
		"part": {"PUT /api/uploads/0123456789abcdef?offset=0&length=9000000",
			"application/octet-stream", 4_000_000, user},
		"lowered": {fmt.Sprintf(files, bobs, "csv"), csv, 5_000, apitest.Other},
	}
}

// TestBodiesThatNeverCome: a body whose declared length is too long is refused before it is sent. A
// client that sends Expect sees 413 and no 100. A body that fits is asked for.
func TestBodiesThatNeverCome(t *testing.T) {
	s := apitest.Start(t, apitest.WithBlobs(t))
	s.Run(t, apitest.Scenario{As: apitest.Admin, Status: 200, Body: `{"maxBytes":5000}`,
		Do: "PUT /api/admin/customers/bob/upload-limits"})
	alices, bobs := s.NewGroup(t, "alice", "files"), s.NewGroup(t, "bob", "files")
	for name, c := range unsentCalls(alices.String(), bobs.String()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.announce(t, s, c.most+1); got != 413 {
				t.Errorf("%d of one that is too long", got)
			}
			if got := c.announce(t, s, c.most); got != 100 {
				t.Errorf("%d of one that fits", got)
			}
		})
	}
}

// A client that sends Expect gets every refusal that does not depend on its body.
func TestRefusalsComeBeforeTheBodyIsAskedFor(t *testing.T) {
	s := apitest.Start(t)
	const route, plain = "POST /api/scraper/url-list-run", "application/json"
	for status, c := range map[int]unsent{
		401: {route, plain, 9, "nobody's key"},
		403: {route, plain, 9, apitest.Reader},
		404: {"POST /api/nothing", plain, 9, apitest.User},
		405: {"DELETE /api/scraper/list", plain, 9, apitest.User},
		415: {route, "text/html", 9, apitest.User},
	} {
		if got := c.announce(t, s, c.most); got != status {
			t.Errorf("%d, want %d", got, status)
		}
	}
}

// dial connects to a server, with a deadline of 20 s.
func dial(t *testing.T, s *apitest.Server) net.Conn {
	t.Helper()
	address := strings.TrimPrefix(s.URL, "http://")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// announce sends the call's header with Expect, and returns the first status that arrives.
func (c unsent) announce(t *testing.T, s *apitest.Server, length int64) (status int) {
	t.Helper()
	conn := dial(t, s)
	method, path, _ := strings.Cut(c.route, " ")
	lines := []string{method + " " + path + " HTTP/1.1", "Host: " + conn.RemoteAddr().String(),
		"Content-Type: " + c.media,
		"Authorization: Bearer " + s.Secrets[c.as], "Idempotency-Key: " + s.IDs.New().String(),
		"Accept: application/json, text/event-stream", fmt.Sprintf("Content-Length: %d", length),
		"Expect: 100-continue"}
	if _, err := conn.Write([]byte(strings.Join(lines, "\r\n") + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(first, "HTTP/1.1 %d", &status); err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	return status
}
