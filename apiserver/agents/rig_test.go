package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// rig is an API with one group of alice's that has one scraper.
type rig struct {
	*apitest.Server
	store          rowstore.Store
	group, scraper ids.ID
}

func start(t *testing.T, options ...apitest.Option) *rig {
	t.Helper()
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, append(options, apitest.WithStore(r.store))...)
	r.group = r.NewGroup(t, "alice", "g")
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1_000_000})
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
			ItemsConfig:  []model.Field{{Name: "name", Selector: "h1", Kind: "TEXT"}}}}
	r.Client.Must(t, put)
	r.scraper = put.ID
	return r
}

// launch launches a run with the given number of links.
func (r *rig) launch(t *testing.T, links uint32) ids.ID {
	t.Helper()
	run := client.LaunchRun{Job: r.IDs.New(), Entry: r.IDs.New(), Customer: "alice",
		Scraper: r.scraper, List: r.IDs.New(), Links: links, Tiers: model.TiersOf(model.Plain)}
	r.Client.Must(t, run)
	return run.Job
}

// run makes a closed run with one page for each row.
func (r *rig) run(t *testing.T, rows ...string) ids.ID {
	t.Helper()
	job := r.launch(t, uint32(len(rows)))
	r.bring(t, job, rows...)
	r.Client.CloseRun(t, job)
	return job
}

// bring gives a run one page for each row, and charges it.
func (r *rig) bring(t *testing.T, job ids.ID, rows ...string) {
	t.Helper()
	for seq, row := range rows {
		page := &model.Page{Job: job, Unit: model.Unit{Seq: uint32(seq)}, Fetch: r.IDs.New(),
			Outcome: model.Delivered, PriceRow: "tier:plain", Quantity: 1,
			URL: "https://shop.test/", Last: true, Rows: [][]byte{[]byte(row)}, At: int64(seq + 1)}
		receipts, err := r.store.PutPages(t.Context(), []rowstore.PageWrite{{Page: page,
			Job: rowstore.Job{ID: job, Customer: "alice", Group: r.group,
				Scraper: r.Client.View().Job(job).Scraper, Started: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		r.Client.Dispatch(t, job, uint32(seq))
		if err := r.Client.Settle(t.Context(), []model.Receipt{*receipts[0]}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// bearer adds a credential to requests.
type bearer struct {
	secret string
	header http.Header // additional headers
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.secret)
	for name, values := range b.header {
		request.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(request)
}

// sessionful is a version of the protocol that has sessions.
const sessionful = "2025-11-25"

// dial begins a session with a credential, given by name or as text.
func (r *rig) dial(ctx context.Context, as, version string,
	options *mcp.ClientOptions) (*mcp.ClientSession, error) {
	secret, known := r.Secrets[as]
	if !known {
		secret = as
	}
	agent := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	return agent.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.URL + "/mcp",
		HTTPClient: &http.Client{Transport: bearer{secret: secret}}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
}

// agent is a connected client.
type agent struct {
	*mcp.ClientSession
	t *testing.T
}

func (r *rig) connect(t *testing.T, as, version string, options *mcp.ClientOptions) *agent {
	t.Helper()
	session, err := r.dial(t.Context(), as, version, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // the server may be gone
	return &agent{session, t}
}

// answer is the answer of a tool.
type answer struct {
	text []byte
	apitest.Answer
}

// args are the arguments of a call.
type args = map[string]any

// call calls a tool, and checks that its text equals its structured content.
func (a *agent) call(name string, with args) answer {
	a.t.Helper()
	result, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: with})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return a.read(name, result)
}

func (a *agent) read(name string, result *mcp.CallToolResult) answer {
	a.t.Helper()
	text, is := result.Content[0].(*mcp.TextContent)
	if !is || len(result.Content) != 1 {
		a.t.Fatalf("%s: %d contents", name, len(result.Content))
	}
	var got answer
	got.text = []byte(text.Text)
	if err := json.Unmarshal(got.text, &got.JSON); err != nil {
		a.t.Fatalf("%s: %v in %s", name, err, got.text)
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		a.t.Fatal(err)
	}
	again, err := json.Marshal(got.JSON)
	if err != nil {
		a.t.Fatal(err)
	}
	if string(structured) != string(again) {
		a.t.Errorf("%s: %s is not %s", name, structured, again)
	}
	if _, refused := got.At("error"); refused != result.IsError {
		a.t.Errorf("%s: isError %v: %s", name, result.IsError, got.text)
	}
	return got
}

// want calls a tool and requires members of its answer, by path.
func (a *agent) want(name string, with args, members map[string]any) answer {
	a.t.Helper()
	got := a.call(name, with)
	a.compare(name, with, got, members)
	return got
}

// compare requires members of a call's answer, by path.
func (a *agent) compare(name string, with args, got answer, members map[string]any) {
	a.t.Helper()
	for path, want := range members {
		value, there := got.At(path)
		if fmt.Sprint(value) != fmt.Sprint(want) || there != (want != nil) {
			a.t.Errorf("%s %v: %s is %v, want %v in %.500s", name, with, path, value, want, got.text)
		}
	}
}

// wantWait is want for a call that waits, and returns the progress that was told meanwhile. No time
// passes before the first progress, which comes however busy the machine is.
func (r *rig) wantWait(t *testing.T, version, name string, with args,
	members map[string]any) (progress []*mcp.ProgressNotificationParams) {
	t.Helper()
	told := make(chan *mcp.ProgressNotificationParams, 10)
	a := r.connect(t, apitest.Reader, version, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context,
			request *mcp.ProgressNotificationClientRequest) {
			told <- request.Params
		}})
	call := &mcp.CallToolParams{Name: name, Arguments: with}
	call.SetProgressToken("p")
	var result *mcp.CallToolResult
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = a.CallTool(t.Context(), call)
	}()
	select {
	case first := <-told:
		progress = append(progress, first)
	case <-ended:
	}
	r.tick(t, time.Second, func() { <-ended })
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for len(told) > 0 {
		progress = append(progress, <-told)
	}
	a.compare(name, with, a.read(name, result), members)
	return progress
}

// refused calls a tool and requires a refusal with a code.
func (a *agent) refused(name string, with args, code string) answer {
	a.t.Helper()
	return a.want(name, with, map[string]any{"error.code": code, "error.errors.0.code": code})
}

// post sends a raw message.
func (r *rig) post(t *testing.T, as, body string, header ...string) apitest.Answer {
	t.Helper()
	headers := map[string]string{"Accept": "application/json, text/event-stream"}
	for i := 0; i < len(header); i += 2 {
		headers[header[i]] = header[i+1]
	}
	return r.Call(t, apitest.Scenario{As: as, Do: "POST /mcp", Body: body, Header: headers})
}

// tick advances the clock until step returns.
func (r *rig) tick(t *testing.T, by time.Duration, step func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		step()
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			r.Clock.Advance(by)
		}
	}
}

func long(text string, n int) string { return strings.Repeat(text, n) }
