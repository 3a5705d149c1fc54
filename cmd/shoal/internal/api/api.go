// Package api is the command line's client of the HTTP API: requests, error bodies, the job stream,
// the cursor read. It knows the API by its published shapes only and shares no code with the
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
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"shoal.dev/shoal/pkg/clock"
)

// Bounds of the client.
const (
	maxErrorBody  = 1 << 20
	maxAnswerBody = 256 << 20
	maxWaits      = 20               // how often one call waits
	longestWait   = 2 * time.Minute  // the longest Retry-After of the rate limit that it waits for
	unavailable   = 30 * time.Second // how long it is made again while the server cannot do it
	callTimeout   = 2 * time.Minute  // of calls that stream nothing, unless they say within
	margin        = 30 * time.Second // for the way to a server and back, beside its time
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
	most   time.Duration // of a call that streams nothing
}

// New makes a client. Server is the base address (http://HOST:PORT), key an API key or a sign-in
// token; notice, which may be nil, hears why a call is waiting.
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

// refuseRedirect keeps the credential where it was meant to go: the API redirects nowhere.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Impatient has the client answer with the first refusal, instead of waiting until the server may
// take the call. To be called before anything else.
func (c *Client) Impatient() { c.hasty = true }

// within is the client for a call that the server gives so long. A call that is cut off here goes on
// there, and nobody hears what became of it.
func (c *Client) within(server time.Duration) *Client {
	patient := *c
	patient.most = server + margin
	return &patient
}

// Server is the base address.
func (c *Client) Server() string { return c.server }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ErrUnreachable is wrapped by errors that mean that no answer came.
var ErrUnreachable = errors.New("the server cannot be reached")

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

// text is the problem in one line.
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

// IsStatus says whether err is an answer of one of the statuses.
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

// request is one call.
type request struct {
	method      string
	path        string
	query       url.Values
	header      http.Header
	body        io.Reader
	length      int64 // of body, -1 when unknown
	contentType string
}

// get reads JSON; a full rate limit and a short unavailability are waited out.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, nil, out)
}

// send calls a mutating operation, whose Idempotency-Key stays the same over all tries.
func (c *Client) send(ctx context.Context, method, path string, body, out any) error {
	header := http.Header{"Idempotency-Key": {uuid.NewString()}}
	return c.call(ctx, method, path, nil, header, body, out)
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values,
	header http.Header,
	body, out any) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode body: %w", err)
		}
	}
	return c.patiently(ctx, func() error {
		req := request{method: method, path: path, query: query, header: header}
		if encoded != nil {
			req.body, req.length, req.contentType = bytes.NewReader(encoded), int64(len(encoded)),
				"application/json"
		}
		return c.once(ctx, req, out)
	})
}

// patiently makes a call until its answer is not one to wait for. Each wait is told with its
// length.
func (c *Client) patiently(ctx context.Context, try func() error) error {
	begun := c.clock.Now()
	for waits := 0; ; waits++ {
		err := try()
		wait, again := retryAfter(err, waits, c.clock.Now().Sub(begun))
		if !again || c.hasty {
			return err
		}
		var problem *Problem
		if errors.As(err, &problem) {
			c.notice(fmt.Sprintf("%s: waiting %s", problem.text(), wait))
		}
		if !clock.Pause(ctx, c.clock, wait) {
			return ctx.Err()
		}
	}
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

// retryAfter says whether a call that failed after so many waits and so long is worth another try,
// and when.
func retryAfter(err error, waits int, lasted time.Duration) (time.Duration, bool) {
	var problem *Problem
	if !errors.As(err, &problem) || waits >= maxWaits {
		return 0, false
	}
	switch problem.Status {
	case http.StatusTooManyRequests:
		return max(problem.retryAfter, time.Second), problem.retryAfter <= longestWait
	case http.StatusServiceUnavailable:
		wait := max(problem.retryAfter, time.Second)
		return wait, lasted+wait < unavailable
	}
	return 0, false
}

// do sends a request and returns an answer of 2xx, whose body the caller closes. Other answers
// become a *Problem.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	address := c.server + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, r.body)
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
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, c.server, err)
	}
	if answer.StatusCode/100 != 2 {
		defer closeBody(answer)
		return nil, problemOf(answer)
	}
	return answer, nil
}

// closeBody lets the connection be used again. Closing a body that was read cannot fail in a way
// that matters.
func closeBody(answer *http.Response) {
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16)
	_ = answer.Body.Close()
}

func decode(answer *http.Response, out any) error {
	defer closeBody(answer)
	if out == nil {
		return nil
	}
	body := http.MaxBytesReader(nil, answer.Body, maxAnswerBody)
	if err := json.NewDecoder(body).Decode(out); err != nil {
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
