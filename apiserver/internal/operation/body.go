package operation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/pkg/fault"
)

// Of a body that nobody read this much is read all the same, so that its sender gets to see the answer; but the answer
// does not wait long for it.
const (
	drainLimit = 256 << 10
	drainTime  = 500 * time.Millisecond
)

// stallTime is how long the sender of a streamed body may pause.
const stallTime = 30 * time.Second

// body meters the body of one request: the server streams bodies, enforces no limit, and does not notice a sender that
// goes away in the middle of a declared length.
type body struct {
	source   io.Reader
	declared int64 // -1: chunked
	taken    int64
	ended    bool
	// cutOff says, at the end of a chunked body, whether that was the connection's end and not the body's last chunk,
	// which look alike to the reader; nil: it is not known.
	cutOff func() bool
	pace   func() // called before each read; nil: the server's time-out for the whole request is all
}

func newBody(rc *fasthttp.RequestCtx) *body {
	b := &body{declared: int64(rc.Request.Header.ContentLength()), ended: true}
	if rc.Request.IsBodyStream() && b.declared != 0 {
		b.source, b.ended = rc.RequestBodyStream(), false
	}
	if conn, ok := rc.Conn().(interface{ SenderClosed() bool }); ok {
		b.cutOff = conn.SenderClosed
	}
	return b
}

// Read implements io.Reader. A body that is shorter than declared, or lacks its last chunk, ends with
// io.ErrUnexpectedEOF.
func (b *body) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.pace != nil {
		b.pace()
	}
	n, err := b.source.Read(p)
	b.taken += int64(n)
	if errors.Is(err, io.EOF) {
		if b.declared >= 0 && b.taken < b.declared {
			return n, io.ErrUnexpectedEOF
		}
		if b.declared < 0 && b.cutOff != nil && b.cutOff() {
			return n, io.ErrUnexpectedEOF
		}
		b.ended = true
	}
	return n, err
}

// paced makes every read end within stall, and none end after until: whoever makes progress may take long.
func (b *body) paced(conn net.Conn, stall time.Duration, until time.Time) {
	b.pace = func() {
		at := time.Now().Add(stall)
		if until.Before(at) {
			at = until
		}
		_ = conn.SetReadDeadline(at) // a connection that is broken fails the read, too
	}
}

// all reads a body of at most limit bytes.
func (b *body) all(limit int) ([]byte, error) {
	if b.declared > int64(limit) {
		return nil, fault.New(fault.PayloadTooLarge, "the body may have at most %d bytes", limit)
	}
	var whole bytes.Buffer
	n, err := io.Copy(&whole, io.LimitReader(b, int64(limit)+1))
	if err != nil {
		return nil, bodyFault(err)
	}
	if n > int64(limit) {
		return nil, fault.New(fault.PayloadTooLarge, "the body may have at most %d bytes", limit)
	}
	return whole.Bytes(), nil
}

// finish reads what is left, if that is little, and says whether the connection can carry another request.
func (b *body) finish(conn net.Conn) (reusable bool) {
	if b.ended {
		return true
	}
	b.pace = nil
	if err := conn.SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, b, drainLimit)
	return errors.Is(err, io.EOF) && b.ended
}

// bodyFault makes a coded error of a failed read.
func bodyFault(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fault.Wrap(fault.UploadTooSlow, err, "the body took too long")
	}
	return fault.Wrap(fault.InvalidBody, err, "the body broke off")
}

// Stream is a request's body as it arrives.
type Stream struct {
	ContentType string // media type without parameters
	body        *body
}

// Read implements io.Reader; its errors carry a code.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = bodyFault(err)
	}
	return n, err
}

// NewStream is a stream over r, for tests of handlers.
func NewStream(contentType string, r io.Reader) *Stream {
	return &Stream{ContentType: contentType, body: &body{source: r, declared: -1}}
}

// checkFraming refuses a request whose length is said twice: the server believes Transfer-Encoding, a proxy before it
// may believe Content-Length.
func checkFraming(h *fasthttp.RequestHeader) error {
	if h.ContentLength() != -1 {
		return nil
	}
	for line := range bytes.Lines(h.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			return fault.Invalid(fault.InvalidRequest, "Content-Length", "must not stand beside Transfer-Encoding")
		}
	}
	return nil
}

var errPanic = errors.New("panic")

// recovered makes an error of a panic's value.
func recovered(value any, stack []byte) error {
	return fmt.Errorf("%w: %v\n%s", errPanic, value, stack)
}
