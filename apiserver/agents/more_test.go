package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/agents"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestPeopleAreAsked: if the client can ask, a call that costs or destroys waits for a person.
func TestPeopleAreAsked(t *testing.T) {
	for _, version := range []string{sessionful, ""} {
		r := start(t)
		said, asked := "decline", ""
		a := r.connect(t, apitest.LLM, version, &mcp.ClientOptions{ElicitationHandler: func(
			_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = request.Params.Message
			return &mcp.ElicitResult{Action: said, Content: map[string]any{}}, nil
		}})
		run := args{"id": r.scraper, "maxChargeMicros": 1_500_000}
		a.refused("svc_run_scraper", run, "declined")
		for _, part := range []string{`(scraper "shop")`, "up to 1.5 EUR", "probably cost 0"} {
			if !strings.Contains(asked, part) {
				t.Errorf("the question %q lacks %q", asked, part)
			}
		}
		if jobs := r.Client.View().OpenJobs(); len(jobs) > 0 {
			t.Error("a declined run was launched")
		}
		a.refused("svc_run_scraper", args{"id": r.scraper, "maxChargeMicros": "900000000"},
			"declined")
		if !strings.Contains(asked, "up to 900 EUR") {
			t.Errorf("of a cap that is a text the question is %q", asked)
		}
		a.refused("svc_run_scraper", args{"id": r.scraper, "maxChargeMicros": "9e8"},
			"invalid_request")
		a.refused("svc_put_group_start_type", args{"id": r.group, "startType": "DAILY"}, "declined")
		if !strings.Contains(asked, "no cap but the balance") {
			t.Errorf("of runs that start by themselves the question is %q", asked)
		}
		for name, part := range map[string]string{"svc_run_group": `(group "g")`,
			"svc_get_scraper_sample_data": `(scraper "shop")`} {
			id := map[bool]any{true: r.group, false: r.scraper}[name == "svc_run_group"]
			a.refused(name, args{"id": id, "maxChargeMicros": 5}, "declined")
			if !strings.Contains(asked, part) {
				t.Errorf("the question of %s is %q", name, asked)
			}
		}
		a.refused("svc_preview_from_url", args{"url": "https://shop.test/" + long("x", 1000),
			"fields": []string{"a"}, "maxChargeMicros": 5}, "declined")
		if !strings.Contains(asked, `("https://shop.test/xxx`) || len(asked) > 400 {
			t.Errorf("of a page the question is %q", asked)
		}
		a.refused("svc_run_scraper", args{"id": r.NewGroup(t, "bob", "theirs"),
			"maxChargeMicros": 5}, "declined")
		if strings.Contains(asked, "theirs") {
			t.Errorf("a question tells of another customer's: %q", asked)
		}
		said = "accept"
		a.want("svc_run_scraper", run, map[string]any{"result.status": "PENDING"})
		asked = ""
		a.refused("svc_run_scraper", args{"id": r.scraper}, "invalid_request")
		a.want("svc_get_wallet", nil, map[string]any{"error": nil})
		a.want("svc_stop_group", args{"id": r.group}, map[string]any{"error": nil})
		preview := a.want("svc_preview_delete_scraper", args{"id": r.scraper},
			map[string]any{"error": nil})
		if asked != "" {
			t.Errorf("without need a person was asked %q", asked)
		}
		remove := args{"id": r.scraper, "token": preview.Text("result.token")}
		said = "cancel"
		a.refused("svc_delete_scraper", remove, "declined")
		if !strings.Contains(asked, `Delete the scraper "shop"`) {
			t.Errorf("the question is %q", asked)
		}
		said = "accept"
		a.want("svc_delete_scraper", remove, map[string]any{"error": nil})
	}
}

