package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/api/apitest"
	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/model"
)

func TestRunStreamsTheList(t *testing.T) {
	for _, c := range []struct{ name, list, contentType string }{
		{"plain", "https://a.example/1\nhttps://a.example/2\n", "text/uri-list"},
		{"ndjson", "\n{\"url\":\"https://a.example/1\"}\n{\"url\":\"https://a.example/2\"}\n",
			"application/x-ndjson"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newShell(t)
			list := b.write("list.txt", c.list)
			got := b.shoal("run", "--url-file", list, "--field", "title=h1, h2", "--field",
				"link=a@href", "--group", "news",
				"--name", "monday", "--max-charge", "5000")
			got.want(t, terminal.ExitOK, "2 links queued")
			if got.out != apitest.RunID+"\n" {
				t.Errorf("out is %q, want the run's id alone", got.out)
			}
			const call = "POST /api/scraper/url-list-run"
			if b.api.Bodies[call] != c.list || b.api.Types[call] != c.contentType {
				t.Errorf("sent %q as %s", b.api.Bodies[call], b.api.Types[call])
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

func queryOf(t *testing.T, f *apitest.Server, call string) url.Values {
	t.Helper()
	for _, c := range f.Calls {
		if name, query, _ := strings.Cut(c, "?"); name == call {
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			return values
		}
	}
	t.Fatalf("no call %s among %q", call, f.Calls)
	return nil
}

func TestRunReadsStandardInputAndMakesTheGroup(t *testing.T) {
	b := newShell(t)
	b.in = "https://a.example/1\n"
	b.shoal("run", "--url-file", "-", "--field", "title=h1", "--json").want(t, terminal.ExitOK,
		`"linksQueued": 1`)
	if body := b.api.Bodies["PUT /api/scraper/group"]; !strings.Contains(body, `"name":"default"`) {
		t.Errorf("group made with %s", body)
	}
	if query := queryOf(t, b.api,
		"POST /api/scraper/url-list-run"); !strings.HasPrefix(query.Get("name"), "list 20") {
		t.Errorf("name %q", query.Get("name"))
	}
}

func TestFollowEndsWithTheRunsExitCode(t *testing.T) {
	for state, c := range map[string]struct {
		record string
		code   int
	}{"SUCCESS": {"COMPLETED", terminal.ExitOK}, "FAILED": {"FAILED", terminal.ExitRunFailed},
		"CANCELLED": {"STOPPED", terminal.ExitRunStopped}} {
		t.Run(state, func(t *testing.T) {
			b := newShell(t)
			b.in = "https://a.example/1\n"
			b.api.Jobs = []map[string]any{apitest.Job(c.record, nil)}
			b.api.Frames = [][]string{
				{`{"state":"RUNNING","itemsQuantity":1,"totalRequests":1,"totalLinks":3,"successLinks":1,"errorLinks":0,"chargedMicros":150}`},
				{}, // closed at once
				{`{"state":"` + state +
					`","itemsQuantity":2,"totalRequests":3,"totalLinks":3,"successLinks":2,"errorLinks":1,"chargedMicros":300,"duration":61000}`},
			}
			got := b.shoal("run", "--url-file", "-", "--field", "title=h1", "--follow")
			got.want(t, c.code, " 33% of 3  1 page  1 row  0 errors  0.00015 EUR",
				"100% of 3  3 pages  2 rows  1 error  0.0003 EUR",
				c.record+": 2 rows, 3 pages, 1 failed link, 1m1s")
			if ids := strings.Join(b.api.LastEventID, ","); ids != ",1-0,1-0" {
				t.Errorf("connected with last event ids %q", ids)
			}
		})
	}
}

func TestCtrlCWhileFollowingLeavesTheRunRunning(t *testing.T) {
	b := newShell(t)
	b.in = "https://a.example/1\n"
	b.api.Frames = [][]string{{`{"state":"RUNNING"}`}}
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	b.api.OnStream = interrupt
	b.shoalIn(ctx, "run", "--url-file", "-", "--field", "title=h1", "--follow").want(t,
		terminal.ExitInterrupted, "the run goes on",
		"shoal job "+apitest.RunID+" --follow")
	if b.api.Asked("POST /api/scraper/" + apitest.ScraperID + "/stop") {
		t.Error("the run was stopped")
	}
}

func TestJobs(t *testing.T) {
	b := newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("STOPPED",
		map[string]any{"stopReason": "WALLET_INSUFFICIENT_BALANCE"})}
	b.shoal("jobs", "--group", "news", "--state", "STOPPED").want(t, terminal.ExitOK, apitest.RunID,
		"WALLET_INSUFFICIENT_BALANCE", "1m1s")
	filter := queryOf(t, b.api, "GET /api/scraper/load-history").Get("filters")
	if filter != `{"groupId":"66f0c2a1b7d4e8f9000000aa","state":"STOPPED"}` {
		t.Errorf("filters %s", filter)
	}
	got := b.shoal("jobs", "--json")
	var jobs struct{ Content []api.Job } // the server's own answer
	if err := json.Unmarshal([]byte(got.out), &jobs); err != nil || len(jobs.Content) != 1 {
		t.Errorf("%v: %s", err, got.out)
	}
}

func TestJob(t *testing.T) {
	b := newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("FAILED",
		map[string]any{"errorMessage": "no page\x1b[2J delivered"})}
	got := b.shoal("job", apitest.RunID)
	got.want(t, terminal.ExitRunFailed, "failed links  1", "cost          0.0003 EUR")
	if strings.Contains(got.out, "\x1b") {
		t.Error("control characters reach the terminal")
	}
	b.shoal("job", apitest.RunID, "--errors").want(t, terminal.ExitRunFailed,
		"404     http_status  Not found     https://a.example/1", "-       dns_failed")
	b.shoal("job", "66f0c2a1b7d4e8f901234568").want(t, terminal.ExitFailed,
		"no run 66f0c2a1b7d4e8f901234568")
}

func TestStopTakesARunOrAScraper(t *testing.T) {
	for _, id := range []string{apitest.RunID, apitest.ScraperID} {
		b := newShell(t)
		b.api.Jobs = []map[string]any{apitest.Job("RUNNING", nil)}
		b.shoal("stop", id).want(t, terminal.ExitOK, "STOPPED: 2 rows")
		b.api.Jobs = []map[string]any{apitest.Job("RUNNING", nil)}
		b.shoal("stop", id, "--json").wantJSON(t, apitest.Job("STOPPED", nil))
	}
	b := newShell(t)
	b.shoal("stop", apitest.ScraperID).want(t, terminal.ExitOK, "has never run")
	b.shoal("stop", apitest.ScraperID, "--json").wantJSON(t, nil)
	// A run that began meanwhile is not shown in place of the stopped one.
	b.api.Jobs = []map[string]any{
		apitest.Job("RUNNING", map[string]any{"id": "66f0c2a1b7d4e8f901234568"}),
		apitest.Job("RUNNING", nil)}
	b.shoal("stop", apitest.RunID, "--json").wantJSON(t, apitest.Job("STOPPED", nil))
	b = newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("COMPLETED", nil)}
	b.shoal("stop", apitest.RunID).want(t, terminal.ExitOK, "COMPLETED")
	b.shoal("stop", apitest.RunID, "--json").wantJSON(t, apitest.Job("COMPLETED", nil))
	if b.api.Asked("POST") {
		t.Error("a run that has ended was stopped")
	}
}

func TestWallet(t *testing.T) {
	b := newShell(t)
	b.api.Balance = 9_999_850
	b.api.Entries = []map[string]any{{"id": "e", "type": "CHARGE", "status": "OPEN",
		"amountMicros": -150, "jobId": apitest.RunID,
		"balanceAfterMicros": nil, "createdAt": "2026-03-01T12:00:00Z",
		"lines": []map[string]any{{"label": "Plain", "pages": 1, "freePages": 5,
			"unitPriceMicros": 150, "amountMicros": -150}}}}
	b.shoal("wallet").want(t, terminal.ExitOK, "Balance 9.99985 EUR, 5 free requests (low)",
		"-0.00015 EUR", "1 × 0.00015 EUR Plain, 5 free")
	b.shoal("wallet", "adjust", "--micros", "-9999850", "--note", "back").want(t, terminal.ExitOK,
		"self adjusted by -9.99985 EUR, balance 0.00 EUR")
	if body := b.api.Bodies["POST /api/admin/customers/self/wallet/adjustments"]; body != `{"amountMicros":-9999850,"note":"back"}` {
		t.Errorf("body %s", body)
	}
	b.shoal("wallet", "adjust", "--micros", "1.5", "--note", "x").want(t, terminal.ExitUsage,
		"--micros")
	// as in the directory of a cluster's authority
	if err := os.Remove(filepath.Join(b.data, datadir.KeyFile)); err != nil {
		t.Fatal(err)
	}
	b.shoal("wallet", "adjust", "--micros", "1", "--note", "x").want(t, terminal.ExitUsage,
		"--customer: whose wallet?")
}

func TestEstimate(t *testing.T) {
	b := newShell(t)
	b.shoal("estimate", apitest.ScraperID, "--links", "1000").want(t, terminal.ExitOK,
		"1,000 links, about 950 pages: 0.12 EUR to 0.165 EUR",
		"by 3 runs; the balance of 0.00 EUR does not pay for the most")
	b.api.Balance = 165_000
	if got := b.shoal("estimate", apitest.ScraperID); strings.Contains(got.err, "balance") {
		t.Errorf("%+v", got)
	}
	b.shoal("estimate", apitest.ScraperID, "--json").want(t, terminal.ExitOK,
		`"minMicros": 120000`)
	b.shoal("estimate", apitest.ScraperID, "--links", "-1").want(t, terminal.ExitUsage, "--links")
	if asked := b.api.Calls[1]; !strings.HasSuffix(asked, "/estimate?links=1000") {
		t.Errorf("the call is %s", asked)
	}
	b.api.Scrapers = []map[string]any{{"id": apitest.ScraperID, "name": "list"}}
	b.shoal("estimate", "list").want(t, terminal.ExitOK, "950 pages")
	b.shoal("estimate", "nosuch").want(t, terminal.ExitFailed, "nosuch")
}

func TestGroupRunAndStop(t *testing.T) {
	b := newShell(t)
	b.shoal("group", "run", "news", "--max-charge", "1000").want(t, terminal.ExitOK, apitest.RunID,
		"scraper "+apitest.SavedID+": FILE", "1 run launched, 1 scraper skipped")
	if last := b.api.Calls[len(b.api.Calls)-1]; !strings.HasSuffix(last,
		"/run?maxChargeMicros=1000") {
		t.Errorf("the call is %s", last)
	}
	b.shoal("group", "stop", apitest.GroupID, "--json").want(t, terminal.ExitOK, `"reason": "FILE"`)
	b.shoal("group", "start-type", "news", "DAILY").want(t, terminal.ExitOK,
		apitest.ScraperID+" 2026-01-03T00:17:00.000Z", apitest.SavedID+" by hand")
	b.shoal("group", "start-type", "news", "HOURLY").want(t, terminal.ExitUsage, "HOURLY")
	b.shoal("group", "stop", "nobody").want(t, terminal.ExitFailed, `no group "nobody"`)
}

func TestRequeue(t *testing.T) {
	b := newShell(t)
	b.shoal("requeue", apitest.RunID, "--max-charge", "1000").want(t, terminal.ExitOK,
		apitest.SavedID, "7 links queued")
	b.shoal("requeue", apitest.RunID, "--json").want(t, terminal.ExitOK, `"linksQueued": 7`)
}

func TestReExtract(t *testing.T) {
	b := newShell(t)
	b.api.Jobs = []map[string]any{apitest.Job("COMPLETED", nil)}
	b.shoal("re-extract", apitest.RunID, "--field", "title=h1").want(t, terminal.ExitOK,
		apitest.SavedID)
	b.shoal("re-extract", apitest.RunID, "--json").want(t, terminal.ExitOK, `"RUNNING"`)
	b.shoal("re-extract", apitest.RunID, "--field", "title").want(t, terminal.ExitUsage)
	b.shoal("re-extract", apitest.SavedID).want(t, terminal.ExitFailed, "there is no run")
}

func TestStatusAndToken(t *testing.T) {
	b := newShell(t)
	b.shoal("status").want(t, terminal.ExitOK, "64 of 64 owned", "units out        1,234",
		"lag of receipts  3 records")
	for customer, args := range map[string][]string{"acme": {"--customer", "acme"},
		"self": {"--admin"}} {
		got := b.shoal(append([]string{"token"}, args...)...)
		got.want(t, terminal.ExitOK)
		if said := apitest.ClaimsOf(strings.TrimSpace(got.out)); said.Subject != customer ||
			said.Admin() != (customer == "self") {
			t.Errorf("token %v claims %+v", args, said)
		}
	}
	b.api.Leader, b.api.Nodes = "",
		[]string{`{"name":"cp1","roles":["controlplane"],"state":"FAILED","suffrage":"VOTER"}`}
	b.shoal("status").want(t, terminal.ExitOK, "none: the control plane has no leader; voters "+
		"as seen here: cp1 failed")
	b.shoal("top", "--once").want(t, terminal.ExitOK, "NO LEADER in term 3",
		"cp1            failed")
}

func TestNodesAndDrain(t *testing.T) {
	b := newShell(t)
	b.api.Nodes = []string{apitest.NodeAs("ALIVE", false, 20, 1300)}
	b.shoal("cluster", "nodes").want(t, terminal.ExitOK, "ALIVE", "fetcher", "nonvoter",
		"nonvoter  7 ", "20 (10 moving)", "1,300", "12.3", "1.5 s ago")
	b.api.Nodes = []string{`{"name":"f1","roles":["fetcher"],"capacity":1,"state":"ALIVE","suffrage":"NONVOTER"}`}
	got := b.shoal("cluster", "nodes")
	got.want(t, terminal.ExitOK, "The control plane has no leader", "?", "nonvoter  - ")
	if strings.Contains(got.out, "never") {
		t.Errorf("without a leader nobody knows who was heard:\n%s", got.out)
	}
	b.api.Nodes = []string{apitest.NodeAs("ALIVE", false, 20, 1300)}
	b.shoal("cluster", "nodes", "--json").want(t, terminal.ExitOK, `"pagesPerSecond": 12.34`)
	b.shoal("fetcher", "drain", "f1").want(t, terminal.ExitOK, "f1 drains")
	b.shoal("fetcher", "drain", "f2").want(t, terminal.ExitFailed)
	b.shoal("fetcher", "drain", "f1", "--undo").want(t, terminal.ExitOK, "f1 takes part again")
	calls := len(b.api.Calls)
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
		b.shoal(append([]string{"fetcher", "drain"}, c.args...)...).want(t, terminal.ExitUsage,
			c.says)
	}
	if len(b.api.Calls) > calls {
		t.Errorf("wrong usage made the calls %v", b.api.Calls[calls:])
	}
	if !b.api.Asked("PUT /api/admin/nodes/f1/drain") ||
		!b.api.Asked("DELETE /api/admin/nodes/f1/drain") {
		t.Errorf("calls %v", b.api.Calls)
	}

	b.api.Nodes = []string{apitest.NodeAs("DRAINING", true, 20, 1300),
		apitest.NodeAs("DRAINING", true, 20, 1300), apitest.NodeAs("DRAINING", true, 3, 1),
		apitest.NodeAs("DRAINED", true, 0, 0)}
	got = b.shoal("fetcher", "drain", "f1", "--wait")
	got.want(t, terminal.ExitOK, "f1: DRAINING, 20 shards, 1,300 tasks open",
		"f1: DRAINING, 3 shards, 1 task open",
		"f1: DRAINED, 0 shards, 0 tasks open")
	if strings.Count(got.err, "\n") != 3 {
		t.Errorf("it repeats itself:\n%s", got.err)
	}
	b.api.Nodes = []string{apitest.NodeAs("DRAINING", true, 20, 1),
		apitest.NodeAs("FAILED", true, 20, 1)}
	b.shoal("fetcher", "drain", "f1", "--wait").want(t, terminal.ExitFailed, "not heard any more")
	b.api.Nodes = []string{apitest.NodeAs("ALIVE", false, 20, 1)}
	b.shoal("fetcher", "drain", "f1", "--wait").want(t, terminal.ExitFailed, "took the drain back")
	b.api.Nodes = []string{apitest.NodeAs("DRAINING", true, 20, 1)}
	b.shoal("fetcher", "drain", "f1", "--wait", "--timeout", "50ms").want(t, terminal.ExitFailed,
		"goes on draining")
}

