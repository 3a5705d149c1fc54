package agents_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/price"
)

// declining connects a client whose person says no to everything, and returns what was asked last.
func (r *rig) declining(t *testing.T) (*agent, *string) {
	asked := new(string)
	return r.connect(t, apitest.LLM, sessionful, &mcp.ClientOptions{ElicitationHandler: func(
		_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		*asked = request.Params.Message
		return &mcp.ElicitResult{Action: "decline", Content: map[string]any{}}, nil
	}}), asked
}

// unsaid are required arguments that a question does not repeat.
var unsaid = []string{"token", "format", "content", "type", "keyColumn"}

// TestQuestionsSayWhatTheyAreAbout: the question before a call that costs or destroys has each text
// that the call must say, so nobody agrees to something unknown.
func TestQuestionsSayWhatTheyAreAbout(t *testing.T) {
	r := start(t)
	a, asked := r.declining(t)
	seen := 0
	for tool, err := range a.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		hints, input := tool.Annotations, tool.InputSchema.(map[string]any)
		needs, _ := input["required"].([]any)
		if !*hints.DestructiveHint && !slices.Contains(needs, any("maxChargeMicros")) {
			continue
		}
		with, texts := args{}, []string{}
		for _, name := range needs {
			name := name.(string)
			switch property := input["properties"].(map[string]any)[name].(map[string]any); {
			case name == "maxChargeMicros":
				with[name] = 5
			case property["type"] == "string":
				with[name] = "said as " + name
				if !slices.Contains(unsaid, name) {
					texts = append(texts, with[name].(string))
				}
			}
		}
		*asked = ""
		a.call(tool.Name, with)
		if *asked == "" {
			continue // the call is refused before, or nothing goes by it
		}
		seen++
		for _, text := range texts {
			if !strings.Contains(*asked, text) {
				t.Errorf("%s: the question %q lacks %q", tool.Name, *asked, text)
			}
		}
	}
	if seen < 12 {
		t.Errorf("only %d tools ask", seen)
	}
}

// TestQuestionsNameThings: a question names things as the customer does, and does not call what can
// be taken back final.
func TestQuestionsNameThings(t *testing.T) {
	r := start(t)
	hook := client.PutWebhook{ID: r.IDs.New(), Customer: "alice",
		URL: "https://alice.test/hook", Secret: []byte("one"),
		Events: []model.Event{model.APIKeyCreated}}
	export := client.AskExport{ID: r.IDs.New(), Customer: "alice", Owner: "alice",
		Groups: []ids.ID{r.group}, Request: []byte(`{"format":"csv"}`), Kept: 1_000_000}
	r.Client.Must(t, hook)
	r.Client.Must(t, export)
	a, asked := r.declining(t)
	for _, c := range []struct {
		tool  string
		with  args
		says  []string
		final bool
	}{
		{"svc_delete_webhook", args{"id": hook.ID}, []string{"alice.test/hook"}, true},
		{"svc_delete_kept_export", args{"id": export.ID}, []string{`export of group "g" as csv`},
			true},
		{"svc_change_subscription", args{"plan": "PRO"}, []string{`plan "PRO"`}, false},
		{"svc_cancel_subscription", nil, nil, false},
		{"svc_revoke_group_share", args{"id": r.group, "email": "b@x.test"},
			[]string{`group "g"`, "b@x.test"}, false},
		{"svc_create_scraper_site", args{"name": "books", "scraperRef": r.scraper,
			"links": []args{{"url": "https://shop.test/a"}, {"url": "https://shop.test/b"}}},
			[]string{`scraper "shop"`, `"books"`, "2 addresses", "shop.test/a"}, true},
		{"svc_create_scraper_v2", args{"name": "nightly", "groupRef": r.group,
			"schedule": "0 3 * * *", "type": "SINGLE_PRODUCT",
			"sourceConfig": args{"url": "https://shop.test/z"}},
			[]string{`"nightly"`, `"0 3 * * *"`, "https://shop.test/z", `group "g"`}, false},
	} {
		*asked = ""
		a.refused(c.tool, c.with, "declined")
		for _, text := range c.says {
			if !strings.Contains(*asked, text) {
				t.Errorf("%s: the question %q lacks %q", c.tool, *asked, text)
			}
		}
		if final := strings.Contains(*asked, "cannot be undone"); final != c.final {
			t.Errorf("%s: the question is %q", c.tool, *asked)
		}
	}
}

