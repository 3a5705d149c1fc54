package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// MCP is 'shoal mcp', which brings messages of an agent's client to a running service, and its
// messages back. It decides nothing: the service does.
type MCP struct{ Connection }

// Help teaches the command.
func (*MCP) Help() string {
	return `The client starts this command, and speaks the Model Context Protocol with it. The key
has the scope LLM_READ or LLM_FULL; the page of the service for agents says how to get one.

Examples:

  SHOAL_KEY=svc_live_… shoal mcp --server https://shoal.example
  SHOAL_KEY=svc_live_… shoal mcp --data ./data`
}

const (
	// maxUnderway messages wait for the service at once.
	maxUnderway = 64
	// longestMessage is in bytes.
	longestMessage = 1 << 20
)

// Run passes messages on until the client ends.
func (c *MCP) Run(ctx context.Context, t *terminal.Terminal) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	server, err := c.address()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := (&mcp.IOTransport{Reader: io.NopCloser(t.In), Writer: unclosed{t.Out},
		MaxLineLength: longestMessage}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("speak with the client: %w", err)
	}
	service, err := (&mcp.StreamableClientTransport{Endpoint: strings.TrimSuffix(server, "/") +
		"/mcp", HTTPClient: &http.Client{Transport: withKey(key)}, MaxRetries: -1,
		DisableStandaloneSSE: true}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("speak with the service: %w", err)
	}
	var behind sync.WaitGroup
	behind.Go(func() { bringBack(ctx, service, client) })
	err = passOn(ctx, client, service)
	_ = service.Close() // it tells the service; one that is away forgets the session by itself
	cancel()
	behind.Wait()
	if errors.Is(err, io.EOF) || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// passOn sends the service what the client says, until it ends. Messages wait for their answers
// beside one another.
func passOn(ctx context.Context, from, to mcp.Connection) error {
	var underway sync.WaitGroup
	defer underway.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, maxUnderway)
	for {
		message, err := from.Read(ctx)
		if err != nil {
			return err
		}
		places <- struct{}{}
		send := func() {
			defer func() { <-places }()
			if err := to.Write(ctx, message); err != nil {
				refuse(ctx, from, message, err)
			}
		}
		// What is not answered has its order.
		if request, is := message.(*jsonrpc.Request); is && request.IsCall() {
			underway.Go(send)
		} else {
			send()
		}
	}
}

// refuse tells the client that a message did not arrive.
func refuse(ctx context.Context, client mcp.Connection, message jsonrpc.Message, why error) {
	request, is := message.(*jsonrpc.Request)
	if !is || !request.IsCall() {
		return
	}
	_ = client.Write(ctx, &jsonrpc.Response{ID: request.ID, // a client that is gone misses it
		Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: why.Error()}})
}

// bringBack gives the client what the service says, until it ends.
func bringBack(ctx context.Context, from, to mcp.Connection) {
	for {
		message, err := from.Read(ctx)
		if err != nil || to.Write(ctx, message) != nil {
			return
		}
	}
}

// withKey sends a key.
type withKey string

// RoundTrip implements http.RoundTripper.
func (k withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(request)
}

// unclosed is standard output, which stays open.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }
