package commands

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// agentService is a service with one tool, which asks a person first. It wants a key.
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
		if r.Header.Get("Authorization") != "Bearer good" || r.URL.Path != "/mcp" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// speak runs the command for a client, until that ends.
func speak(t *testing.T, server, key string) (*mcp.ClientSession, error) {
	t.Helper()
	in, toIn := io.Pipe()
	fromOut, out := io.Pipe()
	command := &MCP{Connection{Server: server, Key: key}}
	ended := make(chan error, 1)
	go func() {
		ended <- command.Run(t.Context(), &terminal.Terminal{In: in, Out: out, Err: io.Discard})
		_ = out.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
	transport := &mcp.IOTransport{Reader: fromOut, Writer: toIn}
	session, err := client.Connect(t.Context(), transport, nil)
	t.Cleanup(func() {
		if session != nil {
			_ = session.Close()
		}
		_ = toIn.Close()
		if err := <-ended; err != nil {
			t.Errorf("the command ends with %v", err)
		}
	})
	return session, err
}

// TestMCP: a client that starts the command calls the service's tools, and is asked by it.
func TestMCP(t *testing.T) {
	for name, options := range map[string]*mcp.StreamableHTTPOptions{"sessions": nil,
		"no sessions": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			session, err := speak(t, agentService(t, options).URL, "good")
			if err != nil {
				t.Fatal(err)
			}
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

// TestMCPWithoutAccess: a client is told that the service refuses the key.
func TestMCPWithoutAccess(t *testing.T) {
	_, err := speak(t, agentService(t, nil).URL, "bad")
	if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("%v", err)
	}
}
