package operation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/upload"
)

// drainLimit and drainTime bound what finish reads of an unread body, so that its sender gets to
// see the answer.
const (
	drainLimit = 256 << 10
	drainTime  = 500 * time.Millisecond
)

// pace is the rate that the sender of a large or streamed body must keep up. Only the time that the
// server spends waiting counts.
type pace struct {
	stall  time.Duration // longest wait for the next bytes
	window time.Duration // the waiting time over which bytes are counted
	least  int64         // the fewest bytes that must come in a window
}

// leastBytes is how many bytes of a body must come per second of waiting.
const leastBytes = upload.LeastPace / 8

// usualPace is the specification's rule for slow uploads: about 0.6 Mbit/s over a full minute.
func usualPace() pace {
	return pace{stall: time.Minute, window: time.Minute, least: leastBytes * 60}
}

// body meters the body of one request. The server streams bodies without a limit. It does not
// notice a sender that goes away before the declared length has come.
type body struct {
	name     string // as errors to the sender call it
	source   io.Reader
	declared int64 // -1: chunked
	taken    int64
	ended    bool
	// cutOff says, at the end of a chunked body, whether the connection ended before the last
	// chunk. The reader cannot tell the two apart. It is nil when that is not known.
	cutOff func() bool
	meter  *meter // nil: only the server's time-out for the whole body applies
}

// meter enforces a pace on a sender.
type meter struct {
	pace
	conn   net.Conn
	until  time.Time
	waited time.Duration // in this window
	came   int64         // in this window
}

var errTooSlow = fault.New(fault.UploadTooSlow, "the body came slower than %d bytes a second "+
	"for a minute", leastBytes)

// read reads within the pace.
func (m *meter) read(from io.Reader, p []byte) (int, error) {
	for {
		start := time.Now()
		at := start.Add(min(m.stall, m.window-m.waited))
		if m.until.Before(at) {
			at = m.until
		}
		_ = m.conn.SetReadDeadline(at) // a broken connection fails the read below
		n, err := from.Read(p)
		m.waited += time.Since(start)
		m.came += int64(n)
		full := m.waited >= m.window
		if full && m.came < m.least && !errors.Is(err, io.EOF) {
			return n, errTooSlow
		}
		if full {
			m.waited, m.came = 0, 0
		}
		if n == 0 && full && isTimeout(err) && time.Now().Before(m.until) {
			continue // the window ended, the sender is not late
		}
		return n, err
	}
}

func newBody(rc *fasthttp.RequestCtx) *body {
	b := &body{name: "the body", declared: int64(rc.Request.Header.ContentLength()), ended: true}
	if begun, ok := rc.UserValue(begunKey).(*Begun); ok {
		b.source, b.ended = begun, false
	} else if rc.Request.IsBodyStream() && b.declared != 0 {
		b.source, b.ended = rc.RequestBodyStream(), false
	}
	if conn, ok := rc.Conn().(interface{ SenderClosed() bool }); ok {
		b.cutOff = conn.SenderClosed
	}
	return b
}

// Read implements io.Reader. It ends with io.ErrUnexpectedEOF if the body is shorter than declared
// or lacks its last chunk.
func (b *body) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	read := func(p []byte) (int, error) { return b.source.Read(p) }
	if b.meter != nil {
		read = func(p []byte) (int, error) { return b.meter.read(b.source, p) }
	}
	n, err := read(p)
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

// paced enforces a pace, and a final deadline. A sender that makes progress may take until then.
func (b *body) paced(conn net.Conn, p pace, until time.Time) {
	b.meter = &meter{pace: p, conn: conn, until: until}
}

// all reads a body of at most limit bytes.
func (b *body) all(limit int) ([]byte, error) {
	if b.declared > int64(limit) {
		return nil, b.tooLarge(int64(limit))
	}
	var whole bytes.Buffer
	n, err := io.Copy(&whole, io.LimitReader(b, int64(limit)+1))
	if err != nil {
		return nil, bodyFault(err)
	}
	if n > int64(limit) {
		return nil, b.tooLarge(int64(limit))
	}
	return whole.Bytes(), nil
}

// tooLarge returns the error for a body longer than limit.
func (b *body) tooLarge(limit int64) error {
	return fault.New(fault.PayloadTooLarge, "%s may have at most %d bytes", b.name, limit)
}

// finish reads what is left of the body, if that is little. It says whether the connection can
// carry another request.
func (b *body) finish(conn net.Conn) (reusable bool) {
	if b.ended {
		return true
	}
	b.meter = nil
	begun, ok := b.source.(*Begun)
	if waits := ok && !begun.read; waits || b.declared-b.taken > drainLimit {
		return false
	}
	if err := conn.SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, b, drainLimit)
	return errors.Is(err, io.EOF) && b.ended
}

// bodyFault turns a failed read into a coded error.
func bodyFault(err error) error {
	if coded := (*fault.Error)(nil); errors.As(err, &coded) {
		return err
	}
	if isTimeout(err) {
		return fault.Wrap(fault.UploadTooSlow, err, "the body took too long")
	}
	return fault.Wrap(fault.InvalidBody, err, "the body broke off")
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Stream is a request's body as it arrives. It can be read once Receive has returned.
type Stream struct {
	ContentType string // media type without parameters
	Length      int64  // bytes, as the sender declares; -1: not declared
	within      func(d time.Duration)
	receive     func(ctx context.Context, refine Refine) (spooled, error)
	received    spooled
}

// spooled is what was kept of a body on disk.
type spooled interface {
	io.Reader
	io.ReaderAt
}

// Refine writes to the first argument what is to be kept of a body. If it returns an error before
// the body ends, the rest is not received.
type Refine = func(to io.Writer, body io.Reader) error

// Receive waits until the whole body has come, and keeps on disk what refine writes. Call it before
// taking anything that others wait for, since the sender decides how long it takes. Its errors
// carry a code, except those of refine.
func (s *Stream) Receive(ctx context.Context, refine Refine) (err error) {
	s.received, err = s.receive(ctx, refine)
	return err
}

// Within sets a deadline for the whole body. A later body is refused with request_timeout.
func (s *Stream) Within(d time.Duration) { s.within(d) }

// Read implements io.Reader over what Receive has kept.
func (s *Stream) Read(p []byte) (int, error) {
	if s.received == nil {
		return 0, errNotReceived
	}
	return s.received.Read(p)
}

// ReadAt implements io.ReaderAt over the same.
func (s *Stream) ReadAt(p []byte, off int64) (int, error) {
	if s.received == nil {
		return 0, errNotReceived
	}
	return s.received.ReadAt(p, off)
}

var errNotReceived = errors.New("a streamed body is read before it is received")

// checkFraming refuses a request that declares its length twice. The server believes
// Transfer-Encoding, but a proxy before it may believe Content-Length.
func checkFraming(h *fasthttp.RequestHeader) error {
	if h.ContentLength() != -1 {
		return nil
	}
	for line := range bytes.Lines(h.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
			return fault.Invalid(fault.InvalidRequest, "Content-Length",
				"must not stand beside Transfer-Encoding")
		}
	}
	return nil
}

var errPanic = errors.New("panic")

// recovered makes an error of a recovered panic's value.
func recovered(value any, stack []byte) error {
	return fmt.Errorf("%w: %v\n%s", errPanic, value, stack)
}