// TestPeopleAreAskedOfStarts: a person is asked before a call that makes scrapers start, whatever
// the call says of it, and before no other change.
func TestPeopleAreAskedOfStarts(t *testing.T) {
	r := start(t)
	asked := ""
	a := r.connect(t, apitest.LLM, sessionful, &mcp.ClientOptions{ElicitationHandler: func(
		_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = request.Params.Message
		return &mcp.ElicitResult{Action: "decline", Content: map[string]any{}}, nil
	}})
	declined := func(name string, with args, part string) {
		t.Helper()
		asked = ""
		a.refused(name, with, "declined")
		if !strings.Contains(asked, "no cap but the balance") || !strings.Contains(asked, part) {
			t.Errorf("%s %v: the question is %q", name, with, asked)
		}
	}
	done := func(name string, with args) answer {
		t.Helper()
		asked = ""
		got := a.want(name, with, map[string]any{"error": nil})
		if asked != "" {
			t.Errorf("%s %v: a person was asked %q", name, with, asked)
		}
		return got
	}
	group := func(name, start string) ids.ID {
		put := client.PutGroup{Create: true, ID: r.IDs.New(), Customer: "alice", Name: name,
			DataTable: "t", StartType: start}
		r.Client.Must(t, put)
		return put.ID
	}
	scraper := func(of ids.ID, schedule string) args {
		put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: of,
			Spec: model.Scraper{Name: "s" + r.IDs.New().String(), Type: model.SingleProduct,
				Schedule: schedule, SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
				ItemsConfig: []model.Field{{Name: "name", Selector: "h1", Kind: "TEXT"}}}}
		r.Client.Must(t, put)
		return args{"id": put.ID, "name": put.Spec.Name, "groupRef": of, "type": "SINGLE_PRODUCT",
			"sourceConfig": put.Spec.SourceConfig, "itemsConfig": put.Spec.ItemsConfig}
	}
	in := func(scraper args, group ids.ID) args {
		scraper = maps.Clone(scraper)
		scraper["groupRef"] = group
		return scraper
	}

	paused, idle := group("paused", "NONE"), group("idle", "NONE")
	scraper(paused, "0 3 * * *")
	scraper(idle, "")
	for _, name := range []string{"svc_put_group", "svc_put_group_start_type"} {
		declined(name, args{"id": paused, "startType": "MANUAL"}, `group "paused"`)
		done(name, args{"id": idle, "startType": "MANUAL"})
		r.Client.Must(t, client.PutStartType{Customer: "alice", Group: idle, StartType: "NONE"})
	}
	done("svc_put_group", args{"id": paused, "name": "paused", "startType": "NONE"})

	daily := group("daily", "DAILY")
	own, other := scraper(daily, "0 3 * * *"), scraper(r.group, "")
	made := maps.Clone(other)
	delete(made, "id")
	made["name"] = "made"
	for _, name := range []string{"svc_create_scraper", "svc_create_scraper_v2"} {
		declined(name, in(made, daily), `group "daily"`)
		declined(name, in(other, daily), `group "daily"`)
		declined(name, own, `group "daily"`) // it starts with its group instead
		known := scraper(daily, "")
		done(name, known)
		longer := maps.Clone(known)
		longer["sourceConfig"] = args{"url": "https://shop.test/", "pagination": args{
			"type": "NEXT_LINK", "selector": "a", "max": 10_000}}
		declined(name, longer, `group "daily"`)
		done(name, in(known, r.group))
		done(name, in(other, paused))
	}
}

// TestStopWhileAPersonIsAsked: a stopping server does not wait for people, and says so.
func TestStopWhileAPersonIsAsked(t *testing.T) {
	r := start(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	a := r.connect(t, apitest.LLM, sessionful, &mcp.ClientOptions{ElicitationHandler: func(
		context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		close(asked)
		<-answer
		return &mcp.ElicitResult{Action: "accept"}, nil
	}})
	done := make(chan error, 1)
	var result *mcp.CallToolResult
	go func() {
		var err error
		result, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "svc_run_scraper",
			Arguments: args{"id": r.scraper, "maxChargeMicros": 1}})
		done <- err
	}()
	<-asked
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := a.read("svc_run_scraper", result); got.Text("error.code") != "declined" {
		t.Errorf("a question that a stop ends is answered %s", got.text)
	}
}

// TestProgress: a client that asks for progress gets increasing numbers.
func TestProgress(t *testing.T) {
	r := start(t)
	job := r.launch(t, 3)
	for _, version := range []string{sessionful, ""} {
		told := r.wantWait(t, version, "svc_stream_scraper_job", args{"id": job},
			map[string]any{"unfinished": true})
		if len(told) != 1 {
			t.Fatalf("%d notifications of a run that stands still", len(told))
		}
		if far := told[0]; far.Progress != 0 || far.Total != 3 || far.ProgressToken != "p" ||
			far.Message != "RUNNING: 0 pages" {
			t.Errorf("%+v", far)
		}
	}
}

