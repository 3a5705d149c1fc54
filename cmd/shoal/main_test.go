package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/pkg/model"
)

func TestRunStreamsTheList(t *testing.T) {
	for _, c := range []struct{ name, list, contentType string }{
		{"plain", "https://a.example/1\nhttps://a.example/2\n", "text/uri-list"},
		{"ndjson", "\n{\"url\":\"https://a.example/1\"}\n{\"url\":\"https://a.example/2\"}\n", "application/x-ndjson"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newShell(t)
			list := b.write("list.txt", c.list)
			got := b.shoal("run", "--url-file", list, "--field", "title=h1, h2", "--field", "link=a@href", "--group", "news",
				"--name", "monday", "--max-charge", "5000")
			got.want(t, exitOK, "2 links queued")
			if got.out != runID+"\n" {
				t.Errorf("out is %q, want the run's id alone", got.out)
			}
			const call = "POST /api/scraper/url-list-run"
			if b.api.bodies[call] != c.list || b.api.types[call] != c.contentType {
				t.Errorf("sent %q as %s", b.api.bodies[call], b.api.types[call])
			}
			query := queryOf(t, b.api, call)
			var fields []model.Field
			if err := json.Unmarshal([]byte(query.Get("itemsConfig")), &fields); err != nil {
				t.Fatal(err)
			}
			if len(fields) != 2 || fields[0].Selector != "h1, h2" || fields[1].Attr != "href" {
				t.Errorf("fields %+v", fields)
			}
			query.Del("itemsConfig")
			want := "groupId=66f0c2a1b7d4e8f9000000aa&maxChargeMicros=5000&name=monday&type=SINGLE_PRODUCT"
			if query.Encode() != want {
				t.Errorf("query %s, want %s", query.Encode(), want)
			}
		})
	}
}

func queryOf(t *testing.T, f *fakeAPI, call string) url.Values {
	t.Helper()
	for _, c := range f.calls {
		if name, query, _ := strings.Cut(c, "?"); name == call {
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			return values
		}
	}
	t.Fatalf("no call %s among %q", call, f.calls)
	return nil
}

func TestRunReadsStandardInputAndMakesTheGroup(t *testing.T) {
	b := newShell(t)
	b.in = "https://a.example/1\n"
	b.shoal("run", "--url-file", "-", "--field", "title=h1", "--json").want(t, exitOK, `"linksQueued": 1`)
	if body := b.api.bodies["PUT /api/scraper/group"]; !strings.Contains(body, `"name":"default"`) {
		t.Errorf("group made with %s", body)
	}
	if query := queryOf(t, b.api, "POST /api/scraper/url-list-run"); !strings.HasPrefix(query.Get("name"), "list 20") {
		t.Errorf("name %q", query.Get("name"))
	}
}

func TestFollowEndsWithTheRunsExitCode(t *testing.T) {
	for state, c := range map[string]struct {
		record string
		code   int
	}{"SUCCESS": {"COMPLETED", exitOK}, "FAILED": {"FAILED", exitRunFailed}, "CANCELLED": {"STOPPED", exitRunStopped}} {
		t.Run(state, func(t *testing.T) {
			b := newShell(t)
			b.in = "https://a.example/1\n"
			b.api.jobs = []map[string]any{job(c.record, nil)}
			b.api.frames = [][]string{
				{`{"state":"RUNNING","itemsQuantity":1,"totalRequests":1,"totalLinks":3,"successLinks":1,"errorLinks":0,"chargedMicros":150}`},
				{}, // broken off at once
				{`{"state":"` + state + `","itemsQuantity":2,"totalRequests":3,"totalLinks":3,"successLinks":2,"errorLinks":1,"chargedMicros":300,"duration":61000}`},
			}
			got := b.shoal("run", "--url-file", "-", "--field", "title=h1", "--follow")
			got.want(t, c.code, " 33% of 3  1 page  1 row  0 errors  0.00015 EUR",
				"100% of 3  3 pages  2 rows  1 error  0.0003 EUR", c.record+": 2 rows, 3 pages, 1 failed link, 1m1s")
			if ids := strings.Join(b.api.lastEventID, ","); ids != ",1-0,1-0" {
				t.Errorf("connected with last event ids %q", ids)
			}
		})
	}
}

