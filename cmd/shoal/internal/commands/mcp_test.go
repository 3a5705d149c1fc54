package commands

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/clock"
)

// agentService is a service with one tool, which first asks a person. It requires a key.
func agentService(t *testing.T, options *mcp.StreamableHTTPOptions) *httptest.Server {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "service", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context,
		request *mcp.CallToolRequest, in struct{ Name string }) (*mcp.CallToolResult, any, error) {
		if request.Params.InputResponses["who"] == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
				"who": &mcp.ElicitParams{Message: "May I?"}}}, nil, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "hello " + in.Name}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		options)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		switch {
		case key != "Bearer good" && key != "Bearer of people":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthorized","status":401,"detail":"no"}`)
		case r.URL.Path == "/api/key/whoami" && key == "Bearer good":
			_, _ = io.WriteString(w, `{"scope":"LLM_READ"}`)
		case r.URL.Path == "/api/key/whoami":
			_, _ = io.WriteString(w, `{"scope":"USER"}`)
		case r.URL.Path == "/mcp":
			handler.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// speak runs the command for a client. The returned function gives its result once the client ends.
func speak(t *testing.T, server, key string) (*mcp.ClientSession, func() error, error) {
	t.Helper()
	in, toIn := io.Pipe()
	fromOut, out := io.Pipe()
	command := &MCP{Connection{Server: server, Key: key}}
	ended := make(chan error, 1)
	go func() {
		ended <- command.Run(t.Context(), &terminal.Terminal{In: in, Out: out, Err: io.Discard,
			Clock: clock.System{}})
		_ = out.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
	transport := &mcp.IOTransport{Reader: fromOut, Writer: toIn}
	session, err := client.Connect(t.Context(), transport, nil)
	return session, func() error {
		if session != nil {
			_ = session.Close()
		}
		_ = toIn.Close()
		return <-ended
	}, err
}

// TestMCP: a client that starts the command calls the service's tools, and is asked by it.
func TestMCP(t *testing.T) {
	for name, options := range map[string]*mcp.StreamableHTTPOptions{"sessions": nil,
		"no sessions": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			session, end, err := speak(t, agentService(t, options).URL, "good")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := end(); err != nil {
					t.Errorf("the command ends with %v", err)
				}
			}()
			for range 3 {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet",
					Arguments: map[string]any{"Name": "ann"}})
				if err != nil {
					t.Fatal(err)
				}
				if text := result.Content[0].(*mcp.TextContent).Text; text != "hello ann" {
					t.Errorf("%q", text)
				}
			}
		})
	}
}

// TestMCPWithoutAccess: the client and standard error both get the reason why a key or an address
// does not work.
func TestMCPWithoutAccess(t *testing.T) {
	service := agentService(t, nil).URL
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct{ name, server, key, want string }{
		{"a wrong key", service, "bad", "does not take the key"},
		{"a key of people", service, "of people", "LLM_READ or LLM_FULL"},
		{"no service", other.URL, "good", "does not answer as the service does"},
		{"nothing", gone.URL, "good", "cannot be reached"},
		{"no key", service, "", "no API key"},
		{"no address", "", "good", "no running service in"},
	} {
		_, end, err := speak(t, c.server, c.key)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the client is told %v", c.name, err)
		}
		if err := end(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the command ends with %v", c.name, err)
		}
	}
}

// TestMCPAnswersAllThatItWasAsked: answers arrive even after the client's input has ended.
func TestMCPAnswersAllThatItWasAsked(t *testing.T) {
	ended := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/key/whoami":
			_, _ = io.WriteString(w, `{"scope":"LLM_READ"}`)
		case r.Method == http.MethodPost:
			_ = http.NewResponseController(w).Flush()
			<-ended
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`)
		}
	}))
	defer service.Close()
	asked := strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}` + "\n")
	var out strings.Builder
	command := &MCP{Connection{Server: service.URL, Key: "good"}}
	err := command.Run(t.Context(), &terminal.Terminal{In: &ending{asked, ended}, Out: &out,
		Err: io.Discard, Clock: clock.System{}})
	if err != nil || !strings.Contains(out.String(), `"id":7`) {
		t.Errorf("%v, answered %q", err, out.String())
	}
}

// TestMCPAnswersWhatIsNoMessage: a line that is no message is answered, and the next ones arrive.
func TestMCPAnswersWhatIsNoMessage(t *testing.T) {
	asked := strings.Join([]string{"nonsense", "", `{"jsonrpc":"2.0"`, "7", "null",
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`, "half"}, "\n")
	out := new(strings.Builder)
	passed, err := io.ReadAll(newLines(strings.NewReader(asked), out))
	if want := "\n" + `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"; err != nil ||
		string(passed) != want {
		t.Errorf("%v, passes %q", err, passed)
	}
	var codes []int
	for line := range strings.Lines(out.String()) {
		var said struct {
			ID    any
			Error struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil || said.ID != nil {
			t.Errorf("%v in %s", err, line)
		}
		codes = append(codes, said.Error.Code)
	}
	if want := []int{-32700, -32700, -32600, -32600, -32700}; !slices.Equal(codes, want) {
		t.Errorf("the codes are %v, want %v", codes, want)
	}
	long := strings.Repeat("x", longestMessage+1)
	if passed, err := io.ReadAll(newLines(strings.NewReader(long), io.Discard)); err != nil ||
		len(passed) < longestMessage {
		t.Errorf("of a line that is too long, %d bytes pass, %v", len(passed), err)
	}
}

// TestCancelledCallsAreNotWaitedFor: the service may leave them unanswered. Other calls are awaited
// until they have an answer, or none can come.
func TestCancelledCallsAreNotWaitedFor(t *testing.T) {
	decode := func(text string) jsonrpc.Message {
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
	call := decode(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)
	calls := newOpenCalls()
	calls.note(call)
	calls.note(decode(`{"jsonrpc":"2.0","method":"notifications/cancelled",
		"params":{"requestId":7}}`))
	calls.wait(t.Context(), nil)
	calls.note(call)
	over := make(chan time.Time, 1)
	over <- time.Time{}
	calls.wait(t.Context(), over)
	go calls.remove(idOf(call))
	calls.wait(t.Context(), nil)
	calls.note(call)
	close(calls.ended)
	calls.wait(t.Context(), nil)
}

// ending reports when it has been read to its end.
type ending struct {
	from  io.Reader
	ended chan struct{}
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if err != nil {
		close(e.ended)
	}
	return n, err
}

// TestMCPWhenTheSessionEnds: the command ends, so that its client restarts it.
func TestMCPWhenTheSessionEnds(t *testing.T) {
	var serves atomic.Pointer[httptest.Server]
	serves.Store(agentService(t, nil))
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serves.Load().Config.Handler.ServeHTTP(w, r)
	}))
	defer service.Close()
	session, end, err := speak(t, service.URL, "good")
	if err != nil {
		t.Fatal(err)
	}
	serves.Store(agentService(t, nil)) // the service has restarted
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet",
		Arguments: map[string]any{"Name": "ann"}})
	if err == nil {
		t.Error("a session that has ended still calls")
	}
	if err := end(); !errors.Is(err, errEnded) {
		t.Errorf("the command ends with %v", err)
	}
}
