package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
)

// exchange sends the request and reads the whole response. The connection returns to the pool only
// if nothing is left to read on it.
func (c *Client) exchange(
	ctx context.Context, conn *conn, to address.Address, req *Request, deadline time.Time,
) (*Response, error) {
	stop := interruptOn(ctx, conn)
	resp := c.newResponse(req.Caller)
	ended := false
	defer func() {
		if !ended { // the reader of the response has panicked
			stop()
			conn.Close()
			resp.forget()
		}
	}()
	reusable, err := c.roundTrip(conn, to, req, deadline, resp)
	ended = true
	resp.WireBytes = conn.read
	if !stop() {
		reusable, err = false, contextError(ctx)
	}
	if reusable && err == nil {
		c.pool.put(conn)
	} else {
		conn.Close()
	}
	if err != nil {
		resp.Release()
		return nil, err
	}
	return resp, nil
}

// interruptOn interrupts the connection's reads and writes when ctx ends. stop undoes this, and
// returns false if the interruption has happened.
func interruptOn(ctx context.Context, conn net.Conn) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

func (c *Client) roundTrip(conn *conn, to address.Address, req *Request, deadline time.Time,
	resp *Response) (bool, error) {
	maxBody := req.MaxBody
	if maxBody <= 0 {
		maxBody = c.config.MaxBody
	}
	// Framing may cost as much as the body, and some more; no honest server sends tiny chunks.
	conn.limit = 2*maxBody + int64(4*c.config.MaxHeader)
	if err := conn.SetDeadline(deadline); err != nil {
		return false, fault.Wrap(fault.PageConnect, err, "The connection is gone.")
	}
	message, err := appendRequest(resp.buffer[:0], to, req)
	resp.buffer = message[:0]
	if err != nil {
		return false, err
	}
	if _, err := conn.Write(message); err != nil {
		return false, answerError(conn, err)
	}

	reader := c.reader(conn)
	defer c.readers.Put(reader)
	resp.message.StreamBody = true
	resp.message.Header.SetNoDefaultContentType(true) // without a Content-Type there is no type
	resp.message.SkipBody = req.Method == fasthttp.MethodHead
	if err := resp.message.ReadLimitBody(reader, 0); err != nil {
		return false, answerError(conn, err)
	}
	resp.Status = resp.message.StatusCode()
	if resp.Status < 200 {
		return false, fault.New(fault.PageProtocol, "The host switched to another protocol.")
	}
	whole := true
	if stream := resp.message.BodyStream(); stream != nil {
		whole, err = c.readBody(conn, stream, resp, maxBody, req)
		_ = resp.message.CloseBodyStream()
		if err != nil {
			return false, err
		}
	}
	return whole && reader.Buffered() == 0 && !resp.message.ConnectionClose(), nil
}

func (c *Client) reader(conn *conn) *bufio.Reader {
	if reader, ok := c.readers.Get().(*bufio.Reader); ok {
		reader.Reset(conn)
		return reader
	}
	return bufio.NewReaderSize(conn, c.config.MaxHeader)
}

// appendRequest writes a request message. No part can inject a line break: the target is canonical,
// and the fields are checked.
func appendRequest(dst []byte, to address.Address, req *Request) ([]byte, error) {
	method := req.Method
	if method == "" {
		method = fasthttp.MethodGet
	}
	if !IsToken(method) {
		return dst, fault.New(fault.PageProtocol, "The method %q cannot be sent.", method)
	}
	dst = append(dst, method...)
	dst = append(append(dst, ' '), to.Target...)
	dst = append(append(dst, " HTTP/1.1\r\nHost: "...), to.Authority...)
	dst = append(dst, "\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"...)
	for _, field := range req.Header {
		if !IsToken(field.Name) || strings.ContainsAny(field.Value, "\r\n\x00") {
			return dst, fault.New(fault.PageProtocol, "The request field %q cannot be sent.",
				field.Name)
		}
		dst = append(append(dst, field.Name...), ": "...)
		dst = append(append(dst, field.Value...), "\r\n"...)
	}
	if len(req.Body) > 0 || method != fasthttp.MethodGet && method != fasthttp.MethodHead {
		dst = append(dst, "Content-Length: "...)
		dst = append(strconv.AppendInt(dst, int64(len(req.Body)), 10), "\r\n"...)
		return append(append(dst, "\r\n"...), req.Body...), nil
	}
	return append(dst, "\r\n"...), nil
}

// IsToken says whether a name can be a method or a header field's.
func IsToken(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// errTooLarge says that a response exceeded a limit.
var errTooLarge = errors.New("the answer is too large")

// answerError codes a failure to send a request or read its response.
func answerError(conn *conn, err error) error {
	cause := err
	if conn.err != nil && !errors.Is(conn.err, io.EOF) {
		cause = conn.err // the message parser reports EOF for most connection failures
	}
	var header *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(cause, errTooLarge):
		return fault.Wrap(fault.PageTooLarge, err, "The answer is too large.")
	case isTimeout(cause):
		return fault.Wrap(fault.PageTimeout, err, "The host did not answer in time.")
	case errors.As(err, &header):
		return fault.Wrap(fault.PageProtocol, err, "The answer's header is too large.")
	case conn.read == 0:
		return fault.Wrap(fault.PageConnect, cause,
			"The host closed the connection without an answer.")
	case isBroken(cause):
		return fault.Wrap(fault.PageProtocol, cause, "The answer broke off.")
	}
	return fault.Wrap(fault.PageProtocol, err, "The answer is not valid HTTP.")
}