func TestCtrlCWhileFollowingLeavesTheRunRunning(t *testing.T) {
	b := newShell(t)
	b.in = "https://a.example/1\n"
	b.api.frames = [][]string{{`{"state":"RUNNING"}`}}
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	b.api.onStream = interrupt
	b.shoalIn(ctx, "run", "--url-file", "-", "--field", "title=h1", "--follow").want(t, exitInterrupted, "the run goes on",
		"shoal job "+runID+" --follow")
	if b.api.asked("POST /api/scraper/" + scraperID + "/stop") {
		t.Error("the run was stopped")
	}
}

func TestJobs(t *testing.T) {
	b := newShell(t)
	b.api.jobs = []map[string]any{job("STOPPED", map[string]any{"stopReason": "WALLET_INSUFFICIENT_BALANCE"})}
	b.shoal("jobs", "--group", "news", "--state", "STOPPED").want(t, exitOK, runID, "WALLET_INSUFFICIENT_BALANCE", "1m1s")
	filter := queryOf(t, b.api, "GET /api/scraper/load-history").Get("filters")
	if filter != `{"groupId":"66f0c2a1b7d4e8f9000000aa","state":"STOPPED"}` {
		t.Errorf("filters %s", filter)
	}
	got := b.shoal("jobs", "--json")
	var jobs []api.Job
	if err := json.Unmarshal([]byte(got.out), &jobs); err != nil || len(jobs) != 1 {
		t.Errorf("%v: %s", err, got.out)
	}
}

func TestJob(t *testing.T) {
	b := newShell(t)
	b.api.jobs = []map[string]any{job("FAILED", map[string]any{"errorMessage": "no page\x1b[2J delivered"})}
	got := b.shoal("job", runID)
	got.want(t, exitRunFailed, "failed links  1", "cost          0.0003 EUR")
	if strings.Contains(got.out, "\x1b") {
		t.Error("control characters reach the terminal")
	}
	b.shoal("job", runID, "--errors").want(t, exitRunFailed, "404     http_status  Not found     https://a.example/1", "-       dns_failed")
	b.shoal("job", "66f0c2a1b7d4e8f901234568").want(t, exitFailed, "no run 66f0c2a1b7d4e8f901234568")
}

func TestStopTakesARunOrAScraper(t *testing.T) {
	for _, id := range []string{runID, scraperID} {
		b := newShell(t)
		b.api.jobs = []map[string]any{job("RUNNING", nil)}
		b.shoal("stop", id).want(t, exitOK, "STOPPED: 2 rows")
	}
	b := newShell(t)
	b.api.jobs = []map[string]any{job("COMPLETED", nil)}
	b.shoal("stop", runID).want(t, exitOK, "COMPLETED")
	if b.api.asked("POST") {
		t.Error("a run that has ended was stopped")
	}
}

func TestRows(t *testing.T) {
	b := newShell(t)
	b.api.rows = []string{
		`{"_sourceUrl":"https://a.example/1","title":"One, \"1\"","price":"9","_jobId":"j"}`,
		`{"_sourceUrl":"https://a.example/2","title":"Two\u001b[31m\nlines","price":null,"_jobId":"j"}`,
		`{"_sourceUrl":"https://a.example/3", "title":true,"price":1.50,"_jobId":"j"}`,
		`{"_sourceUrl":"https://a.example/4","title":"=HYPERLINK(1)","price":"-1.5","_jobId":"j"}`,
	}
	got := b.shoal("rows", "--job", runID, "--format", "jsonl")
	want := b.api.rows[0] + "\n" + b.api.rows[1] + "\n" + strings.Replace(b.api.rows[2], ", ", ",", 1) + "\n" +
		b.api.rows[3] + "\n"
	if got.want(t, exitOK); got.out != want {
		t.Errorf("jsonl:\n%s", got.out)
	}
	got = b.shoal("rows", "--job", runID, "--format", "csv")
	want = "title,price,_sourceUrl,_jobId\n\"One, \"\"1\"\"\",9,https://a.example/1,j\n" +
		"\"Two\x1b[31m\nlines\",,https://a.example/2,j\ntrue,1.50,https://a.example/3,j\n" +
		"'=HYPERLINK(1),-1.5,https://a.example/4,j\n"
	if got.want(t, exitOK); got.out != want {
		t.Errorf("csv:\n%q\nwant\n%q", got.out, want)
	}
	got = b.shoal("rows", "--job", runID, "--limit", "2")
	want = "title           price  _sourceUrl\nOne, \"1\"        9      https://a.example/1\n" +
		"Two [31m lines         https://a.example/2\n"
	if got.want(t, exitOK); got.out != want {
		t.Errorf("table:\n%q\nwant\n%q", got.out, want)
	}
}

