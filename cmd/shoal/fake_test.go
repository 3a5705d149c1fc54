package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

// fakeAPI answers as the specification says, for one customer, and keeps what it was asked.
type fakeAPI struct {
	*httptest.Server
	mu          sync.Mutex
	calls       []string            // METHOD path?query
	bodies      map[string]string   // of the last call, by METHOD path
	types       map[string]string   // Content-Type of the last call, by METHOD path
	keys        map[string][]string // Idempotency-Key of all calls, by METHOD path
	groups      []map[string]any
	scrapers    []map[string]any
	jobs        []map[string]any // newest first
	rows        []string         // JSON documents of the newest run
	frames      [][]string       // of one stream connection each; the last one stays
	streams     int
	lastEventID []string
	balance     int64
	recounts    string
	leader      string             // of the control plane, "" for none
	nodes       []string           // the one node, at each look; the last one stays
	refuse      map[string]problem // by METHOD path; "*" for all
	cut         string             // METHOD path whose answer breaks off
	entries     []map[string]any
	outcome     map[string]any // the record that a launch leaves
	onStream    func()         // called with each connection to a stream
}

type problem struct {
	status int
	code   string
	detail string
	retry  string
	times  int // 0: always
}

const (
	testKey   = "svc_live_abcdefg.secret"
	runID     = "66f0c2a1b7d4e8f901234567"
	scraperID = "66f0c2a1b7d4e8f900000001"
)

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{
		bodies: map[string]string{}, types: map[string]string{}, keys: map[string][]string{}, refuse: map[string]problem{}, recounts: "[]", leader: "n1",
		groups:  []map[string]any{{"id": "66f0c2a1b7d4e8f9000000aa", "name": "news", "dataTable": "news", "startType": "MANUAL"}},
		entries: []map[string]any{},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// dataDir makes a data directory by which commands find the server.
func (f *fakeAPI) dataDir(t *testing.T) string {
	dir := t.TempDir()
	for name, line := range map[string]string{keyFile: testKey, addressFile: f.URL} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name := r.Method + " " + r.URL.Path
	f.mu.Lock()
	defer f.mu.Unlock()
	call := name
	if r.URL.RawQuery != "" {
		call += "?" + r.URL.RawQuery
	}
	f.calls = append(f.calls, call)
	f.bodies[name], f.types[name] = string(body), r.Header.Get("Content-Type")
	f.keys[name] = append(f.keys[name], r.Header.Get("Idempotency-Key"))
	if r.URL.Path == "/readyz" {
		return
	}
	if p := f.refusal(r, name); p != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", p.retry)
		w.WriteHeader(p.status)
		fmt.Fprintf(w, `{"status":%d,"code":%q,"title":"Refused","detail":%q,"correlationId":"c-1","errors":[{"code":%q,"message":%q}]}`,
			p.status, p.code, p.detail, p.code, p.detail)
		return
	}
	if name == f.cut {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if strings.HasSuffix(r.URL.Path, "/stream") {
		f.stream(w, r)
		return
	}
	answer := f.answer(r, name, body)
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"status":404,"code":"scraper_not_found","detail":"no such scraper","errors":[]}`)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// refusal checks credential and idempotency key, and plays what a test wants refused.
func (f *fakeAPI) refusal(r *http.Request, name string) *problem {
	credential, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	admitted := credential == testKey
	if strings.HasPrefix(r.URL.Path, "/api/admin/") {
		admitted = claimsOf(credential).admin()
	}
	if !admitted {
		return &problem{status: 401, code: "unauthorized", detail: "missing or invalid credential"}
	}
	list := name == "POST /api/scraper/url-list-run"
	if r.Method != http.MethodGet && !list && len(r.Header.Get("Idempotency-Key")) != 36 {
		return &problem{status: 400, code: "idempotency_key_required", detail: "Idempotency-Key is missing"}
	}
	p, ok := f.refuse[name]
	if !ok {
		return nil
	}
	if p.times > 0 {
		if p.times--; p.times == 0 {
			delete(f.refuse, name)
		} else {
			f.refuse[name] = p
		}
	}
	return &p
}

// claims are what a sign-in token says; its signature is the server's to check.
type claims struct {
	Subject string   `json:"sub"`
	Roles   []string `json:"roles"`
}

func (c claims) admin() bool { return slices.Contains(c.Roles, "admin") }

// claimsOf reads a token, and nothing from what is none.
func claimsOf(token string) (said claims) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(text, &said)
	}
	return said
}

func (f *fakeAPI) answer(r *http.Request, name string, body []byte) any {
	list := func(content any, total int) any {
		return map[string]any{"content": content, "totalElements": total, "totalPages": 1, "size": 20, "number": 0}
	}
	switch name {
	case "GET /api/key/whoami":
		return map[string]any{"customerRef": "self", "scope": "USER"}
	case "GET /api/scraper/group/list":
		return f.groups
	case "PUT /api/scraper/group", "PUT /api/scraper":
		var saved map[string]any
		_ = json.Unmarshal(body, &saved)
		saved["id"] = "66f0c2a1b7d4e8f9000000bb"
		if name == "PUT /api/scraper" {
			f.scrapers = append(f.scrapers, saved)
		} else {
			f.groups = append(f.groups, saved)
		}
		return saved
	case "GET /api/scraper/list":
		return map[string]any{"items": f.scrapers, "nextCursor": nil, "hasMore": false}
	case "GET /api/scraper/" + scraperID:
		return map[string]any{"id": scraperID, "name": "list", "groupRef": "g", "type": "SINGLE_PRODUCT"}
	case "POST /api/scraper/" + scraperID + "/stop":
		f.jobs[0]["state"] = "STOPPED"
		return map[string]any{}
	case "POST /api/scraper/url-list-run":
		if f.outcome != nil {
			f.jobs = append([]map[string]any{f.outcome}, f.jobs...)
		}
		queued := strings.Count(strings.TrimSpace(string(body)), "\n") + 1
		return map[string]any{"jobId": runID, "scraperId": scraperID, "linksQueued": queued, "duplicatesDropped": 0, "status": "PENDING"}
	case "GET /api/scraper/load-history":
		return list(f.jobs, len(f.jobs))
	case "GET /api/scraper/load-history/group/g1/job/" + runID + "/errors":
		return []map[string]any{{"url": "https://a.example/1", "status": 404, "error": "Not found", "code": "http_status", "place": "0.0"},
			{"url": "https://a.example/2", "status": nil, "error": "No such host", "code": "dns_failed", "place": "1.0"}}
	case "GET /api/scraper/data":
		return f.cursor(r)
	case "GET /api/wallet":
		return map[string]any{"balanceMicros": f.balance, "currency": "EUR", "freeRequestsRemaining": 5, "lowBalance": true}
	case "GET /api/wallet/transactions":
		return map[string]any{"content": f.entries, "page": 0, "size": 20, "totalElements": len(f.entries), "totalPages": 1}
	case "POST /api/admin/customers/self/wallet/adjustments":
		var in struct{ AmountMicros int64 }
		_ = json.Unmarshal(body, &in)
		f.balance += in.AmountMicros
		return map[string]any{"id": "e1", "type": "ADJUSTMENT", "status": "APPLIED", "amountMicros": in.AmountMicros,
			"balanceAfterMicros": f.balance, "source": nil, "jobId": nil, "lines": []any{}}
	case "GET /api/admin/status":
		return map[string]any{"node": "n1", "roles": []string{"controlplane", "fetcher"}, "leader": f.leader, "term": 3,
			"applied": 42, "commands": 40, "shards": 64, "owned": 64, "openJobs": 1, "out": 1234,
			"lag": map[string]any{"tasks": 1, "pages": 2, "receipts": 3}}
	case "GET /api/admin/nodes":
		node := f.nodes[0]
		if len(f.nodes) > 1 {
			f.nodes = f.nodes[1:]
		}
		return json.RawMessage("[" + node + "]")
	case "PUT /api/admin/nodes/f1/drain", "DELETE /api/admin/nodes/f1/drain":
		return map[string]any{}
	case "DELETE /api/admin/nodes/cp2":
		return map[string]any{}
	case "GET /api/admin/backup":
		return json.RawMessage(`"the state"`)
	case "POST /api/admin/restore":
		return map[string]any{"clusterId": "66f0c2a1b7d4e8f901234567", "index": 42, "takenAt": "2026-11-02T03:04:05.000Z",
			"runsUndone": 3, "rowsUntil": "2026-11-03T03:04:05.000Z", "keysRevoked": 1, "balanceMicros": 500_000, "beforeMicros": 2_500_000}
	case "POST /api/admin/billing/recount":
		return json.RawMessage(f.recounts)
	}
	if strings.HasPrefix(name, "GET /api/scraper/data/group/") {
		return list([]any{}, len(f.rows))
	}
	return nil
}

// cursor serves two rows a page, whatever is asked, as a server may.
func (f *fakeAPI) cursor(r *http.Request) any {
	from := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
	limit := 2
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	to := min(from+min(limit, 2), len(f.rows))
	items := make([]json.RawMessage, 0, 2)
	for _, row := range f.rows[from:to] {
		items = append(items, json.RawMessage(row))
	}
	return map[string]any{"items": items, "nextCursor": fmt.Sprint(to), "hasMore": to < len(f.rows)}
}

// stream plays one connection and hangs up.
func (f *fakeAPI) stream(w http.ResponseWriter, r *http.Request) {
	f.lastEventID = append(f.lastEventID, r.Header.Get("Last-Event-ID"))
	frames := f.frames[min(f.streams, len(f.frames)-1)]
	f.streams++
	if f.onStream != nil {
		f.onStream()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1\n\n: ping\n\n")
	for i, frame := range frames {
		fmt.Fprintf(w, "id: %d-%d\nevent: status\ndata: %s\n\n", f.streams, i, frame)
	}
}

// asked says whether a call begins with the text.
func (f *fakeAPI) asked(prefix string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		if strings.HasPrefix(call, prefix) {
			return true
		}
	}
	return false
}

func job(state string, more map[string]any) map[string]any {
	record := map[string]any{"id": runID, "scraperId": scraperID, "groupId": "g1", "state": state,
		"started": "2026-03-01T12:00:00Z", "finished": nil, "successLinks": 2, "errorLinks": 1, "totalLinks": 3,
		"itemsQuantity": 2, "totalRequests": 3, "chargedMicros": 300, "duration": 61000, "errorMessage": nil, "stopReason": nil}
	for key, value := range more {
		record[key] = value
	}
	return record
}

// shell is one data directory with its service, and a command line on it.
type shell struct {
	t    *testing.T
	api  *fakeAPI
	data string
	in   string
	run  func(context.Context, ServeConfig) error
	// said, when set, is called with everything that is written to err, whenever more is.
	said func(string)
}

// errs is where commands write their notices.
type errs struct {
	bytes.Buffer
	said func(string)
}

func (e *errs) Write(p []byte) (int, error) {
	n, err := e.Buffer.Write(p)
	if e.said != nil {
		e.said(e.String())
	}
	return n, err
}

func newShell(t *testing.T) *shell {
	t.Setenv("PATH", "") // whatever browser this machine has
	b := &shell{t: t, api: newFakeAPI(t)}
	b.data = b.api.dataDir(t)
	return b
}

func (b *shell) write(name, content string) string {
	path := filepath.Join(b.data, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// result is what a command left.
type result struct {
	code     int
	out, err string
}

func (b *shell) shoal(args ...string) result {
	return b.shoalIn(context.Background(), args...)
}

func (b *shell) shoalIn(ctx context.Context, args ...string) result {
	b.t.Helper()
	b.t.Setenv("SHOAL_DATA", b.data)
	var out bytes.Buffer
	notices := errs{said: b.said}
	code := run(ctx, args, terminal{
		in: strings.NewReader(b.in), out: &out, err: &notices, clock: impatient{clock.System{}},
	}, b.run)
	return result{code: code, out: out.String(), err: notices.String()}
}

// impatient is the system's clock, but nobody waits for long on it.
type impatient struct{ clock.System }

func (impatient) After(d time.Duration) <-chan time.Time {
	if d >= 45*time.Second {
		return make(chan time.Time) // silence on a stream: never, in a test
	}
	return clock.System{}.After(min(d, time.Millisecond))
}

// want fails the test unless the command left the code and every text, in out or err.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	if t.Failed() {
		t.Fatalf("out:\n%s\nerr:\n%s", r.out, r.err)
	}
}
