package port

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/fault"
)

// A call is an HTTP/1.1 exchange: POST /METHOD with a CBOR body. The answer is 200 with a CBOR
// body, or 422 with a coded fault. A 503 has the reason why the call may be repeated, here or
// elsewhere. The caller sends its timeout in milliseconds, so the clocks need not agree. A caller
// that hangs up ends the call.
const (
	timeoutHeader = "Shoal-Timeout-Millis"
	pathPrefix    = "/"

	maxCalls        = 512     // concurrent
	maxBody         = 1 << 20 // of requests and answers
	maxHeader       = 4 << 10
	headerPatience  = 5 * time.Second
	bodyPatience    = 10 * time.Second
	answerPatience  = 10 * time.Second
	maxCallTime     = time.Minute
	idleConnection  = 2 * time.Minute
	connectionsKept = 32 // to each node
	connectionsMost = 128
)

// Method answers calls under one name. A coded fault is final; after any other error the call may
// be repeated.
type Method func(ctx context.Context, from identity.Peer, body []byte) ([]byte, error)

// Handle makes a method that decodes its request and encodes its answer. Callers need one of the
// roles; without roles all may call.
func Handle[Q, A any](handle func(ctx context.Context, from identity.Peer, request Q) (A, error),
	roles ...string) Method {
	c := codec.New()
	return func(ctx context.Context, from identity.Peer, body []byte) ([]byte, error) {
		if len(roles) > 0 && !slices.ContainsFunc(roles, from.Has) {
			return nil, NotAllowed(from, "needs the role "+strings.Join(roles, " or "))
		}
		var request Q
		if err := c.Unmarshal(body, &request); err != nil {
			return nil, fault.Wrap(fault.InvalidBody, err, "the request cannot be decoded")
		}
		answer, err := handle(ctx, from, request)
		if err != nil {
			return nil, err
		}
		return c.Marshal(answer)
	}
}

// NotAllowed refuses a call because of its caller's certificate.
func NotAllowed(from identity.Peer, why string) error {
	return fault.New(fault.ScopeRejected, "node %q (%s): the call %s", from.Node,
		strings.Join(from.Roles, ", "), why)
}

// coded is a fault in transit.
type coded struct {
	Code   fault.Code `cbor:"1,keyasint"`
	Detail string     `cbor:"2,keyasint,omitempty"`
	Field  string     `cbor:"3,keyasint,omitempty"`
}

// Serve answers calls until the port is closed.
func (p *Port) Serve(methods map[string]Method) {
	server := &http.Server{
		Handler:           p.handler(methods),
		ReadHeaderTimeout: headerPatience,
		IdleTimeout:       idleConnection,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(lines{p.config.Logger}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if taken, ok := c.(*connection); ok {
				return context.WithValue(ctx, peerKey{}, taken.peer)
			}
			return ctx
		},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.http = server
	p.work.Go(func() { _ = server.Serve(p.calls) }) // ends with the port
}

type peerKey struct{}

// lines passes net/http's log on.
type lines struct{ to *slog.Logger }

func (l lines) Write(line []byte) (int, error) {
	l.to.Debug("port: " + strings.TrimSpace(string(line)))
	return len(line), nil
}

func (p *Port) handler(methods map[string]Method) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := r.Context().Value(peerKey{}).(identity.Peer)
		answer, err := p.answer(r, http.NewResponseController(w), from, methods)
		status := http.StatusOK
		var final *fault.Error
		switch {
		case errors.As(err, &final):
			status = http.StatusUnprocessableEntity
			if final.Code == fault.ScopeRejected {
				p.refusedCalls.Add(1)
				p.config.Logger.Warn("port: a call was refused", "method", r.URL.Path, "error", err)
			}
			answer, err = p.codec.Marshal(coded{Code: final.Code, Detail: final.Detail,
				Field: final.Field})
		case err != nil:
			status, answer, err = http.StatusServiceUnavailable, []byte(err.Error()), nil
		}
		if err != nil || len(answer) > maxBody {
			status, answer = http.StatusServiceUnavailable, []byte("the answer cannot be sent")
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerPatience))
		w.Header().Set("Content-Type", "application/cbor")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.WriteHeader(status)
		_, _ = w.Write(answer) // a caller that is gone asks again
	})
}

