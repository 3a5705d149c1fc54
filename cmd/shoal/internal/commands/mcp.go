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

	"shoal.dev/shoal/cmd/shoal/internal/api"
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
  SHOAL_KEY=svc_live_… shoal mcp --data ./data

Where the service cannot be reached or refuses the key, the client's first message and standard
error say what is wrong. The command ends when the service has ended the session, so that the
client starts it anew.`
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
	if err := c.check(ctx, t, server); err != nil {
		refuseAll(ctx, client, err)
		return err
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

// check finds out whether agents can call the service with the key, before any message is passed
// on. It says what to do where they cannot.
func (c *MCP) check(ctx context.Context, t *terminal.Terminal, server string) error {
	asks, err := c.Client(t)
	if err != nil {
		return err
	}
	asks.Impatient()
	defer asks.Close()
	identity, err := asks.Whoami(ctx)
	var text string
	switch {
	case err == nil && (identity.Scope == "LLM_READ" || identity.Scope == "LLM_FULL"):
		return nil
	case err == nil:
		text = fmt.Sprintf("the key is of the scope %s, and agents need one of LLM_READ or "+
			"LLM_FULL: PUT /api/key/generate?scope=LLM_FULL mints it", identity.Scope)
	case errors.Is(err, api.ErrUnreachable):
		text = fmt.Sprintf("%v: check --server (SHOAL_SERVER)", err)
	case api.IsStatus(err, http.StatusUnauthorized):
		text = fmt.Sprintf("%s does not take the key, which may be mistyped or revoked: check "+
			"--key (SHOAL_KEY): %v", server, err)
	default:
		text = fmt.Sprintf("%s does not answer as the service does: check --server "+
			"(SHOAL_SERVER): %v", server, err)
	}
	return &terminal.ExitError{Code: terminal.ExitNoAccess, Text: text}
}

// passOn sends the service what the client says, until it ends. Messages wait for their answers
// beside one another.
func passOn(ctx context.Context, from, to mcp.Connection) (err error) {
	var underway sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		underway.Wait()
		if ended := context.Cause(ctx); errors.Is(ended, errEnded) {
			err = ended
		}
		cancel(nil)
	}()
	places := make(chan struct{}, maxUnderway)
	for {
		message, err := from.Read(ctx)
		if err != nil {
			return err
		}
		places <- struct{}{}
		send := func() {
			defer func() { <-places }()
			err := to.Write(ctx, message)
			if errors.Is(err, mcp.ErrSessionMissing) {
				err = errEnded
				defer cancel(err)
			}
			if err != nil {
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

// errEnded tells a client to start anew: there is no other way to begin another session.
var errEnded = errors.New("the service has ended the session: start the command again")

// refuse tells the client that a message did not arrive.
func refuse(ctx context.Context, client mcp.Connection, message jsonrpc.Message, why error) {
	request, is := message.(*jsonrpc.Request)
	if !is || !request.IsCall() {
		return
	}
	_ = client.Write(ctx, &jsonrpc.Response{ID: request.ID, // a client that is gone misses it
		Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: why.Error()}})
}

// refuseAll tells the client so of whatever it says, until it ends.
func refuseAll(ctx context.Context, client mcp.Connection, why error) {
	for {
		message, err := client.Read(ctx)
		if err != nil {
			return
		}
		refuse(ctx, client, message, why)
	}
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