func TestCSVFailsWhenRowsHaveOtherKeysLater(t *testing.T) {
	b := newShell(t)
	for range sampled {
		b.api.rows = append(b.api.rows, `{"a":1}`)
	}
	b.api.rows = append(b.api.rows, `{"a":1,"late":2}`)
	got := b.shoal("rows", "--job", runID, "--format", "csv")
	got.want(t, exitFailed, "late")
	if lines := strings.Count(got.out, "\n"); lines != 1+sampled+1 {
		t.Errorf("%d lines", lines)
	}
}

func TestWallet(t *testing.T) {
	b := newShell(t)
	b.api.balance = 9_999_850
	b.api.entries = []map[string]any{{"id": "e", "type": "CHARGE", "status": "OPEN", "amountMicros": -150, "jobId": runID,
		"balanceAfterMicros": nil, "createdAt": "2026-03-01T12:00:00Z",
		"lines": []map[string]any{{"label": "Plain", "pages": 1, "freePages": 5, "unitPriceMicros": 150, "amountMicros": -150}}}}
	b.shoal("wallet").want(t, exitOK, "Balance 9.99985 EUR, 5 free requests (low)", "-0.00015 EUR", "1 × 0.00015 EUR Plain, 5 free")
	b.shoal("wallet", "adjust", "--micros", "-9999850", "--note", "back").want(t, exitOK,
		"self adjusted by -9.99985 EUR, balance 0.00 EUR")
	if body := b.api.bodies["POST /api/admin/customers/self/wallet/adjustments"]; body != `{"amountMicros":-9999850,"note":"back"}` {
		t.Errorf("body %s", body)
	}
	b.shoal("wallet", "adjust", "--micros", "1.5", "--note", "x").want(t, exitUsage, "--micros")
	if err := os.Remove(filepath.Join(b.data, keyFile)); err != nil { // as in the directory of a cluster's authority
		t.Fatal(err)
	}
	b.shoal("wallet", "adjust", "--micros", "1", "--note", "x").want(t, exitUsage, "--customer: whose wallet?")
}

func TestStatusAndToken(t *testing.T) {
	b := newShell(t)
	b.shoal("status").want(t, exitOK, "64 of 64 owned", "units out        1,234", "lag of receipts  3 records")
	for customer, args := range map[string][]string{"acme": {"--customer", "acme"}, "self": {"--admin"}} {
		got := b.shoal(append([]string{"token"}, args...)...)
		got.want(t, exitOK)
		if said := claimsOf(strings.TrimSpace(got.out)); said.Subject != customer || said.admin() != (customer == "self") {
			t.Errorf("token %v claims %+v", args, said)
		}
	}
	b.api.leader, b.api.nodes = "", []string{`{"name":"cp1","roles":["controlplane"],"state":"FAILED","suffrage":"VOTER"}`}
	b.shoal("status").want(t, exitOK, "none: the control plane has no leader; voters as seen here: cp1 failed")
	b.shoal("top", "--once").want(t, exitOK, "NO LEADER in term 3", "cp1            failed")
}

func nodeAs(state string, draining bool, shards, open int) string {
	return fmt.Sprintf(`{"name":"f1","roles":["fetcher"],"version":"v1","capacity":2,"boot":"x","draining":%v,"state":%q,
		"shards":%d,"moving":%d,"open":%d,"pagesPerSecond":12.34,"leaseAgeMillis":1500,"suffrage":"NONVOTER","lag":7}`,
		draining, state, shards, shards/2, open)
}

