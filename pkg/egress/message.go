package egress

import (
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

// Request is a request to send.
type Request struct {
	// Method; "": GET.
	Method string
	// URL is http or https, in any form that Canonical accepts.
	URL string
	// Header lists further fields. The client sets Host, Content-Length, Accept-Encoding and
	// Connection itself.
	Header []Field
	// Body is sent with its Content-Length if it is not empty, or if the method is not GET or HEAD.
	Body []byte
	// Deadline ends the exchange; zero: the client's Timeout from now.
	Deadline time.Time
	// MaxBody limits the response body's bytes, as sent and as decompressed; 0: the client's.
	MaxBody int64
	// Caller is whom the response is for. The bodies of one caller are held within a share of
	// MaxBuffered, and its names are looked up within a share of all look-ups. "": not limited to a
	// share.
	Caller string
	// Proxy is the way to the host; nil: direct.
	Proxy *Proxy
	// Private says that nobody else may ever read what the request holds. It does not share
	// connections with public requests. Its key exchange is meant to withstand quantum computers,
	// if the host supports that.
	Private bool
	// Truncate keeps the first MaxBody bytes of a longer body, instead of an error.
	Truncate bool
	// Take reads the body of a 2xx response as it comes, decompressed. Nothing is held:
	// Response.Body stays empty. A body that is too long yields MaxBody bytes and an error, one
	// that breaks off what came and an error. If Take stops early, the rest stays unread.
	Take func(contentType string, body io.Reader)
}

// Field is one header field.
type Field struct{ Name, Value string }

// Response is a whole response. Its body is in a pooled buffer: nothing of it may be used after
// Release.
type Response struct {
	// Status is the final status code, 200 to 999 (interim responses are skipped).
	Status int
	// Body is decompressed.
	Body []byte
	// WireBytes is the size of the response as it was sent, including header and framing.
	WireBytes int64
	// Truncated says that the body was longer than MaxBody.
	Truncated bool

	message  fasthttp.Response
	client   *Client
	buffer   []byte
	caller   string
	reserved int64
}

// Header returns the value of the first field with that name, "" if there is none.
func (r *Response) Header(name string) string { return string(r.message.Header.Peek(name)) }

// Redirect returns where the response sends its reader, as written; "" if it is no redirect.
func (r *Response) Redirect() string {
	switch r.Status {
	case 301, 302, 303, 307, 308:
		return r.Header("Location")
	}
	return ""
}

// Release gives the buffers back. Call it only once.
func (r *Response) Release() {
	c := r.client
	c.held.give(r.caller, r.reserved)
	if cap(r.buffer) > keptBuffer {
		r.buffer = nil
	}
	r.message.Reset()
	r.Status, r.Body, r.WireBytes, r.Truncated = 0, nil, 0, false
	r.caller, r.reserved, r.buffer = "", 0, r.buffer[:0]
	c.responses.Put(r)
}

// forget uncounts the bytes of a response that nobody receives. Its buffers are in an unknown
// state, so they are not reused.
func (r *Response) forget() {
	r.client.held.give(r.caller, r.reserved)
	r.reserved = 0
}

// keptBuffer is the largest body buffer that is kept for reuse.
const keptBuffer = 1 << 20

// newResponse makes a response for a caller. Buffers beyond the caller's share are dropped.
func (c *Client) newResponse(caller string) *Response {
	r, ok := c.responses.Get().(*Response)
	if !ok {
		r = &Response{client: c}
	}
	r.caller = caller
	if !c.held.reserve(caller, int64(cap(r.buffer))) {
		r.buffer = nil
	}
	r.reserved = int64(cap(r.buffer))
	return r
}