// answer waits for a free slot, reads the request, and has its method answer within the caller's
// time.
func (p *Port) answer(r *http.Request, c *http.ResponseController, from identity.Peer,
	methods map[string]Method) ([]byte, error) {
	method, known := methods[strings.TrimPrefix(r.URL.Path, pathPrefix)]
	if !known || r.Method != http.MethodPost {
		return nil, fault.New(fault.NotSupported, "%s %.80q is not known to this node's version",
			r.Method, r.URL.Path)
	}
	millis, err := strconv.ParseUint(r.Header.Get(timeoutHeader), 10, 31)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the header %s is missing or no number",
			timeoutHeader)
	}
	ctx, cancel := context.WithTimeout(r.Context(),
		min(time.Duration(millis)*time.Millisecond, maxCallTime))
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, errors.New("too many calls are under way")
	}
	if err := c.SetReadDeadline(time.Now().Add(bodyPatience)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidBody, err, "the request cannot be read")
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil { // it would also end the call
		return nil, err
	}
	return method(ctx, from, body)
}

// newClient makes a client for nodes with a role; "" accepts any.
func (p *Port) newClient(role string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			// net/http sees a connection that is mutual TLS already.
			DialContext: func(ctx context.Context, _, to string) (net.Conn, error) {
				return p.dial(ctx, to, callProtocol, "", role)
			},
			DisableCompression:     true,
			MaxIdleConnsPerHost:    connectionsKept,
			MaxConnsPerHost:        connectionsMost,
			IdleConnTimeout:        idleConnection / 2, // before the other side closes it
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// Call calls the node at an address and decodes its answer into answer. Faults are *fault.Error.
// After any other error the outcome is not known. ctx ends the call on both sides; a minute ends it
// in any case.
func (p *Port) Call(ctx context.Context, to, method string, request, answer any) error {
	return p.exchange(ctx, p.nodes, to, method, request, answer)
}

// Ask is Call, and also returns which node answered, by its certificate.
func (p *Port) Ask(ctx context.Context, to, method string, request, answer any) (from identity.Peer,
	err error) {
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
			if c, ours := got.Conn.(*connection); ours {
				from = c.peer
			}
		}})
	if err := p.exchange(ctx, p.nodes, to, method, request, answer); err != nil {
		return identity.Peer{}, err
	}
	return from, nil
}

// CallVoter is Call to a node that must have the role controlplane, and so may be trusted with the
// leader's answers.
func (p *Port) CallVoter(ctx context.Context, to, method string, request, answer any) error {
	return p.exchange(ctx, p.voters, to, method, request, answer)
}

func (p *Port) exchange(ctx context.Context, by *http.Client, to, method string, request,
	answer any) error {
	ctx, cancel := context.WithTimeout(ctx, maxCallTime)
	defer cancel()
	body, err := p.codec.Marshal(request)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "")
	}
	if len(body) > maxBody {
		return fault.New(fault.PayloadTooLarge, "the request has more than %d bytes", maxBody)
	}
	status, data, err := p.post(ctx, by, "http://"+to+pathPrefix+method, body)
	if err != nil {
		return fmt.Errorf("call %s at %s: %w", method, to, err)
	}
	switch status {
	case http.StatusOK:
		err = p.codec.Unmarshal(data, answer)
	case http.StatusUnprocessableEntity:
		var f coded
		if err = p.codec.Unmarshal(data, &f); err == nil {
			return &fault.Error{Code: f.Code, Detail: f.Detail, Field: f.Field}
		}
	default:
		// A caller that gave up may still receive this answer, which its own timeout caused.
		err = errors.Join(fmt.Errorf("%d: %.200q", status, data), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("call %s at %s: %w", method, to, err)
	}
	return nil
}

func (p *Port) post(ctx context.Context, by *http.Client, url string, body []byte) (status int,
	answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	end, _ := ctx.Deadline()
	request.Header.Set(timeoutHeader, strconv.FormatInt(max(time.Until(end).Milliseconds(), 1), 10))
	response, err := by.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // read only: nothing is lost
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err == nil && len(answer) > maxBody {
		err = errors.New("the answer is too long")
	}
	return response.StatusCode, answer, err
}
