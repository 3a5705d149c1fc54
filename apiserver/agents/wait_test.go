package agents_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/telemetry"
)

// TestWaits: a wait ends with the run, or after 55 s, and can then be continued.
func TestWaits(t *testing.T) {
	r := start(t)
	job := r.launch(t, 2)
	for _, version := range []string{sessionful, ""} {
		r.wantWait(t, version, "svc_stream_scraper_job", args{"id": job}, map[string]any{
			"unfinished": true, "result.state": "RUNNING", "result.totalLinks": 2})
		r.wantWait(t, version, "svc_stream_scraper", args{"id": r.scraper}, map[string]any{
			"unfinished": true, "result.state": "RUNNING"})
	}
	for seq := range uint32(2) {
		r.Client.Dispatch(t, job, seq)
		receipt := model.Receipt{Job: job, Unit: model.Unit{Seq: seq}, Outcome: model.Delivered,
			PriceRow: "tier:plain", Quantity: 1, Items: 3, Last: true}
		if err := r.Client.Settle(t.Context(), []model.Receipt{receipt}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Client.CloseRun(t, job)
	a := r.connect(t, apitest.Reader, "", nil)
	a.want("svc_stream_scraper_job", args{"id": job}, map[string]any{"unfinished": nil,
		"result.state": "SUCCESS", "result.itemsQuantity": 6})
	a.refused("svc_stream_scraper_job", args{"id": r.group}, "job_not_found")
}

// TestWaitsGoOnByTheirKey: an operation that ends too late answers unfinished. Calling again with
// the key of the answer waits on, and starts nothing new.
func TestWaitsGoOnByTheirKey(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	with, unfinished := args{"scraperId": r.scraper}, map[string]any{"unfinished": true,
		"result": 0, "error": nil}
	for range 2 {
		r.tick(t, time.Second, func() {
			got := a.want("svc_harvest_sitemaps", with, unfinished)
			key := got.Text("idempotencyKey")
			if before := with["idempotencyKey"]; key == "" || before != nil && before != key {
				t.Errorf("after %v the key is %q", before, key)
			}
			with["idempotencyKey"] = key
		})
	}
	a.want("svc_whoami", nil, map[string]any{"unfinished": nil, "idempotencyKey": nil})
}

// TestCancelledWaits: a wait that its caller cancels is not an error of the service. It ends as
// cancelled, and operators see no error.
func TestCancelledWaits(t *testing.T) {
	metrics := telemetry.NewMetrics()
	r := start(t, func(c *apiserver.Config) { c.Metrics = metrics })
	job := r.launch(t, 2)
	session := r.connect(t, apitest.Reader, sessionful, nil).ID()
	header := []string{"Mcp-Session-Id", session, "Mcp-Protocol-Version", sessionful}
	for n, of := range []string{
		`"method":"tools/call","params":{"name":"svc_stream_scraper_job","arguments":{"id":"%s"}}`,
		`"method":"tools/call","params":{"name":"svc_stream_scraper_job","arguments":{"id":"%s"},` +
			`"_meta":{"progressToken":"p"}}`,
	} {
		answered := make(chan apitest.Answer)
		go func() {
			answered <- r.post(t, apitest.Reader, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, n+7)+
				fmt.Sprintf(of, job)+`}`, header...)
		}()
		var a apitest.Answer
		r.tick(t, time.Millisecond, func() { // a cancellation before the call arrives has no effect
			for {
				r.post(t, apitest.Reader, fmt.Sprintf(`{"jsonrpc":"2.0","method":`+
					`"notifications/cancelled","params":{"requestId":%d}}`, n+7), header...)
				select {
				case a = <-answered:
					return
				default:
				}
			}
		})
		// the library itself answers a call that is cancelled before it begins
		said := string(a.Body)
		ends := strings.Contains(said, "-32800") || strings.Contains(said, `"context canceled"`)
		if strings.Contains(said, "internal_error") || strings.Contains(said, `"result"`) || !ends {
			t.Errorf("a wait that was cancelled is answered %d %s", a.Status, said)
		}
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if strings.Contains(m.String(), "5xx") {
				t.Errorf("it counts as an error: %s", m)
			}
		}
	}
	if err := r.Stop(); err != nil { // the log is complete after this
		t.Fatal(err)
	}
	if logged := r.Logs.String(); strings.Contains(logged, `"level":"ERROR"`) {
		t.Errorf("it is logged as an error: %s", logged)
	}
}

// TestGivenUpCalls: a call of any tool that is given up before its answer counts as cancelled.
func TestGivenUpCalls(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	for name, with := range map[string]args{"svc_get_data": {"groupId": r.group},
		"svc_list_groups": {}, "svc_preview_scraper_from_url": {"url": "https://shop.test/",
			"fields": []string{"a"}, "maxChargeMicros": 1000}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: with}); err == nil {
			t.Errorf("%s is answered", name)
		}
	}
	a.want("svc_whoami", nil, map[string]any{"error": nil})
	if err := r.Stop(); err != nil { // the log is complete after this
		t.Fatal(err)
	}
	if logged := r.Logs.String(); strings.Contains(logged, `"level":"ERROR"`) {
		t.Errorf("it is logged as an error: %s", logged)
	}
}

