package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/wake"
)

// MCP is 'shoal mcp', which relays messages between an agent's client and a running service. It
// decides nothing: the service does.
type MCP struct{ Connection }

// Help returns the command's help text.
func (*MCP) Help() string {
	return `The client starts this command and speaks the Model Context Protocol with it. The key
must have the scope LLM_READ or LLM_FULL. The service's page for agents shows how to get one.

Examples:

  SHOAL_KEY=svc_live_… shoal mcp --server https://shoal.example
  SHOAL_KEY=svc_live_… shoal mcp --data ./data

If the service cannot be reached or refuses the key, the first answer to the client and standard
error say why. The command ends when the service ends the session, so that the client starts it
again.`
}

const (
	// maxUnderway is how many messages wait for the service at once.
	maxUnderway = 64
	// longestMessage is in bytes.
	longestMessage = 1 << 20
	// lastAnswers is how long to wait for answers after the client's input has ended.
	lastAnswers = 2 * time.Minute
)

// Run relays messages until the client ends.
func (c *MCP) Run(ctx context.Context, t *terminal.Terminal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &unclosed{to: t.Out}
	client, err := (&mcp.IOTransport{Reader: io.NopCloser(newLines(t.In, out)), Writer: out,
		MaxLineLength: longestMessage}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("speak with the client: %w", err)
	}
	server, key, err := c.find(ctx, t)
	if err != nil {
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
	calls := newOpenCalls()
	behind.Go(func() { bringBack(ctx, service, client, calls) })
	err = passOn(ctx, client, service, calls, t.Clock)
	_ = service.Close() // tells the service; an unreachable one forgets the session on its own
	cancel()
	behind.Wait()
	if errors.Is(err, io.EOF) || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// find returns the service's address and the key, once agents can call it.
func (c *MCP) find(ctx context.Context, t *terminal.Terminal) (server, key string, err error) {
	if key, err = c.key(); err == nil {
		if server, err = c.address(); err == nil {
			err = c.check(ctx, t, server)
		}
	}
	return server, key, err
}

// check finds out whether agents can call the service with the key, before relaying any message. If
// not, the error says what to do.
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

// passOn sends the client's messages to the service, until the client ends and has its answers.
// Messages that have an answer wait concurrently.
func passOn(ctx context.Context, from, to mcp.Connection, calls *openCalls,
	c clock.Clock) (err error) {
	var underway sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		underway.Wait()
		calls.wait(ctx, c.After(lastAnswers))
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
		calls.note(message)
		send := func() {
			defer func() { <-places }()
			err := to.Write(ctx, message)
			if errors.Is(err, mcp.ErrSessionMissing) {
				err = errEnded
				defer cancel(err)
			}
			if err != nil {
				refuse(ctx, from, message, err)
				calls.remove(idOf(message))
			}
		}
		// Messages without an answer keep their order.
		if idOf(message).IsValid() {
			underway.Go(send)
		} else {
			send()
		}
	}
}

// errEnded tells a client to start again: there is no other way to begin a new session.
var errEnded = errors.New("the service has ended the session: start the command again")

// refuse tells the client that a message did not arrive.
func refuse(ctx context.Context, client mcp.Connection, message jsonrpc.Message, why error) {
	id := idOf(message)
	if !id.IsValid() {
		return
	}
	_ = client.Write(ctx, &jsonrpc.Response{ID: id, // a client that is gone misses it
		Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: why.Error()}})
}

// refuseAll answers every message of the client with why, until the client ends.
func refuseAll(ctx context.Context, client mcp.Connection, why error) {
	for {
		message, err := client.Read(ctx)
		if err != nil {
			return
		}
		refuse(ctx, client, message, why)
	}
}

// bringBack relays the service's messages to the client, until the service ends.
func bringBack(ctx context.Context, from, to mcp.Connection, calls *openCalls) {
	defer close(calls.ended)
	for {
		message, err := from.Read(ctx)
		if err != nil || to.Write(ctx, message) != nil {
			return
		}
		if answer, is := message.(*jsonrpc.Response); is {
			calls.remove(answer.ID)
		}
	}
}

// idOf returns the id of a call, invalid for other messages.
func idOf(message jsonrpc.Message) (id jsonrpc.ID) {
	if request, is := message.(*jsonrpc.Request); is {
		id = request.ID
	}
	return id
}

// openCalls are the calls that the service has not answered. Their answers arrive independently of
// sending.
type openCalls struct {
	mu    sync.Mutex
	open  map[jsonrpc.ID]bool
	fewer wake.Signal   // signalled for each answered call
	ended chan struct{} // closed when no more answers come
}

func newOpenCalls() *openCalls {
	return &openCalls{open: map[jsonrpc.ID]bool{}, fewer: wake.NewSignal(),
		ended: make(chan struct{})}
}

// note records a call. It does not wait for calls that the client cancels.
func (o *openCalls) note(message jsonrpc.Message) {
	request, is := message.(*jsonrpc.Request)
	switch {
	case !is:
	case request.IsCall():
		o.mu.Lock()
		defer o.mu.Unlock()
		o.open[request.ID] = true
	case request.Method == "notifications/cancelled":
		var of struct{ RequestID any }
		if json.Unmarshal(request.Params, &of) != nil {
			return
		}
		if id, err := jsonrpc.MakeID(of.RequestID); err == nil {
			o.remove(id)
		}
	}
}

func (o *openCalls) remove(id jsonrpc.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, id)
	o.fewer.Raise()
}

// wait waits until all calls are answered, bound fires, no answer can come, or ctx ends.
func (o *openCalls) wait(ctx context.Context, bound <-chan time.Time) {
	for {
		o.mu.Lock()
		left := len(o.open)
		o.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-o.fewer:
		case <-o.ended:
			return
		case <-bound:
			return
		case <-ctx.Done():
			return
		}
	}
}

// withKey is a transport that sends a key.
type withKey string

// RoundTrip implements http.RoundTripper.
func (k withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(request)
}