func TestReconcileNamesEachDifference(t *testing.T) {
	b := newShell(t)
	b.api.Recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":150,"equal":true}]`
	b.shoal("billing", "reconcile").want(t, terminal.ExitOK,
		"2 payments and 1 reversal at the provider in 31 days, 1 run: all agree")
	b.api.Reconciled = `[{"kind":"PAYMENT_MISSING","customerRef":"acme","subject":"pi_1",
		"hereMicros":0,"wantMicros":5000000}]`
	b.shoal("billing", "reconcile").want(t, terminal.ExitDiffers, "PAYMENT_MISSING", "acme",
		"pi_1", "5.00 EUR", "differs in 1 place")
	b.api.Reconciled = `[]`
	b.api.Recounts = `[{"jobId":"j9","ledgerMicros":150,"recountMicros":300,"equal":false}]`
	b.shoal("billing", "reconcile").want(t, terminal.ExitDiffers, "RUN", "j9")
	b.api.Recounts = `[{"jobId":"j8","ledgerMicros":150,"equal":false,"unreadable":true}]`
	b.shoal("billing", "reconcile").want(t, terminal.ExitDiffers, "RUN_UNREADABLE", "j8")
	b.shoal("billing", "reconcile", "--no-recount").want(t, terminal.ExitOK, "all agree")
}

