package egress

import (
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

// Request is what to ask for.
type Request struct {
	// Method is GET when empty.
	Method string
	// URL is http or https; anything that Canonical takes.
	URL string
	// Header lists further fields. Host, Content-Length, Accept-Encoding and Connection are the
	// client's own.
	Header []Field
	// Body is sent with its Content-Length when it is not empty, or when the method is not GET or
	// HEAD.
	Body []byte
	// Deadline ends the exchange; the client's Timeout from now when zero.
	Deadline time.Time
	// MaxBody bounds the answer's body in bytes, as sent and as decompressed; the client's when 0.
	MaxBody int64
	// Caller is whom the answer is for: the bodies of one are held within a share of MaxBuffered.
	// Their names are looked up within a share of what may be at a time. "": nobody who has to
	// share.
	Caller string
	// Proxy is the way to the host; nil: straight.
	Proxy *Proxy
	// Private says that the request holds what nobody else may ever read. Its connection is not one
	// that a public request opened. Its keys are exchanged in a way that is taken to withstand
	// quantum computers, where the host can.
	Private bool
	// Truncate keeps the first MaxBody bytes of a longer body, where it would be an error
	// otherwise.
	Truncate bool
	// Take reads the body of a 2xx as it comes, decompressed, and none of it is held: Response.Body
	// is empty then. Of a body that is too long it reads MaxBody bytes and an error, of one that
	// breaks off what came and an error. Who reads no further has the rest left alone.
	Take func(contentType string, body io.Reader)
}

// Field is one header field.
type Field struct{ Name, Value string }

// Response is a whole answer. Its body lives in a pooled buffer: nothing of it may be used after
// Release.
type Response struct {
	// Status is the final status code, 200 to 999 (interim answers are passed over).
	Status int
	// Body is decompressed.
	Body []byte
	// WireBytes counts the answer as it was sent, header and framing included.
	WireBytes int64
	// Truncated says that the body was longer than MaxBody.
	Truncated bool

	message  fasthttp.Response
	client   *Client
	buffer   []byte
	caller   string
	reserved int64
}

// Header is the value of the first field of that name, "" when there is none.
func (r *Response) Header(name string) string { return string(r.message.Header.Peek(name)) }

// Release gives the buffers back. It may be called once.
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

// forget gives back what is counted of a response that nobody gets. Its buffers are in a state that
// nobody knows, so none is used again.
func (r *Response) forget() {
	r.client.held.give(r.caller, r.reserved)
	r.reserved = 0
}

// keptBuffer is the largest body buffer that is kept for the next answer.
const keptBuffer = 1 << 20

// newResponse makes a response to a caller. A buffer that is more than the caller's share is left.
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
