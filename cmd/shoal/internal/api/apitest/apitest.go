// Package apitest is a fake of the API, for tests of commands that call it.
package apitest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/pkg/clock"
)

// Server answers as the specification says, for one customer, and records the calls.
type Server struct {
	*httptest.Server
	Mu          sync.Mutex
	Calls       []string            // METHOD path?query
	Bodies      map[string]string   // of the last call, by METHOD path
	Types       map[string]string   // Content-Type of the last call, by METHOD path
	Keys        map[string][]string // Idempotency-Key of all calls, by METHOD path
	groups      []map[string]any
	Scrapers    []map[string]any
	Jobs        []map[string]any // newest first
	Rows        []string         // JSON documents of the newest run
	Frames      [][]string       // one list per stream connection; the last one stays
	streams     int
	LastEventID []string
	Balance     int64
	Recounts    string
	Reconciled  string             // the ledger's differences
	Leader      string             // of the control plane, "" for none
	Nodes       []string           // the one node, per call; the last one stays
	Refuse      map[string]Problem // by METHOD path; "*" for all
	CutOff      string             // METHOD path whose answer breaks off
	Entries     []map[string]any
	Outcome     map[string]any // the record that a launch produces
	OnStream    func()         // called with each connection to a stream
	Proposals   string         // JSON that a preview answers
	Sample      string         // JSON of a scraper's sample
	Reason      string         // why a page had no rows
	Compared    []string       // the runs compared with in oddities
	Oddities    []map[string]any
	Source      map[string]any // the source of the one scraper; nil: lists
}

// DiffLines are the differences of any two runs, as jsonl.
const DiffLines = `{"change":"ADDED","changed":[],"before":null,"after":{"sku":"d"}}
{"change":"CHANGED","changed":["price","note"],"before":{"sku":"a","price":1},"after":{"sku":"a","price":9,"note":"new"}}
{"change":"REMOVED","changed":[],"before":{"sku":"b"},"after":null}
`

// CSV is what the server exports as csv, for every query.
const CSV = "title,price\n\"One\",9\n"

// Problem is the refusal of a call, for the first Times calls.
type Problem struct {
	Status int
	Code   string
	Detail string
	Retry  string
	Times  int // 0: always
}

// The contents of the server: one key, one run and its scraper.
const (
	Key       = "svc_live_abcdefg.secret"
	RunID     = "66f0c2a1b7d4e8f901234567"
	ScraperID = "66f0c2a1b7d4e8f900000001"
	SavedID   = "66f0c2a1b7d4e8f9000000bb" // of whatever is saved
	GroupID   = "66f0c2a1b7d4e8f9000000aa" // of the group news
)

// New serves the API on the loopback until the test ends, with one run of one scraper.
func New(t *testing.T) *Server {
	f := &Server{
		Bodies: map[string]string{}, Types: map[string]string{}, Keys: map[string][]string{},
		Refuse: map[string]Problem{}, Recounts: "[]", Reconciled: "[]", Leader: "n1",
		groups: []map[string]any{{"id": GroupID, "name": "news",
			"dataTable": "news", "startType": "MANUAL"}},
		Entries: []map[string]any{},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// DataDir makes a data directory through which commands find the server.
func (f *Server) DataDir(t *testing.T) string {
	dir := t.TempDir()
	for name, line := range map[string]string{datadir.KeyFile: Key, datadir.AddressFile: f.URL} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := apiserver.PlaceSignInKey(dir, key); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ServeHTTP implements http.Handler.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name := r.Method + " " + r.URL.Path
	f.Mu.Lock()
	defer f.Mu.Unlock()
	call := name
	if r.URL.RawQuery != "" {
		call += "?" + r.URL.RawQuery
	}
	f.Calls = append(f.Calls, call)
	f.Bodies[name], f.Types[name] = string(body), r.Header.Get("Content-Type")
	f.Keys[name] = append(f.Keys[name], r.Header.Get("Idempotency-Key"))
	if r.URL.Path == "/readyz" {
		return
	}
	if p := f.refusal(r, name); p != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", p.Retry)
		w.WriteHeader(p.Status)
		fmt.Fprintf(w,
			`{"status":%d,"code":%q,"title":"Refused","detail":%q,"correlationId":"c-1","errors":[{"code":%q,"message":%q}]}`,
			p.Status, p.Code, p.Detail, p.Code, p.Detail)
		return
	}
	if name == f.CutOff {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if name == "GET /api/scraper/data/export" {
		f.export(w, r)
		return
	}
	if format := r.URL.Query().Get("format"); name == "GET /api/scraper/data/diff" && format != "" {
		fmt.Fprint(w, map[string]string{"jsonl": DiffLines, "csv": CSV}[format])
		return
	}
	if strings.HasSuffix(r.URL.Path, "/stream") {
		f.stream(w, r)
		return
	}
	if f.Reason != "" {
		w.Header().Set("Shoal-Reason", f.Reason)
	}
	answer := f.answer(r, name, body)
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w,
			`{"status":404,"code":"scraper_not_found","detail":"no such scraper","errors":[]}`)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// refusal checks the credential, and returns the refusals that a test asked for.
func (f *Server) refusal(r *http.Request, name string) *Problem {
	credential, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	admitted := credential == Key
	if strings.HasPrefix(r.URL.Path, "/api/admin/") {
		admitted = ClaimsOf(credential).Admin()
	}
	if !admitted {
		return &Problem{Status: 401, Code: "unauthorized", Detail: "missing or invalid credential"}
	}
	p, ok := f.Refuse[name]
	if !ok {
		return nil
	}
	if p.Times > 0 {
		if p.Times--; p.Times == 0 {
			delete(f.Refuse, name)
		} else {
			f.Refuse[name] = p
		}
	}
	return &p
}

// claims are the claims of a sign-in token; checking its signature is up to the server.
type claims struct {
	Subject string   `json:"sub"`
	Roles   []string `json:"roles"`
}

func (c claims) Admin() bool { return slices.Contains(c.Roles, "admin") }

// ClaimsOf reads a token; other text gives no claims.
func ClaimsOf(token string) (said claims) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(text, &said)
	}
	return said
}