// TestPeopleAreAskedOfRowsThatGo: a person is asked before fewer runs keep their rows than before,
// and not before as many or more do.
func TestPeopleAreAskedOfRowsThatGo(t *testing.T) {
	r := start(t)
	a, asked := r.declining(t)
	few := client.PutGroup{Create: true, ID: r.IDs.New(), Customer: "alice", Name: "few",
		DataTable: "t", StartType: "MANUAL", Retention: 2}
	r.Client.Must(t, few)
	three := 3
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "three", Type: model.SingleProduct,
			Config:       &model.ScraperConfig{RetentionCount: &three},
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
			ItemsConfig:  []model.Field{{Name: "name", Selector: "h1", Kind: "TEXT"}}}}
	r.Client.Must(t, put)
	roomy := client.PutGroup{Create: true, ID: r.IDs.New(), Customer: "alice", Name: "roomy",
		DataTable: "t", StartType: "MANUAL", Retention: 9}
	inside, file := put, put
	inside.ID, inside.Group, inside.Spec.Name = r.IDs.New(), roomy.ID, "inside"
	file.ID, file.Spec = r.IDs.New(), model.Scraper{Name: "file", Type: model.File,
		Config: &model.ScraperConfig{RetentionCount: &three}}
	r.Client.Must(t, roomy)
	r.Client.Must(t, inside)
	r.Client.Must(t, file)
	scraper := func(group ids.ID, count any) args {
		return args{"id": put.ID, "name": "three", "groupRef": group, "type": "SINGLE_PRODUCT",
			"sourceConfig": put.Spec.SourceConfig, "itemsConfig": put.Spec.ItemsConfig,
			"config": args{"retentionCount": count}}
	}
	const retain = "svc_update_scraper_retention"
	for _, c := range []struct {
		tool string
		with args
		kept int // 0: nobody is asked
	}{
		{retain, args{"id": put.ID, "retentionCount": 1}, 1},
		{retain, args{"id": r.scraper, "retentionCount": 9}, 9},
		{retain, args{"id": put.ID, "retentionCount": 3}, 0},
		{retain, args{"id": put.ID, "retentionCount": nil}, 0},
		{retain, args{"id": file.ID, "retentionCount": nil}, 1},
		{"svc_create_scraper_v2", scraper(r.group, 1), 1},
		{"svc_create_scraper_v2", scraper(few.ID, nil), 2},
		{"svc_create_scraper_v2", scraper(r.group, 4), 0},
		{"svc_put_group", args{"id": r.group, "name": "g", "retentionCount": 2}, 2},
		{"svc_put_group", args{"id": few.ID, "name": "few", "retentionCount": 1}, 0}, // it is empty
		{"svc_put_group", args{"id": roomy.ID, "retentionCount": nil}, 3},
		{"svc_put_group", args{"id": roomy.ID, "name": "roomy"}, 0},
	} {
		*asked = ""
		if c.kept == 0 {
			a.want(c.tool, c.with, map[string]any{"error": nil})
		} else {
			a.refused(c.tool, c.with, "declined")
		}
		want := fmt.Sprintf("the rows of all runs but the newest %d are deleted", c.kept)
		if strings.Contains(*asked, want) != (c.kept > 0) || c.kept == 0 && *asked != "" {
			t.Errorf("%s %v: the question is %q", c.tool, c.with, *asked)
		}
		r.Client.Must(t, put) // as it was
	}
}

// TestAnswersAreAsDescribed: a tool's answer has a cost, and is unfinished, only if its description
// says that it may.
func TestAnswersAreAsDescribed(t *testing.T) {
	r, all := everything(t)
	a := r.connect(t, apitest.LLM, "", nil)
	known, done := tools(t, a), 0
	for _, c := range all {
		described := map[string]any{} // the list leaves out what lists answer, which has none of it
		if output, is := known[c.name].OutputSchema.(map[string]any); is {
			described = output["properties"].(map[string]any)
		}
		with := args{}
		for name, value := range c.with {
			with[name] = value
		}
		var got answer
		call := func() { got = a.call(c.name, with) }
		if described["unfinished"] == nil {
			call()
		} else {
			r.tick(t, time.Second, call) // a wait ends when its time is over
		}
		if _, refused := got.At("error"); refused {
			continue
		}
		done++
		for _, member := range []string{"unfinished", "idempotencyKey", "cost"} {
			if _, said := got.At(member); said && described[member] == nil {
				t.Errorf("%s is not described with %s, and answers %.200s", c.name, member, got.text)
			}
		}
	}
	if done < 70 {
		t.Errorf("only %d of %d tools answer", done, len(all))
	}
}

// TestEveryCallSaysItsCost: what may cost says what it has cost, of the runs of a group together,
// and of an answer from the cache.
func TestEveryCallSaysItsCost(t *testing.T) {
	r := start(t, func(config *apiserver.Config) {
		config.Values = sampled{rows: []string{`{"name":"Lamp"}`}}
	})
	a := r.connect(t, apitest.LLM, "", nil)
	a.want("svc_get_scraper_sample_data", args{"id": r.scraper, "useCache": true,
		"maxChargeMicros": 500}, map[string]any{"cost.chargedMicros": 0, "cost.jobId": nil,
		"result.0.name.origin": "https://shop.test/"})
	a.want("svc_run_group", args{"id": r.group, "maxChargeMicros": 500_000},
		map[string]any{"cost.chargedMicros": 0, "cost.jobId": nil,
			"result.jobs.0.scraperId": r.scraper})
}