// TestLongAnswers: an answer beyond the budget comes in parts that add up to the whole.
func TestLongAnswers(t *testing.T) {
	r := start(t)
	var rows []string
	for i := range 60 {
		rows = append(rows, fmt.Sprintf(`{"name":%q,"n":%d}`, strings.Repeat("word ", 1_000), i))
	}
	r.run(t, rows...)
	for _, c := range []struct {
		tool, list string
		with       args
	}{
		{"svc_get_data", "items", args{"groupId": r.group, "limit": 30}},
		{"svc_get_group_data_client", "content", args{"id": r.group, "size": 60}},
	} {
		a := r.connect(t, apitest.Reader, "", nil)
		seen, calls := map[any]bool{}, 0
		for cursor := ""; ; calls++ {
			if cursor != "" {
				c.with["cursor"] = cursor
			}
			got := a.want(c.tool, c.with, map[string]any{"error": nil})
			if n := len(got.text) / 4; n > 25_100 {
				t.Errorf("%s: about %d tokens", c.tool, n)
			}
			list, _ := got.At("result." + c.list)
			for _, row := range list.([]any) {
				n := row.(map[string]any)["n"]
				if seen[n] {
					t.Errorf("%s: row %v comes twice", c.tool, n)
				}
				seen[n] = true
			}
			cut, _ := got.At("truncated")
			if cursor = got.Text("cursor"); (cut == true) != (cursor != "") {
				t.Errorf("%s: truncated %v, cursor %q", c.tool, cut, cursor)
			}
			if cursor == "" {
				if next, _ := got.At("result.nextCursor"); next != nil {
					cursor = next.(string)
				}
			}
			if cursor == "" {
				break
			}
		}
		if len(seen) != len(rows) || calls == 0 {
			t.Errorf("%s: %d rows of %d, in %d calls", c.tool, len(seen), len(rows), calls)
		}
		c.with["cursor"] = "cut.e30"
		a.refused(c.tool, c.with, "invalid_cursor")
	}
}

// TestPeopleAreAskedOnce: whoever reads the rest of a cut answer does nothing anew, so nobody is
// asked again. A cursor that names an unused key is a new call.
func TestPeopleAreAskedOnce(t *testing.T) {
	for _, version := range []string{sessionful, ""} {
		r := start(t)
		said, asked := "accept", 0
		a := r.connect(t, apitest.LLM, version, &mcp.ClientOptions{ElicitationHandler: func(
			context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: said, Content: map[string]any{}}, nil
		}})
		var links []args
		for n := range 900 {
			links = append(links, args{"url": fmt.Sprintf("https://shop.test/%d/%s", n,
				strings.Repeat("x", 900))})
		}
		with := args{"scraperRef": r.scraper, "name": "site", "links": links}
		read, cursor := 0, ""
		for calls := 0; calls == 0 || cursor != ""; calls++ {
			if cursor != "" {
				with["cursor"] = cursor
				said = "decline" // whoever is asked again says no
			}
			got := a.want("svc_create_scraper_site", with, map[string]any{"error": nil})
			list, _ := got.At("result.links")
			part, _ := list.([]any)
			read += len(part)
			if cursor = got.Text("cursor"); calls == 0 && cursor == "" || len(part) == 0 {
				t.Fatalf("the answer is not cut: %.300s", got.text)
			}
		}
		if read != len(links) || asked != 1 {
			t.Errorf("%d links were read, and a person was asked %d times", read, asked)
		}
		text, _ := strings.CutPrefix(with["cursor"].(string), "cut.")
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		var place map[string]json.RawMessage
		if err := json.Unmarshal(decoded, &place); err != nil {
			t.Fatal(err)
		}
		place["k"] = json.RawMessage(`"unused"`)
		if decoded, err = json.Marshal(place); err != nil {
			t.Fatal(err)
		}
		with["cursor"] = "cut." + base64.RawURLEncoding.EncodeToString(decoded)
		a.refused("svc_create_scraper_site", with, "declined")
		if asked != 2 {
			t.Errorf("of a new key a person was asked %d times", asked-1)
		}
	}
}

// TestOneLongItem: an item that exceeds the budget comes as parts of its text.
func TestOneLongItem(t *testing.T) {
	r := start(t)
	var row strings.Builder
	for range 100 {
		row.WriteString(`"` + strings.Repeat("x", 20) + string(rune('a'+row.Len()%26)) +
			r.IDs.New().String() + `":"` + strings.Repeat("ü", 1_500) + `",`)
	}
	r.run(t, "{"+row.String()+`"end":1}`, `{"n":2}`)
	a := r.connect(t, apitest.Reader, "", nil)
	with, whole, calls := args{"groupId": r.group}, "", 0
	for ; ; calls++ {
		got := a.want("svc_get_data", with, map[string]any{"error": nil})
		if part := got.Text("part"); part != "" {
			whole += part
		} else if got.Text("result.items.0.n") != "2" {
			t.Fatalf("%.300s", got.text)
		}
		if with["cursor"] = got.Text("cursor"); with["cursor"] == "" {
			break
		}
	}
	if calls < 3 || strings.Count(whole, `"type":"scraped"`) != 100 ||
		!strings.HasSuffix(whole, "}") {
		t.Errorf("%d calls, %d texts, %d bytes", calls, strings.Count(whole, `"type":"scraped"`),
			len(whole))
	}
}
