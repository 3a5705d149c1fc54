package agents_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
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
	r.Client.Must(t, hook)
	a, asked := r.declining(t)
	for _, c := range []struct {
		tool  string
		with  args
		says  []string
		final bool
	}{
		{"svc_delete_webhook", args{"id": hook.ID}, []string{"alice.test/hook"}, true},
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
		{"svc_create_scraper_v2", scraper(r.group, 1), 1},
		{"svc_create_scraper_v2", scraper(few.ID, nil), 2},
		{"svc_create_scraper_v2", scraper(r.group, 4), 0},
		{"svc_put_group", args{"id": r.group, "name": "g", "retentionCount": 2}, 2},
		{"svc_put_group", args{"id": few.ID, "name": "few", "retentionCount": 1}, 0}, // it is empty
	} {
		*asked = ""
		if c.kept == 0 {
			a.want(c.tool, c.with, map[string]any{"error": nil})
		} else {
			a.refused(c.tool, c.with, "declined")
		}
		want := fmt.Sprintf("only the newest %d runs keep their rows", c.kept)
		if strings.Contains(*asked, want) != (c.kept > 0) || c.kept == 0 && *asked != "" {
			t.Errorf("%s %v: the question is %q", c.tool, c.with, *asked)
		}
		r.Client.Must(t, put) // as it was
	}
}

// TestAnswersThatAreFinished: an answer is unfinished only where a wait has ended.
func TestAnswersThatAreFinished(t *testing.T) {
	r := start(t, apitest.WithBlobs(t))
	a := r.connect(t, apitest.LLM, "", nil)
	r.run(t, `{"n":1}`)
	for tool, with := range map[string]args{
		"svc_keep_export": {"groupId": r.group, "format": "csv"},
	} {
		a.want(tool, with, map[string]any{"error": nil, "unfinished": nil, "idempotencyKey": nil})
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
	}
}