func TestNodesAndDrain(t *testing.T) {
	b := newShell(t)
	b.api.nodes = []string{nodeAs("ALIVE", false, 20, 1300)}
	b.shoal("cluster", "nodes").want(t, exitOK, "ALIVE", "fetcher", "nonvoter", "nonvoter  7 ", "20 (10 moving)", "1,300", "12.3", "1.5 s ago")
	b.api.nodes = []string{`{"name":"f1","roles":["fetcher"],"capacity":1,"state":"ALIVE","suffrage":"NONVOTER"}`}
	got := b.shoal("cluster", "nodes")
	got.want(t, exitOK, "The control plane has no leader", "?", "nonvoter  - ")
	if strings.Contains(got.out, "never") {
		t.Errorf("without a leader nobody knows who was heard:\n%s", got.out)
	}
	b.api.nodes = []string{nodeAs("ALIVE", false, 20, 1300)}
	b.shoal("cluster", "nodes", "--json").want(t, exitOK, `"pagesPerSecond": 12.34`)
	b.shoal("fetcher", "drain", "f1").want(t, exitOK, "f1 drains")
	b.shoal("fetcher", "drain", "f2").want(t, exitFailed)
	b.shoal("fetcher", "drain", "f1", "--undo").want(t, exitOK, "f1 takes part again")
	calls := len(b.api.calls)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"f1", "--undo", "--wait"}, "--wait"},
		{[]string{"f1", "--wait", "--timeout=-1s"}, "--timeout: above 0s"},
		{[]string{"f1", "--wait", "--timeout=0s"}, "--timeout: above 0s"},
		{[]string{"f1", "--timeout=1m"}, "--timeout: only with --wait"},
		{[]string{""}, "<node>: want a node's name"},
	} {
		b.shoal(append([]string{"fetcher", "drain"}, c.args...)...).want(t, exitUsage, c.says)
	}
	if len(b.api.calls) > calls {
		t.Errorf("wrong usage made the calls %v", b.api.calls[calls:])
	}
	if !b.api.asked("PUT /api/admin/nodes/f1/drain") || !b.api.asked("DELETE /api/admin/nodes/f1/drain") {
		t.Errorf("calls %v", b.api.calls)
	}

	b.api.nodes = []string{nodeAs("DRAINING", true, 20, 1300), nodeAs("DRAINING", true, 20, 1300), nodeAs("DRAINING", true, 3, 1),
		nodeAs("DRAINED", true, 0, 0)}
	got = b.shoal("fetcher", "drain", "f1", "--wait")
	got.want(t, exitOK, "f1: DRAINING, 20 shards, 1,300 tasks open", "f1: DRAINING, 3 shards, 1 task open",
		"f1: DRAINED, 0 shards, 0 tasks open")
	if strings.Count(got.err, "\n") != 3 {
		t.Errorf("it repeats itself:\n%s", got.err)
	}
	b.api.nodes = []string{nodeAs("DRAINING", true, 20, 1), nodeAs("FAILED", true, 20, 1)}
	b.shoal("fetcher", "drain", "f1", "--wait").want(t, exitFailed, "not heard any more")
	b.api.nodes = []string{nodeAs("ALIVE", false, 20, 1)}
	b.shoal("fetcher", "drain", "f1", "--wait").want(t, exitFailed, "took the drain back")
	b.api.nodes = []string{nodeAs("DRAINING", true, 20, 1)}
	b.shoal("fetcher", "drain", "f1", "--wait", "--timeout", "50ms").want(t, exitFailed, "goes on draining")
}

func TestRecountFailsOnADifference(t *testing.T) {
	b := newShell(t)
	b.api.recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":150,"equal":true}]`
	b.shoal("billing", "recount").want(t, exitOK, "1 run, 0.00015 EUR: the ledger equals the page records")
	b.api.recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":150,"equal":true},
		{"jobId":"j2","recountItems":7,"undone":true}]`
	b.shoal("billing", "recount").want(t, exitOK, "1 run, 0.00015 EUR: the ledger equals", "7 rows stored", "1 run: undone by a restore")
	b.api.recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":300,"equal":false}]`
	b.shoal("billing", "recount", "--json").want(t, exitFailed, "differ: j1", `"recountMicros": 300`)
}