// AddGroup adds a group to the list.
func (f *Server) AddGroup(id, name string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.groups = append(f.groups, map[string]any{"id": id, "name": name})
}

func (f *Server) answer(r *http.Request, name string, body []byte) any {
	list := func(content any, total int) any {
		return map[string]any{"content": content, "totalElements": total, "totalPages": 1,
			"size": 20, "number": 0}
	}
	switch name {
	case "GET /api/key/whoami":
		return map[string]any{"customerRef": "self", "scope": "USER"}
	case "GET /api/scraper/group/list":
		return f.groups
	case "PUT /api/scraper/group", "PUT /api/scraper":
		var saved map[string]any
		_ = json.Unmarshal(body, &saved)
		saved["id"] = SavedID
		if name == "PUT /api/scraper" {
			f.Scrapers = append(f.Scrapers, saved)
		} else {
			f.groups = append(f.groups, saved)
		}
		return saved
	case "GET /api/scraper/data":
		return map[string]any{"items": []any{}, "nextCursor": nil, "hasMore": false}
	case "GET /api/scraper/data/diff":
		return map[string]any{"key": []string{"sku"}, "summary": map[string]int{"added": 1,
			"removed": 1, "changed": 1, "unchanged": 40}}
	case "GET /api/scraper/data/profile":
		return map[string]any{"rows": 1200, "moreFields": false, "fields": []map[string]any{
			{"name": "price", "fillRate": 0.985, "types": map[string]int{"numericText": 1180,
				"text": 2}, "min": 0.5, "max": 1299, "distinct": 800, "distinctExact": false,
				"examples": []any{"9.90"}},
			{"name": "title", "fillRate": 1, "types": map[string]int{"text": 1200}, "min": nil,
				"max": nil, "distinct": 3, "distinctExact": true, "examples": []any{"Lamp"}}}}
	case "GET /api/scraper/data/oddities":
		return map[string]any{"comparedWith": f.Compared, "oddities": f.Oddities}
	case "GET /api/scraper/list":
		return map[string]any{"items": f.Scrapers, "nextCursor": nil, "hasMore": false}
	case "GET /api/scraper/" + ScraperID:
		return map[string]any{"id": ScraperID, "name": "list", "groupRef": "g",
			"type": "SINGLE_PRODUCT", "sourceConfig": f.Source}
	case "POST /api/scraper/" + ScraperID + "/stop":
		for _, job := range f.Jobs {
			job["state"] = "STOPPED"
		}
		return map[string]any{}
	case "POST /api/scraper/" + ScraperID + "/estimate":
		return map[string]any{"links": 1000, "pages": 950, "minMicros": 120_000,
			"maxMicros": 165_000, "balanceMicros": f.Balance,
			"affordable": f.Balance >= 165_000, "runsConsidered": 3}
	case "POST /api/scraper/group/" + GroupID + "/run",
		"POST /api/scraper/group/" + GroupID + "/stop":
		return map[string]any{"groupId": GroupID, "skippedTotal": 1, "jobs": []map[string]any{
			{"jobId": RunID, "scraperId": ScraperID, "status": "PENDING"}},
			"skipped": []map[string]any{{"scraperId": SavedID, "reason": "FILE"}}}
	case "PUT /api/scraper/group/" + GroupID + "/start-type/DAILY":
		return []map[string]any{{"scraperId": ScraperID, "startType": "DAILY",
			"nextStart": "2026-01-03T00:17:00.000Z"}, {"scraperId": SavedID, "nextStart": nil}}
	case "POST /api/admin/jobs/" + RunID + "/requeue":
		return map[string]any{"jobId": SavedID, "scraperId": ScraperID, "linksQueued": 7,
			"status": "PENDING"}
	case "POST /api/scraper/" + ScraperID + "/re-extract":
		return map[string]any{"jobId": SavedID, "scraperId": ScraperID, "status": "RUNNING"}
	case "POST /api/scraper/url-list-run":
		if f.Outcome != nil {
			f.Jobs = append([]map[string]any{f.Outcome}, f.Jobs...)
		}
		queued := strings.Count(strings.TrimSpace(string(body)), "\n") + 1
		return map[string]any{"jobId": RunID, "scraperId": ScraperID, "linksQueued": queued,
			"duplicatesDropped": 0, "status": "PENDING"}
	case "GET /api/scraper/load-history":
		return list(f.Jobs, len(f.Jobs))
	case "GET /api/scraper/load-history/all": // one page for each
		place := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &place)
		return map[string]any{"items": f.Jobs[min(place, len(f.Jobs)):min(place+1, len(f.Jobs))],
			"nextCursor": strconv.Itoa(place + 1), "hasMore": place+1 < len(f.Jobs)}
	case "GET /api/scraper/load-history/group/g1/job/" + RunID + "/errors":
		return []map[string]any{{"url": "https://a.example/1", "status": 404, "error": "Not found",
			"code": "http_status", "place": "0.0"},
			{"url": "https://a.example/2", "status": nil, "error": "No such host",
				"code": "dns_failed", "place": "1.0"}}
	case "POST /api/scraper-simple/url-based":
		return json.RawMessage(f.Proposals)
	case "POST /api/scraper-simple/preview-from-url":
		return map[string]any{"url": "x", "fields": map[string]any{"price": "9 EUR", "size": nil},
			"elapsedMs": 3}
	case "GET /api/scraper/" + ScraperID + "/get-sample-data":
		return json.RawMessage(f.Sample)
	case "POST /api/scraper/" + SavedID + "/run":
		if f.Outcome != nil {
			f.Jobs = append([]map[string]any{f.Outcome}, f.Jobs...)
		}
		return map[string]any{"jobId": RunID, "scraperId": SavedID, "status": "PENDING"}
	case "POST /api/scraper/" + ScraperID + "/preview-delete":
		return map[string]any{"token": "t0", "previewSummary": map[string]any{
			"entityName": "list", "warnings": []string{"This cannot be undone."}}}
	case "DELETE /api/scraper/" + ScraperID:
		return map[string]any{}
	case "GET /api/wallet":
		return map[string]any{"balanceMicros": f.Balance, "currency": "EUR",
			"freeRequestsRemaining": 5, "lowBalance": true}
	case "GET /api/wallet/transactions":
		return map[string]any{"content": f.Entries, "page": 0, "size": 20,
			"totalElements": len(f.Entries), "totalPages": 1}
	case "POST /api/admin/customers/self/wallet/adjustments":
		var in struct{ AmountMicros int64 }
		_ = json.Unmarshal(body, &in)
		f.Balance += in.AmountMicros
		return map[string]any{"id": "e1", "type": "ADJUSTMENT", "status": "APPLIED",
			"amountMicros":       in.AmountMicros,
			"balanceAfterMicros": f.Balance, "source": nil, "jobId": nil, "lines": []any{}}
	case "GET /api/admin/status":
		return map[string]any{"node": "n1", "roles": []string{"controlplane", "fetcher"},
			"leader": f.Leader, "term": 3,
			"applied": 42, "commands": 40, "shards": 64, "owned": 64, "openJobs": 1, "out": 1234,
			"lag": map[string]any{"tasks": 1, "pages": 2, "receipts": 3}}
	case "GET /api/admin/nodes":
		node := f.Nodes[0]
		if len(f.Nodes) > 1 {
			f.Nodes = f.Nodes[1:]
		}
		return json.RawMessage("[" + node + "]")
	case "PUT /api/admin/nodes/f1/drain", "DELETE /api/admin/nodes/f1/drain":
		return map[string]any{}
	case "GET /api/admin/accounts":
		return map[string]any{"content": []any{}, "totalElements": 0}
	case "POST /api/admin/accounts":
		return map[string]any{}
	case "DELETE /api/admin/nodes/cp2":
		return map[string]any{}
	case "GET /api/admin/backup":
		return json.RawMessage(`"the state"`)
	case "GET /api/admin/backup/rows":
		return json.RawMessage(`"the rows"`)
	case "GET /api/admin/backups":
		return []any{map[string]any{"name": "20261102T030405.678Z-66f0c2a1b7d4e8f901234567",
			"clusterId": "66f0c2a1b7d4e8f901234567", "takenAt": "2026-11-02T03:04:05.678Z",
			"bytes": 4711, "rowsBytes": 8128}}
	case "POST /api/admin/restore",
		"POST /api/admin/backups/20261102T030405.678Z-66f0c2a1b7d4e8f901234567/restore":
		return map[string]any{"clusterId": "66f0c2a1b7d4e8f901234567", "index": 42,
			"takenAt":    "2026-11-02T03:04:05.000Z",
			"runsUndone": 3, "rowsUntil": "2026-11-03T03:04:05.000Z", "keysRevoked": 1,
			"balanceMicros": 500_000, "beforeMicros": 2_500_000,
			"warnings": []string{"the row store's history ends at index 40"}}
	case "POST /api/admin/billing/reconcile":
		return map[string]any{"providerAsked": true, "days": 31, "payments": 2, "reversals": 1,
			"wallets": 3, "entries": 9, "differences": json.RawMessage(f.Reconciled)}
	case "POST /api/admin/billing/recount":
		return json.RawMessage(f.Recounts)
	}
	if strings.HasPrefix(name, "GET /api/scraper/data/group/") {
		return list([]any{}, len(f.Rows))
	}
	return nil
}

