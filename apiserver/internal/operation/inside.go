package operation

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Inside is a call from within the process, made on behalf of the caller of another operation. It
// passes the whole chain of checks, like a call from outside.
type Inside struct {
	// Outer is the call that this one is part of. Credential is the one that came with it.
	Outer      *Caller
	Credential string
	Path       map[string]string
	Query      url.Values
	Key        string // the idempotency key; "": none
	Body       []byte // JSON; nil: none
	// bodyName is the argument that holds the whole body; "": the body's members are arguments.
	bodyName string
	// faults are those of the arguments. The call is refused with them and the operation's own.
	faults fault.List
}

// Refused says whether the call is refused for its arguments, whatever the operation finds.
func (c *Inside) Refused() bool { return len(c.faults) > 0 }

// Inner is the result of a call from within. It must be closed.
type Inner struct {
	Status      int
	ContentType string
	// RetryAfter is in seconds, as text; "": not given.
	RetryAfter string
	// Job is the run that the call made or is about. Reason is why an answer is empty, and Origin
	// the page that it comes from.
	Job    ids.ID
	Reason string
	Origin string
	// Body is the answer, or the Problem.
	Body io.Reader

	rc     *fasthttp.RequestCtx // owns the body's bytes
	cancel context.CancelFunc
}

// Close ends an answer that comes as a stream. Any goroutine may call it, repeatedly.
func (i *Inner) Close() {
	i.cancel()
	if closer, ok := i.Body.(io.Closer); ok {
		_ = closer.Close() // the reader sees the stream end
	}
}

// Do makes a call from within. The call is given up when ctx ends or the outer caller hangs up.
func (c *Chain) Do(ctx context.Context, op *Operation, call *Inside) *Inner {
	ctx, cancel := context.WithCancel(ctx)
	outer := call.Outer
	rc := &fasthttp.RequestCtx{}
	rc.Init2(&within{ctx: ctx, gone: outer.Gone}, nil, true)
	h := &rc.Request.Header
	h.SetMethod(op.Routes[0].Method)
	target := call.path(op)
	if query := call.Query.Encode(); query != "" {
		target += "?" + query
	}
	rc.Request.SetRequestURI(target)
	h.SetHost(outer.Host)
	h.Set("X-Request-Id", outer.RequestID)
	h.Set("Authorization", call.Credential)
	if call.Key != "" {
		h.Set("Idempotency-Key", call.Key)
	}
	if call.Body != nil {
		h.SetContentType("application/json")
		rc.Request.SetBodyStream(bytes.NewReader(call.Body), len(call.Body))
	}
	for name, value := range call.Path {
		rc.SetUserValue(name, url.PathEscape(value))
	}
	c.underway.addOne()
	defer c.underway.removeOne()
	x := c.beginExchange(op, rc)
	x.body.name, x.bodyName, x.faults = "the arguments", call.bodyName, call.faults
	x.from.Way, x.from.Address, x.address = outer.Way, outer.Address, outer.Address
	x.from.Agent = true
	x.run(ctx)
	inner := &Inner{Status: rc.Response.StatusCode(), rc: rc, cancel: cancel, Job: x.from.Job,
		Reason: x.from.Reason, Origin: x.from.Origin,
		ContentType: string(rc.Response.Header.ContentType()),
		RetryAfter:  string(rc.Response.Header.Peek("Retry-After"))}
	if rc.Response.IsBodyStream() {
		inner.Body = rc.Response.BodyStream()
	} else {
		inner.Body = bytes.NewReader(rc.Response.Body())
	}
	return inner
}

// within stands in for the connection that a call from within does not have.
type within struct {
	net.Conn
	ctx  context.Context
	gone func() bool
}

// Gone says whether nobody waits for the answer any more.
func (w *within) Gone() bool { return w.ctx.Err() != nil || w.gone() }

// RemoteAddr implements net.Conn.
func (*within) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
}

// LocalAddr implements net.Conn.
func (w *within) LocalAddr() net.Addr { return w.RemoteAddr() }

// SetReadDeadline implements net.Conn. It does nothing: the body is already there.
func (*within) SetReadDeadline(time.Time) error { return nil }
