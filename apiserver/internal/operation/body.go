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

// Of a body that nobody read this much is read all the same, so that its sender gets to see the
// answer. But the answer does not wait long for it.
const (
	drainLimit = 256 << 10
	drainTime  = 500 * time.Millisecond
)

// pace is what the sender of a large or streamed body must keep up. Only the time that the server
// waits for it counts.
type pace struct {
	stall  time.Duration // longest wait for the next bytes
	window time.Duration // in each so much waiting
	least  int64         // at least so many bytes have come
}

// leastBytes are what a body has to bring in a second of waiting.
const leastBytes = upload.LeastPace / 8

// usualPace is the specification's rule for slow uploads: about 0.6 Mbit/s over a full minute.
func usualPace() pace {
	return pace{stall: time.Minute, window: time.Minute, least: leastBytes * 60}
}

// body meters the body of one request. The server streams bodies, enforces no limit, and does not
// notice a sender that goes away in the middle of a declared length.
type body struct {
	name     string // for its sender
	source   io.Reader
	declared int64 // -1: chunked
	taken    int64
	ended    bool
	// cutOff says, at the end of a chunked body, whether that was the connection's end and not the
	// body's last chunk. The two look alike to the reader. It is nil when that is not known.
	cutOff func() bool
	meter  *meter // nil: the server's time-out for the whole body is all
}

// meter holds a sender to a pace.
type meter struct {
	pace
	conn   net.Conn
	until  time.Time
	waited time.Duration // of this window
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
		_ = m.conn.SetReadDeadline(at) // a connection that is broken fails the read, too
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
			continue // the window's end, not the sender's
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

// Read implements io.Reader. A body that is shorter than declared, or lacks its last chunk, ends
// with io.ErrUnexpectedEOF.
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

// paced holds the sender to a pace, and to an end: whoever makes progress may take long.
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

// tooLarge refuses a body that is longer than it may be.
func (b *body) tooLarge(limit int64) error {
	return fault.New(fault.PayloadTooLarge, "%s may have at most %d bytes", b.name, limit)
}

// finish reads what is left, if that is little, and says whether the connection can carry another
// request.
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

// bodyFault makes a coded error of a failed read.
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

// Stream is a request's body as it arrives. It is read once it has been received.
type Stream struct {
	ContentType string // media type without parameters
	Length      int64  // bytes, as its sender says; -1: it does not
	within      func(d time.Duration)
	receive     func(ctx context.Context, refine Refine) (io.Reader, error)
	received    io.Reader
}

// Refine makes of a body what is to be kept of it. It may end with an error before the body does,
// which then is received no further.
type Refine = func(to io.Writer, body io.Reader) error

// Receive waits until the whole body has come, and keeps on disk what refine makes of it. A handler
// calls it before it takes anything that others wait for: how long a sender takes is the sender's.
// Its errors carry a code, but for those of refine.
func (s *Stream) Receive(ctx context.Context, refine Refine) (err error) {
	s.received, err = s.receive(ctx, refine)
	return err
}

// Within has the whole body come within a time from now: what comes later is request_timeout.
func (s *Stream) Within(d time.Duration) { s.within(d) }

// Read implements io.Reader, of what was kept.
func (s *Stream) Read(p []byte) (int, error) {
	if s.received == nil {
		return 0, errNotReceived
	}
	return s.received.Read(p)
}

var errNotReceived = errors.New("a streamed body is read before it is received")

// checkFraming refuses a request whose length is said twice: the server believes Transfer-Encoding,
// a proxy before it may believe Content-Length.
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

// recovered makes an error of a panic's value.
func recovered(value any, stack []byte) error {
	return fmt.Errorf("%w: %v\n%s", errPanic, value, stack)
}