func TestRecountFailsOnADifference(t *testing.T) {
	b := newShell(t)
	b.api.Recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":150,"equal":true}]`
	b.shoal("billing", "recount").want(t, terminal.ExitOK,
		"1 run, 0.00015 EUR: the ledger equals the page records")
	b.api.Recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":150,"equal":true},
		{"jobId":"j2","recountItems":7,"undone":true}]`
	b.shoal("billing", "recount").want(t, terminal.ExitOK, "1 run, 0.00015 EUR: the ledger equals",
		"7 rows stored", "1 run: undone by a restore")
	b.api.Recounts = `[{"jobId":"j1","ledgerMicros":150,"recountMicros":300,"equal":false}]`
	b.shoal("billing", "recount", "--json").want(t, terminal.ExitFailed, "differ: j1",
		`"recountMicros": 300`)
	b.api.Recounts = `[{"jobId":"j1","ledgerMicros":150,"equal":false,"unreadable":true},
		{"jobId":"j2","ledgerMicros":150,"recountMicros":300,"equal":false},
		{"jobId":"j3","ledgerMicros":150,"recountMicros":150,"equal":true}]`
	b.shoal("billing", "recount").want(t, terminal.ExitFailed, "UNREADABLE", "unknown",
		"1 run of 3: ledger and page records differ: j2",
		"1 run of 3: the page records cannot be read (the server's log says why): j1", "j3")
}

func TestErrorsHaveTheirExitCodes(t *testing.T) {
	b := newShell(t)
	b.shoal("frobnicate").want(t, terminal.ExitUsage, "frobnicate")
	b.shoal("rows").want(t, terminal.ExitUsage, "--job")
	b.shoal("jobs", "--state", "DONE").want(t, terminal.ExitUsage, "--state")
	b.shoal("jobs", "--group", "nosuch").want(t, terminal.ExitFailed, `no group "nosuch"`)
	b.shoal("run", "--url-file", "-", "--field", "a=b", "--template", apitest.ScraperID).want(t,
		terminal.ExitUsage, "only one of them")
	b.shoal("run", "--url-file", "-").want(t, terminal.ExitUsage, "--field")
	b.shoal("run", "--url-file", "missing.txt", "--field", "a=b").want(t, terminal.ExitUsage,
		"missing.txt")
	b.shoal("jobs", "--key", "svc_live_wrong.key").want(t, terminal.ExitNoAccess,
		"missing or invalid credential (401 unauthorized)")
	b.shoal("jobs", "--server", "127.0.0.1:1").want(t, terminal.ExitNoAccess,
		"cannot be reached at http://127.0.0.1:1")
	b.api.Refuse["GET /api/scraper/load-history"] = apitest.Problem{Status: 500,
		Code: "internal_error", Detail: "oh"}
	b.shoal("jobs").want(t, terminal.ExitFailed, "oh (500 internal_error)", "correlation id c-1")
	b.in = "https://a.example/1\n"
	b.api.Refuse["POST /api/scraper/url-list-run"] = apitest.Problem{Status: 429,
		Code: "rate_limited", Detail: "6 calls", Retry: "38"}
	b.shoal("run", "--url-file", "-", "--field", "a=b").want(t, terminal.ExitFailed,
		"6 calls (429 rate_limited), again in 38s")
	b.api.Refuse["POST /api/scraper/url-list-run"] = apitest.Problem{Status: 402,
		Code: "WALLET_INSUFFICIENT_BALANCE", Detail: "empty"}
	b.shoal("run", "--url-file", "-", "--field", "a=b").want(t, terminal.ExitFailed, "empty",
		"shoal wallet adjust")
	if err := os.Remove(b.data + "/" + datadir.AddressFile); err != nil {
		t.Fatal(err)
	}
	b.shoal("jobs").want(t, terminal.ExitNoAccess, "shoal serve --data", "SHOAL_SERVER")
	b.shoal("jobs", "--server", b.api.URL).want(t, terminal.ExitFailed)
}

func TestAFullRateLimitIsWaitedOut(t *testing.T) {
	b := newShell(t)
	b.api.Refuse["GET /api/wallet"] = apitest.Problem{Status: 429, Code: "rate_limited",
		Detail: "too fast", Retry: "6", Times: 2}
	got := b.shoal("wallet")
	got.want(t, terminal.ExitOK, "too fast (429 rate_limited): waiting 6s", "Balance")
	if strings.Count(got.err, "waiting") != 2 {
		t.Errorf("it does not tell each wait once:\n%s", got.err)
	}
	// Rate-limited launches wait, too, and each try sends the whole list.
	const launch = "POST /api/scraper/url-list-run"
	b.api.Refuse[launch] = apitest.Problem{Status: 429, Code: "rate_limited", Detail: "6 calls",
		Retry: "9", Times: 1}
	b.in = "https://a.example/1\nhttps://a.example/2\n"
	b.shoal("run", "--url-file", "-", "--field", "a=b").want(t, terminal.ExitOK,
		"6 calls (429 rate_limited): waiting 9s", "2 links queued")
	if keys := b.api.Keys[launch]; len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" ||
		b.api.Bodies[launch] != b.in {
		t.Errorf("sent %q under the keys %q", b.api.Bodies[launch], keys)
	}
}

// A call that may have been carried out is repeated under its key, for as long as a change of
// leaders may take.
func TestWhatIsUnavailableIsAskedAgain(t *testing.T) {
	b := newShell(t)
	b.api.Refuse["POST /api/admin/customers/self/wallet/adjustments"] = apitest.Problem{Status: 503,
		Code:   "unavailable",
		Detail: "no leader", Retry: "5", Times: 2}
	b.shoal("wallet", "adjust", "--micros", "5", "--note", "x").want(t, terminal.ExitOK,
		"no leader (503 unavailable)")
	keys := b.api.Keys["POST /api/admin/customers/self/wallet/adjustments"]
	if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("the call came with the keys %q", keys)
	}
}

func TestHelpTeaches(t *testing.T) {
	b := newShell(t)
	b.shoal().want(t, terminal.ExitOK, "shoal demo", "Exit codes", "SHOAL_SERVER")
	for _, command := range []string{"serve", "run", "jobs", "job", "stop", "rows", "wallet",
		"status", "work", "billing", "token",
		"cluster nodes", "fetcher drain", "bench extract", "bench fetch", "bench cold",
		"bench loop", "bench cluster", "bench api", "bench list",
		"bench frontier", "bench rows", "bench raft", "bench soak",
		"demo", "demo-web", "version", "scrape", "detect", "preview", "errors", "diff", "profile",
		"completion", "man",
		"scraper list", "scraper get", "scraper put", "scraper copy", "scraper delete",
		"estimate", "group run", "group stop",
		"group start-type", "requeue"} {
		b.shoal(append(strings.Fields(command), "--help")...).want(t, terminal.ExitOK,
			"Usage: shoal "+command)
	}
	b.shoal("run", "--help").want(t, terminal.ExitOK, "--field 'sale=.badge-sale?'",
		"Default default.")
	b.shoal("help", "run").want(t, terminal.ExitOK, "Usage: shoal run")
	b.shoal("version").want(t, terminal.ExitOK, "shoal ")
}
