// Package api is the command line's client of the HTTP API: requests, error bodies, the job stream,
// the cursor read. It knows only the published shapes of the API and shares no code with the
// server, so that it keeps the server honest.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of the client.
const (
	maxErrorBody  = 1 << 20
	maxAnswerBody = 256 << 20
	callTimeout   = 2 * time.Minute  // of calls that stream nothing, unless within sets another
	margin        = 30 * time.Second // added to the server's time, for the way there and back
	dialTimeout   = 5 * time.Second
)

// Client calls one server with one credential. It is safe for concurrent use.
type Client struct {
	server string
	key    string
	http   *http.Client
	clock  clock.Clock
	notice func(string)
	hasty  bool          // never waits for another try
	most   time.Duration // time limit of a call that streams nothing
}

// New makes a client. Server is the base address (http://HOST:PORT), key an API key or a sign-in
// token. notice, which may be nil, is told why a call is waiting.
func New(server, key string, c clock.Clock, notice func(string)) *Client {
	if notice == nil {
		notice = func(string) {}
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     time.Minute,
		MaxIdleConnsPerHost: 4,
	}
	return &Client{
		server: strings.TrimRight(server, "/"), key: key, clock: c, notice: notice,
		most: callTimeout, http: &http.Client{Transport: transport, CheckRedirect: refuseRedirect},
	}
}

// refuseRedirect keeps the credential from going elsewhere: the API never redirects.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Impatient makes the client return the first refusal instead of waiting until the server accepts
// the call. It must be called before anything else.
func (c *Client) Impatient() { c.hasty = true }

// within returns a client for a call to which the server grants that much time. If the client gives
// up first, the server goes on, and the result is lost.
func (c *Client) within(server time.Duration) *Client {
	patient := *c
	patient.most = server + margin
	return &patient
}

// Server returns the base address.
func (c *Client) Server() string { return c.server }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ErrUnreachable is wrapped by errors of calls without an answer.
var ErrUnreachable = errors.New("the server cannot be reached")

// errUnsent is ErrUnreachable before any connection was made.
var errUnsent = fmt.Errorf("%w", ErrUnreachable)

// Problem is an error answer.
type Problem struct {
	Status        int    `json:"status"`
	Code          string `json:"code"`
	Title         string `json:"title"`
	Detail        string `json:"detail"`
	CorrelationID string `json:"correlationId"`
	Errors        []struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	retryAfter time.Duration
}

// Error implements error.
func (p *Problem) Error() string {
	text := p.text()
	if p.retryAfter > 0 {
		text += fmt.Sprintf(", again in %s", p.retryAfter)
	}
	for _, e := range p.Errors {
		if e.Message != "" && e.Message != p.Detail {
			text += "\n  " + e.Message
		}
	}
	if p.Status >= 500 && p.CorrelationID != "" {
		text += "\n  correlation id " + p.CorrelationID
	}
	return text
}

// text returns the problem in one line.
func (p *Problem) text() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if text == "" {
		text = http.StatusText(p.Status)
	}
	return fmt.Sprintf("%s (%d %s)", text, p.Status, p.Code)
}

// IsStatus says whether err is an answer with one of the statuses.
func IsStatus(err error, statuses ...int) bool {
	var problem *Problem
	if !errors.As(err, &problem) {
		return false
	}
	for _, status := range statuses {
		if problem.Status == status {
			return true
		}
	}
	return false
}

// IsCode reports whether err is the API's refusal with this code.
func IsCode(err error, code fault.Code) bool {
	var problem *Problem
	return errors.As(err, &problem) && problem.Code == string(code)
}

// request describes one call.
type request struct {
	method      string
	path        string
	query       url.Values
	header      http.Header
	body        io.Reader
	length      int64 // of body, -1 when unknown
	contentType string
	// again says that it may be repeated when the result is unknown.
	again bool
}

// get reads JSON.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, request{method: http.MethodGet, path: path, query: query, again: true}, nil,
		out)
}

// send calls a mutating operation with an Idempotency-Key, which stays the same over all tries.
func (c *Client) send(ctx context.Context, method, path string, body, out any) error {
	return c.call(ctx, request{method: method, path: path, header: newKey(), again: true}, body,
		out)
}

// ask calls an operation without an Idempotency-Key, whose every call has an effect or a cost.
func (c *Client) ask(ctx context.Context, method, path string, body, out any) error {
	return c.call(ctx, request{method: method, path: path}, body, out)
}

// newKey makes a header with a new Idempotency-Key.
func newKey() http.Header { return http.Header{"Idempotency-Key": {uuid.NewString()}} }

func (c *Client) call(ctx context.Context, r request, body, out any) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode body: %w", err)
		}
	}
	return c.patiently(ctx, r, func(try request) error {
		if encoded != nil {
			try.body, try.length = bytes.NewReader(encoded), int64(len(encoded))
			try.contentType = "application/json"
		}
		return c.once(ctx, try, out)
	})
}

// open begins an answer that is streamed.
func (c *Client) open(ctx context.Context, path string,
	query url.Values) (answer *http.Response, err error) {
	rows := request{method: http.MethodGet, path: path, query: query, again: true,
		header: http.Header{"Accept": {"*/*"}}}
	err = c.patiently(ctx, rows, func(try request) error {
		answer, err = c.do(ctx, try)
		return err
	})
	return answer, err
}

// once makes one try within the call's time.
func (c *Client) once(ctx context.Context, req request, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.most)
	defer cancel()
	answer, err := c.do(ctx, req)
	if err != nil {
		return err
	}
	return decode(answer, out)
}

// do sends a request and returns a 2xx answer, whose body the caller closes. Other answers become a
// *Problem.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	address := c.server + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	away := errUnsent
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { away = ErrUnreachable }})
	req, err := http.NewRequestWithContext(traced, r.method, address, r.body)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", c.server, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.ContentLength = r.length
		req.Header.Set("Content-Type", r.contentType)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	answer, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w at %s: %w", away, c.server, err)
	}
	if answer.StatusCode/100 != 2 {
		defer closeBody(answer)
		return nil, problemOf(answer)
	}
	return answer, nil
}

// closeBody drains the body so that the connection is reused. An error of closing a read body does
// not matter.
func closeBody(answer *http.Response) {
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16)
	_ = answer.Body.Close()
}

func decode(answer *http.Response, out any) error {
	defer closeBody(answer)
	if out == nil {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, answer.Body, maxAnswerBody))
	switch long := (*http.MaxBytesError)(nil); {
	case errors.As(err, &long):
		return fmt.Errorf("answer of %s: %w", answer.Request.URL.Path, err)
	case err != nil:
		return fmt.Errorf("%w: the answer broke off: %w", ErrUnreachable, err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("answer of %s: %w", answer.Request.URL.Path, err)
	}
	if told, ok := out.(interface{ tell(http.Header) }); ok {
		told.tell(answer.Header)
	}
	return nil
}

func problemOf(answer *http.Response) *Problem {
	problem := &Problem{}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	if err != nil || json.Unmarshal(body, problem) != nil {
		problem = &Problem{Detail: strings.TrimSpace(string(body[:min(len(body), 200)]))}
	}
	problem.Status = answer.StatusCode
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		problem.retryAfter = time.Duration(seconds) * time.Second
	}
	return problem
}