// TestResources: groups, runs and rows have URIs, which answer like the tools.
func TestResources(t *testing.T) {
	r := start(t)
	job := r.run(t, `{"_sourceUrl":"https://shop.test/a","name":"a"}`)
	a := r.connect(t, apitest.Reader, "", nil)
	for uri, want := range map[string]string{
		"shoal://groups":                               `"name":"g"`,
		"shoal://jobs":                                 job.String(),
		"shoal://jobs/" + job.String():                 `"state":"SUCCESS"`,
		"shoal://groups/" + r.group.String() + "/rows": `"type":"scraped"`,
		"shoal://scrapers/" + r.scraper.String():       `"configValid":true`,
	} {
		read, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if text := read.Contents[0].Text; !strings.Contains(text, want) ||
			!json.Valid([]byte(text)) || read.Contents[0].MIMEType != "application/json" {
			t.Errorf("%s: %s", uri, text)
		}
	}
	running := r.launch(t, 1)
	read, err := a.ReadResource(t.Context(),
		&mcp.ReadResourceParams{URI: "shoal://jobs/" + running.String()})
	if err != nil || !strings.Contains(read.Contents[0].Text, `"state":"RUNNING"`) {
		t.Errorf("a run under way: %v", err)
	}
	r.Client.Must(t, client.OpenCustomer{Customer: "mallory", Entry: r.IDs.New()})
	other := r.connect(t, r.key(t, "mallory"), "", nil)
	for _, uri := range []string{"shoal://jobs/" + job.String(), "shoal://jobs/x",
		"shoal://groups/" + r.group.String() + "/rows", "shoal://nothing",
		"shoal://scrapers/" + r.scraper.String()} {
		if _, err := other.ReadResource(t.Context(),
			&mcp.ReadResourceParams{URI: uri}); err == nil ||
			!strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestPrompts: each prompt names existing tools and accepts its arguments.
func TestPrompts(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	known := tools(t, a)
	seen := 0
	for prompt, err := range a.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		with := map[string]string{}
		for _, argument := range prompt.Arguments {
			with[argument.Name] = "<" + argument.Name + ">"
		}
		given, err := a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name,
			Arguments: with})
		if err != nil {
			t.Fatal(err)
		}
		text := given.Messages[0].Content.(*mcp.TextContent).Text
		for name, value := range with {
			said := without(t, a, prompt.Name, with, name)
			if said.Code != jsonrpc.CodeInvalidParams || !strings.Contains(said.Message, name) {
				t.Errorf("%s without %s: %+v", prompt.Name, name, said)
			}
			if !strings.Contains(text, value) || strings.Contains(text, "{"+name+"}") {
				t.Errorf("%s does not say %s", prompt.Name, name)
			}
		}
		for word := range strings.FieldsFuncSeq(text, func(c rune) bool {
			return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
		}) {
			if strings.HasPrefix(word, "svc_") && known[word] == nil {
				t.Errorf("%s names %s, which is no tool", prompt.Name, word)
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d prompts", seen)
	}
}

// without returns a prompt's refusal if an argument is missing or blank.
func without(t *testing.T, a *agent, prompt string, with map[string]string,
	name string) (refused jsonrpc.Error) {
	t.Helper()
	with = maps.Clone(with)
	with[name] = " "
	if _, err := a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt,
		Arguments: with}); err == nil {
		t.Errorf("%s takes blanks for %s", prompt, name)
	}
	delete(with, name)
	_, err := a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt, Arguments: with})
	if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) {
		return *wire
	}
	return jsonrpc.Error{Message: "no error of the protocol"}
}

// TestPreviewsSayWhatTheyCost: a preview of a page returns marked texts and its charge.
func TestPreviewsSayWhatTheyCost(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	played := r.PlayTrial(t, r.store, func(model.Recipe) *model.Page {
		return &model.Page{Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1,
			Rows: [][]byte{[]byte(`{"price":"9.99"}`)}}
	})
	got := a.want("svc_preview_from_url", args{"url": "https://shop.test/", "fields": []string{
		"price"}, "maxChargeMicros": 1000}, map[string]any{
		"result.fields.price.type": "scraped", "result.fields.price.content": "9.99",
		"result.fields.price.origin": "https://shop.test/"})
	job := played()
	if got.Text("cost.jobId") != job.ID.String() {
		t.Errorf("%s", got.text)
	}
}

// TestSessionsHoldNoCall: a session keeps only the caller of its first call. Anything else would
// stay in memory as long as the session.
func TestSessionsHoldNoCall(t *testing.T) {
	var seen []*operation.Caller
	url := serveFixtures(t, func(server *mcp.Server) {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, request mcp.Request) (mcp.Result,
				error) {
				seen = append(seen, agents.CallerIn(ctx))
				return next(ctx, method, request)
			}
		})
	})
	agent := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := agent.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url,
		MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: sessionful})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(session.Ping(t.Context(), nil), session.Close()); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 3 || seen[0] == nil || seen[0] != seen[len(seen)-1] {
		t.Fatalf("the first message's context is not the session's: %v", seen)
	}
	if of := seen[0]; of.Customer != "alice" || of.View != nil || of.Disk != nil {
		t.Errorf("the session keeps %+v", of)
	}
}