// export serves the rows as jsonl, or a csv.
func (f *Server) export(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("format") == "csv" {
		fmt.Fprint(w, CSV)
		return
	}
	limit := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	for i, row := range f.Rows {
		if limit == 0 || i < limit {
			fmt.Fprintln(w, row)
		}
	}
}

// stream plays one connection and hangs up.
func (f *Server) stream(w http.ResponseWriter, r *http.Request) {
	f.LastEventID = append(f.LastEventID, r.Header.Get("Last-Event-ID"))
	frames := f.Frames[min(f.streams, len(f.Frames)-1)]
	f.streams++
	if f.OnStream != nil {
		f.OnStream()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1\n\n: ping\n\n")
	for i, frame := range frames {
		fmt.Fprintf(w, "id: %d-%d\nevent: status\ndata: %s\n\n", f.streams, i, frame)
	}
}

// Asked says whether a recorded call begins with prefix.
func (f *Server) Asked(prefix string) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, call := range f.Calls {
		if strings.HasPrefix(call, prefix) {
			return true
		}
	}
	return false
}

// Job is the record of run RunID in a state; the members of more replace its own.
func Job(state string, more map[string]any) map[string]any {
	record := map[string]any{"id": RunID, "scraperId": ScraperID, "groupId": "g1", "state": state,
		"started": "2026-03-01T12:00:00Z", "finished": nil, "successLinks": 2, "errorLinks": 1,
		"totalLinks":    3,
		"itemsQuantity": 2, "totalRequests": 3, "chargedMicros": 300, "duration": 61000,
		"errorMessage": nil, "stopReason": nil}
	for key, value := range more {
		record[key] = value
	}
	return record
}

// Impatient is the system's clock with shortened waits.
type Impatient struct{ clock.System }

// After fires within a millisecond; a wait of 45 s or more never ends.
func (Impatient) After(d time.Duration) <-chan time.Time {
	if d >= 45*time.Second {
		return make(chan time.Time) // the silence limit of a stream: never, in a test
	}
	return clock.System{}.After(min(d, time.Millisecond))
}

// NodeAs is fetcher f1 as JSON; half of its shards are on the move.
func NodeAs(state string, draining bool, shards, open int) string {
	return fmt.Sprintf(`{"name":"f1","roles":["fetcher"],"version":"v1","capacity":2,"boot":"x","draining":%v,"state":%q,
		"shards":%d,"moving":%d,"open":%d,"pagesPerSecond":12.34,"leaseAgeMillis":1500,"suffrage":"NONVOTER","lag":7}`,
		draining, state, shards, shards/2, open)
}

// TopNode is the leader as JSON, a fetcher too.
const TopNode = `{"name":"n1","roles":["controlplane","fetcher"],"capacity":1,"state":"ALIVE","shards":64,"open":3,
"pagesPerSecond":2.5,"leaseAgeMillis":1100,"suffrage":"LEADER","lag":0}`
