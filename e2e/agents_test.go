package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/synthweb"
)

// What the tasks take together: fewer is the goal. The tokens have 5 % of room, as rows come in any
// order. The table in docs/agents.md has what each takes.
const (
	agentCalls  = 31
	agentTokens = 9_300
)

// TestAgentsDoTheirTasks has a scripted client do 20 tasks using only the real service's tools. It
// prints how many calls and tokens each takes, and bounds them.
func TestAgentsDoTheirTasks(t *testing.T) {
	t.Parallel()
	web := newWeb(t, synthweb.Config{Seed: 3, Hosts: 12, PagesPerHost: 2})
	s := newService(t, web, suite.Fast()...)
	w := newWorker(t, s, web)
	var table strings.Builder
	calls, tokens := 0, 0
	for i, task := range w.tasks() {
		w.calls, w.tokens = 0, 0
		task.do()
		fmt.Fprintf(&table, "\n%2d  %-40s %3d calls %6d tokens", i+1, task.name, w.calls, w.tokens)
		calls, tokens = calls+w.calls, tokens+w.tokens
		if t.Failed() {
			t.Fatalf("%s failed", task.name)
		}
	}
	t.Logf("%s\n    %-40s %3d calls %6d tokens", table.String(), "together", calls, tokens)
	if calls != agentCalls || tokens > agentTokens {
		t.Errorf("%d calls and %d tokens, want %d and at most %d", calls, tokens, agentCalls,
			agentTokens)
	}
}

// worker is an agent at work.
type worker struct {
	t       *testing.T
	session *mcp.ClientSession
	web     *synthweb.Web
	urls    []string

	calls, tokens int

	group, scraper, list string
	jobs                 []string // of the list
	charged              []any    // for each of jobs
}

func newWorker(t *testing.T, s *service, web *synthweb.Web) *worker {
	t.Helper()
	who := s.customer("ann")
	var minted struct{ Key string }
	if err := who.Call(t.Context(), "PUT", "/api/key/generate", url.Values{"name": {"agent"},
		"scope": {"LLM_FULL"}}, nil, &minted); err != nil {
		t.Fatal(err)
	}
	agent := mcp.NewClient(&mcp.Implementation{Name: "worker", Version: "1"}, nil)
	session, err := agent.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   s.Client.Server + "/mcp",
		HTTPClient: &http.Client{Transport: bearing(minted.Key)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	w := &worker{t: t, session: session, web: web, urls: slices.Collect(web.URLs(20))}
	listed := 0
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		listed += tokensOf(string(text))
	}
	t.Logf("the list of tools has about %d tokens", listed)
	return w
}

// bearing is a transport that sends a key.
type bearing string

// RoundTrip implements http.RoundTripper.
func (b bearing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(request)
}

// tokensOf estimates a text's tokens: one per four ASCII characters, or per other character.
func tokensOf(text string) int {
	others := utf8.RuneCountInString(text)
	plain := 0
	for _, c := range []byte(text) {
		if c < utf8.RuneSelf {
			plain++
		}
	}
	return plain/4 + others - plain
}

type args = map[string]any

// got is a tool's answer, a tree of JSON.
type got struct {
	t     *testing.T
	value any
}

// at returns a member by its path.
func (g got) at(path ...any) any {
	value := g.value
	for _, part := range path {
		switch part := part.(type) {
		case string:
			members, _ := value.(map[string]any)
			value = members[part]
		case int:
			items, _ := value.([]any)
			if part >= len(items) {
				return nil
			}
			value = items[part]
		}
	}
	return value
}

func (g got) text(path ...any) string {
	text, _ := g.at(path...).(string)
	return text
}

// count returns the length of a list.
func (g got) count(path ...any) int {
	items, _ := g.at(path...).([]any)
	return len(items)
}

// call calls a tool, and counts what that takes.
func (w *worker) call(tool string, with args) got {
	w.t.Helper()
	answer, asked, text := w.send(tool, with)
	w.calls++
	w.tokens += tokensOf(tool) + tokensOf(asked) + tokensOf(text)
	if answer.at("error") != nil {
		w.t.Fatalf("%s %s: %s", tool, asked, text)
	}
	return answer
}

// look calls a tool for the test, which is no part of the task. A refusal is an answer.
func (w *worker) look(tool string, with args) got {
	w.t.Helper()
	answer, _, _ := w.send(tool, with)
	return answer
}

// send calls a tool. It returns the answer, and what was sent and received.
func (w *worker) send(tool string, with args) (answer got, asked, text string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), suite.Patience)
	defer cancel()
	result, err := w.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: with})
	if err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
	sent, err := json.Marshal(with)
	if err != nil {
		w.t.Fatal(err)
	}
	text = result.Content[0].(*mcp.TextContent).Text
	answer = got{t: w.t}
	if err := json.Unmarshal([]byte(text), &answer.value); err != nil ||
		result.IsError != (answer.at("error") != nil) {
		w.t.Fatalf("%s %s: %v %s", tool, sent, err, text)
	}
	return answer, string(sent), text
}

// await waits for the end of a run. It counts one wait: how often a wait is repeated depends on the
// machine.
func (w *worker) await(job string) got {
	w.t.Helper()
	calls, tokens := w.calls, w.tokens
	for {
		far := w.call("svc_stream_scraper_job", args{"id": job})
		if far.at("unfinished") != true {
			return far
		}
		w.calls, w.tokens = calls, tokens
	}
}

// want fails the task unless the found value is right.
func (w *worker) want(what string, found, right any) {
	w.t.Helper()
	if fmt.Sprint(found) != fmt.Sprint(right) {
		w.t.Errorf("%s: %v, want %v", what, found, right)
	}
}

// truth returns a field of the page at an address.
func (w *worker) truth(address, field string) any {
	w.t.Helper()
	truth, err := w.web.Truth(address)
	if err != nil {
		w.t.Fatal(err)
	}
	return truth.Pages[0].Rows[0][field]
}

type task struct {
	name string
	do   func()
}