// TestTrialsSayTheirPage: each text of a preview or a sample has its page as origin.
func TestTrialsSayTheirPage(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	const address = "https://shop.test/api"
	for _, c := range []struct {
		tool string
		with args
		page string
	}{
		{"svc_preview_from_url", args{"url": address, "fields": []string{"name"}}, address},
		{"svc_preview_scraper_from_url", args{"name": "a", "groupId": r.group, "url": address},
			address},
		{"svc_preview_scraper_from_curl", args{"name": "a", "groupId": r.group,
			"curl": "curl '" + address + "' -H 'X-Key: 1'"}, address},
		{"svc_get_scraper_sample_data", args{"id": r.scraper}, "https://shop.test/"},
	} {
		played := r.PlayTrial(t, r.store, func(recipe model.Recipe) *model.Page {
			made := &model.Page{Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1,
				Rows: [][]byte{[]byte(`{"name":"Oak chair"}`)}}
			e, err := extract.Compile(recipe)
			if err != nil {
				t.Error(err)
				return made
			}
			got, err := e.Extract(extract.Page{URL: address, ContentType: "application/json",
				Body: []byte(`{"total":2,"items":[{"id":1,"name":"Blue one",` +
					`"price":{"amount":1.5}},{"id":2,"name":"Red one","price":{"amount":2}}]}`)})
			if err == nil && len(got.Rows) > 0 {
				made.Rows = got.Rows
			}
			return made
		})
		c.with["maxChargeMicros"] = 1000
		got := string(a.want(c.tool, c.with, map[string]any{"error": nil}).text)
		played()
		texts := strings.Count(got, `"type":"scraped"`)
		if texts == 0 || strings.Count(got, fmt.Sprintf(`"origin":%q`, c.page)) != texts {
			t.Errorf("%s: not all of %d texts are of %s: %s", c.tool, texts, c.page, got)
		}
	}
}

// TestCostOfAHugeGroup: the cost is that of all runs that a call made, not only of those that fit
// into its answer.
func TestCostOfAHugeGroup(t *testing.T) {
	r := start(t)
	r.Client.Must(t, client.PutPrices{Rows: price.List{{RowKey: "tier:plain", Micros: 150}}})
	free := r.launch(t, uint32(r.Client.View().Wallet("alice").Free))
	for seq := range r.Client.View().Job(free).Links {
		r.Client.Dispatch(t, free, seq) // the pages below cost money
	}
	const many = 900
	for i := range many {
		r.Client.Must(t, client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice",
			Group: r.group, Spec: model.Scraper{Name: fmt.Sprint("s", i), Type: model.SingleProduct,
				SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
				ItemsConfig:  []model.Field{{Name: "name", Selector: "h1", Kind: "TEXT"}}}})
	}
	a := r.connect(t, apitest.LLM, "", nil)
	with := args{"id": r.group, "maxChargeMicros": 500_000, "idempotencyKey": "once"}
	a.want("svc_run_group", with, map[string]any{"truncated": true, "cost.chargedMicros": 0})
	open := r.Client.View().OpenJobs()
	if len(open) != many+1 {
		t.Fatalf("%d runs", len(open))
	}
	charged := int64(0)
	for _, job := range []ids.ID{open[1].ID, open[many].ID} {
		r.bring(t, job, `{"name":"Lamp"}`)
		cost := r.Client.View().Job(job).Charged
		if charged += cost; cost == 0 {
			t.Fatal("a page costs nothing")
		}
	}
	a.want("svc_run_group", with, map[string]any{"truncated": true, "cost.chargedMicros": charged})
}

// TestTaughtWhatMayBeCalled: instructions and prompts name only tools that the caller may call.
func TestTaughtWhatMayBeCalled(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		as      string
		prompts int
		writes  bool
	}{{apitest.LLM, 4, true}, {apitest.Reader, 2, false}} {
		a := r.connect(t, c.as, sessionful, nil)
		said := a.InitializeResult().Instructions
		if !strings.Contains(said, "svc_get_data") || !strings.Contains(said, "never follow") ||
			strings.Contains(said, "svc_create_scraper_v2") != c.writes {
			t.Errorf("%s is told %q", c.as, said)
		}
		list, err := a.ListPrompts(t.Context(), nil)
		if err != nil || len(list.Prompts) != c.prompts {
			t.Errorf("%s has prompts %+v, %v", c.as, list, err)
		}
		_, err = a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "crawl_list",
			Arguments: map[string]string{"urls": "u", "wanted": "w"}})
		if (err == nil) != c.writes {
			t.Errorf("%s asks for a prompt of writing, and gets %v", c.as, err)
		}
	}
}
