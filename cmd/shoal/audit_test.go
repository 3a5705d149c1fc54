package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/trail"
	"shoal.dev/shoal/pkg/ids"
)

// trailServer serves a trail, two entries a page, and records the requests.
type trailServer struct {
	*httptest.Server
	lines []string
	asked []string
}

func newTrail(t *testing.T, n int) *trailServer {
	s := &trailServer{}
	var before trail.Hash
	for i := range n {
		e := trail.Entry{Generation: ids.ID{1}, Number: uint64(i + 1), Before: before,
			Index: uint64(10 + i), At: 1_767_323_045_000, Action: "svc_admin_block_customer",
			Customer: "bob", Changes: []trail.Change{{Table: "customers", Record: "bob",
				After: `{"blockedAt":1}`}},
			Actor: trail.Actor{Subject: "root", Admin: true, Address: "192.0.2.1"}}
		before = e.Sum()
		s.lines = append(s.lines, fmt.Sprintf(`{"number":%d,"at":"2026-01-02T03:04:05.000Z",`+
			`"action":"svc_admin_block_customer","actor":{"subject":"root","keyId":null,`+
			`"admin":true,"customerUniqueRef":"","operation":"","address":"192.0.2.1",`+
			`"correlationId":""},"customerUniqueRef":"bob","changes":[{"record":"customers bob",`+
			`"before":null,"after":{"blockedAt":1}}],"moreChanges":0,"count":0,"leftBehind":null,`+
			`"generation":"%s","index":%d,"hash":"%s","previousHash":"%s"}`, i+1,
			e.Generation, e.Index, before, e.Before))
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r.Method+" "+r.URL.String())
		if r.URL.Query().Get("format") == "csv" {
			_, _ = fmt.Fprint(w, "number,at\n1,2026\n")
			return
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		upto := min(from+2, len(s.lines))
		next := any(nil)
		if upto < len(s.lines) {
			next = strconv.Itoa(upto)
		}
		items := []json.RawMessage{}
		for _, line := range s.lines[from:upto] {
			items = append(items, json.RawMessage(line))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "nextCursor": next,
			"hasMore": next != nil})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAuditList(t *testing.T) {
	b, s := newShell(t), newTrail(t, 3)
	got := b.shoal("audit", "list", "--server", s.URL, "--actor", "root", "--customer", "b&b",
		"--from", "2026-01-01T00:00:00Z", "--limit", "2")
	got.want(t, terminal.ExitOK, "NUMBER", "2026-01-02 03:04:05", "svc_admin_block_customer",
		"root", "192.0.2.1", "customers bob", "There are more")
	const want = "GET /api/admin/audit?actor=root&customer=b%26b&from=2026-01-01T00%3A00%3A00Z" +
		"&limit=2&order=newest"
	if s.asked[0] != want {
		t.Errorf("it asked %s, want %s", s.asked[0], want)
	}
	b.shoal("audit", "list", "--server", s.URL, "--json").want(t, terminal.ExitOK, `"nextCursor"`)
	b.shoal("audit", "list", "--limit", "1001").want(t, terminal.ExitUsage, "1 to 1000")
}

func TestAuditExport(t *testing.T) {
	b, s := newShell(t), newTrail(t, 5)
	file := filepath.Join(t.TempDir(), "trail.jsonl")
	b.shoal("audit", "export", "--server", s.URL, "-o", file).want(t, terminal.ExitOK)
	written, err := os.ReadFile(file)
	if err != nil || string(written) != strings.Join(s.lines, "\n")+"\n" {
		t.Errorf("%v: %s", err, written)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("others may read the trail: %v, %v", info.Mode(), err)
	}
	if len(s.asked) != 3 {
		t.Errorf("%d pages: %q", len(s.asked), s.asked)
	}
	b.shoal("audit", "export", "--server", s.URL, "--format", "csv").want(t, terminal.ExitOK,
		"number,at\n1,2026\n")
}

func TestAuditVerify(t *testing.T) {
	b, s := newShell(t), newTrail(t, 5)
	verify := func(lines []string, args ...string) result {
		b.in = strings.Join(lines, "\n") + "\n"
		return b.shoal(append([]string{"audit", "verify", "-"}, args...)...)
	}
	got := b.shoal("audit", "verify", "--server", s.URL)
	got.want(t, terminal.ExitOK, "The chain holds: 5 entries, the newest is 5:")
	head := strings.TrimSuffix(strings.TrimSpace(got.out[strings.LastIndex(got.out, " ")+1:]), ".")
	verify(s.lines, "--head", head).want(t, terminal.ExitOK, "Entry 5 is the one that you know.")
	verify(s.lines[:4], "--head", head).want(t, terminal.ExitGap, "Entry 5 is missing")
	verify(append(s.lines[:1:1], s.lines[2:]...)).want(t, terminal.ExitGap, "Entry 2 is missing.")
	changed := append(s.lines[:2:2], strings.Replace(s.lines[2], "root", "toor", 1))
	verify(append(changed, s.lines[3:]...)).want(t, terminal.ExitChanged, "Entry 3 was changed")
	verify(append(s.lines[:5:5], s.lines[1])).want(t, terminal.ExitOrder, "Entry 2 stands twice.")
	verify(nil).want(t, terminal.ExitOK, "The trail is empty.")
	verify([]string{"number,at"}).want(t, terminal.ExitFailed, "entry at place 1")
	verify([]string{strings.Repeat("x", 2<<20)}).want(t, terminal.ExitFailed, "is longer than")
	verify(nil, "--head", "5").want(t, terminal.ExitUsage, "--head")
	b.shoal("audit", "verify", filepath.Join(t.TempDir(), "none")).want(t, terminal.ExitFailed)
	b.shoal("audit", "verify", "--server", "127.0.0.1:1").want(t, terminal.ExitNoAccess)
}