func TestErrorsHaveTheirExitCodes(t *testing.T) {
	b := newShell(t)
	b.shoal("frobnicate").want(t, exitUsage, "frobnicate")
	b.shoal("rows").want(t, exitUsage, "--job")
	b.shoal("jobs", "--state", "DONE").want(t, exitUsage, "--state")
	b.shoal("jobs", "--group", "nosuch").want(t, exitFailed, `no group "nosuch"`)
	b.shoal("run", "--url-file", "-", "--field", "a=b", "--template", scraperID).want(t, exitUsage, "only one of them")
	b.shoal("run", "--url-file", "-").want(t, exitUsage, "--field")
	b.shoal("run", "--url-file", "missing.txt", "--field", "a=b").want(t, exitUsage, "missing.txt")
	b.shoal("jobs", "--key", "svc_live_wrong.key").want(t, exitNoAccess, "missing or invalid credential (401 unauthorized)")
	b.shoal("jobs", "--server", "127.0.0.1:1").want(t, exitNoAccess, "cannot be reached at http://127.0.0.1:1")
	b.api.refuse["GET /api/scraper/load-history"] = problem{status: 500, code: "internal_error", detail: "oh"}
	b.shoal("jobs").want(t, exitFailed, "oh (500 internal_error)", "correlation id c-1")
	b.in = "https://a.example/1\n"
	b.api.refuse["POST /api/scraper/url-list-run"] = problem{status: 429, code: "rate_limited", detail: "6 calls", retry: "38"}
	b.shoal("run", "--url-file", "-", "--field", "a=b").want(t, exitFailed, "6 calls (429 rate_limited), again in 38s")
	b.api.refuse["POST /api/scraper/url-list-run"] = problem{status: 402, code: "WALLET_INSUFFICIENT_BALANCE", detail: "empty"}
	b.shoal("run", "--url-file", "-", "--field", "a=b").want(t, exitFailed, "empty", "shoal wallet adjust")
	if err := os.Remove(b.data + "/" + addressFile); err != nil {
		t.Fatal(err)
	}
	b.shoal("jobs").want(t, exitNoAccess, "shoal serve --data", "SHOAL_SERVER")
	b.shoal("jobs", "--server", b.api.URL).want(t, exitFailed)
}

func TestAFullRateLimitIsWaitedOut(t *testing.T) {
	b := newShell(t)
	b.api.refuse["GET /api/wallet"] = problem{status: 429, code: "rate_limited", detail: "too fast", retry: "6", times: 2}
	got := b.shoal("wallet")
	got.want(t, exitOK, "too fast (429 rate_limited), again in 6s: waiting", "Balance")
	if strings.Count(got.err, "\n") != 1 {
		t.Errorf("it says so twice:\n%s", got.err)
	}
}

// A call that may have been made is made again under its key, for as long as a change of leaders may take.
func TestWhatIsUnavailableIsAskedAgain(t *testing.T) {
	b := newShell(t)
	b.api.refuse["POST /api/admin/customers/self/wallet/adjustments"] = problem{status: 503, code: "unavailable",
		detail: "no leader", retry: "5", times: 2}
	b.shoal("wallet", "adjust", "--micros", "5", "--note", "x").want(t, exitOK, "no leader (503 unavailable)")
	keys := b.api.keys["POST /api/admin/customers/self/wallet/adjustments"]
	if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("the call came with the keys %q", keys)
	}
}

func TestHelpTeaches(t *testing.T) {
	b := newShell(t)
	b.shoal().want(t, exitOK, "shoal demo", "Exit codes", "SHOAL_SERVER")
	for _, command := range []string{"serve", "run", "jobs", "job", "stop", "rows", "wallet", "status", "billing", "token",
		"cluster nodes", "fetcher drain", "bench extract", "bench fetch", "bench loop", "bench cluster", "bench api", "bench list",
		"bench frontier", "bench rows", "bench raft", "bench soak",
		"demo", "demo-web", "version"} {
		b.shoal(append(strings.Fields(command), "--help")...).want(t, exitOK, "Usage: shoal "+command)
	}
	b.shoal("run", "--help").want(t, exitOK, "--field 'sale=.badge-sale?'", "Default default.")
	b.shoal("help", "run").want(t, exitOK, "Usage: shoal run")
	b.shoal("version").want(t, exitOK, "shoal ")
}
