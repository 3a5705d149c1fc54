package egress

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"shoal.dev/shoal/pkg/fault"
)

// chunked is the message parser's length for a chunked body.
const chunked = -1

// errNoMemory says that all bodies together exceeded MaxBuffered, or a caller exceeded its share.
var errNoMemory = errors.New("too many bytes are held in bodies")

// readBody reads the decompressed body into the response's buffer. It reports whether the stream
// was read to its end.
func (c *Client) readBody(conn *conn, stream io.Reader, resp *Response, max int64,
	req *Request) (bool, error) {
	truncate := req.Truncate
	length := int64(resp.message.Header.ContentLength())
	if length > max && !truncate && (req.Take == nil || resp.Status > 299) {
		return false, fault.New(fault.PageTooLarge, "The body has %d bytes; %d are allowed.",
			length, max)
	}
	source := &limited{from: stream, left: max}
	decoder, giveBack, err := c.decoders.decoder(string(resp.message.Header.ContentEncoding()),
		source)
	if err == nil {
		if req.Take != nil && resp.Status <= 299 {
			err = handOver(decoder, max, func(body io.Reader) {
				req.Take(string(resp.message.Header.ContentType()), body)
			})
		} else {
			err = c.readAll(resp, decoder, length, max)
		}
		giveBack()
	}
	resp.Body = resp.buffer
	switch {
	case errors.Is(err, errLeft):
		return false, nil
	case err == nil:
		whole := source.atEnd()
		// The stream takes a connection's end between two chunks for the end of the body.
		if length == chunked && errors.Is(conn.err, io.EOF) {
			return false, answerError(conn, io.ErrUnexpectedEOF)
		}
		return whole, nil
	case errors.Is(err, errNoMemory):
		return false, fault.Wrap(fault.Unavailable, err, "Too much is being read at the moment.")
	case errors.Is(err, errTooLarge) || errors.Is(conn.err, errTooLarge) || source.spent():
		if truncate {
			resp.Truncated = true
			return false, nil
		}
		return false, fault.Wrap(fault.PageTooLarge, err, "The body is larger than %d bytes.", max)
	case source.err != nil:
		return false, answerError(conn, source.err)
	}
	return false, fault.Wrap(fault.PageDecompression, err, "The body cannot be decompressed.")
}

// errLeft says that the reader of a body left the rest unread.
var errLeft = errors.New("the body was not read to its end")

// handOver lets take read a body, up to max bytes of it.
func handOver(from io.Reader, max int64, take func(io.Reader)) error {
	body := &handed{limited: limited{from: from, left: max}}
	take(body)
	switch {
	case body.err == nil:
		return errLeft
	case errors.Is(body.err, io.EOF):
		return nil
	}
	return body.err
}

// handed is a body that somebody else reads; err is the error that ended it.
type handed struct {
	limited
	err error
}

// Read implements io.Reader. It repeats the first error.
func (h *handed) Read(p []byte) (int, error) {
	if h.err != nil {
		return 0, h.err
	}
	n, err := h.limited.Read(p)
	h.err = err
	return n, err
}

// Initial sizes of a body buffer: the default, and the most that a claimed length can request.
const (
	firstBuffer   = 16 << 10
	trustedLength = 128 << 10
)

// readAll fills the response's buffer up to max bytes, growing it as bytes arrive.
func (c *Client) readAll(resp *Response, from io.Reader, length, max int64) error {
	want := int64(firstBuffer)
	if length >= 0 {
		want = min(length+1, trustedLength)
	}
	if err := c.grow(resp, min(want, max+1)); err != nil {
		return err
	}
	for {
		n, err := from.Read(resp.buffer[len(resp.buffer):cap(resp.buffer)])
		resp.buffer = resp.buffer[:len(resp.buffer)+n]
		if int64(len(resp.buffer)) > max {
			resp.buffer = resp.buffer[:max]
			return errTooLarge
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(resp.buffer) == cap(resp.buffer) {
			if err := c.grow(resp, min(2*int64(cap(resp.buffer)), max+1)); err != nil {
				return err
			}
		}
	}
}

// grow makes the buffer hold size bytes, within MaxBuffered for all responses and the caller's
// share.
func (c *Client) grow(resp *Response, size int64) error {
	more := size - int64(cap(resp.buffer))
	if more <= 0 {
		return nil
	}
	if !c.held.reserve(resp.caller, more) {
		return errNoMemory
	}
	resp.reserved += more
	buffer := make([]byte, len(resp.buffer), size)
	copy(buffer, resp.buffer)
	resp.buffer = buffer
	return nil
}

// limited passes on at most left bytes of a body as it was sent.
type limited struct {
	from io.Reader
	left int64
	err  error // the last failure other than the end
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, errTooLarge
	}
	// one byte more distinguishes a body that ends here from a longer one
	p = p[:min(int64(len(p)), l.left+1)]
	n, err := l.from.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n - 1, errTooLarge
	}
	if err != nil && err != io.EOF {
		l.err = err
	}
	return n, err
}

// spent reports that the body was longer than allowed.
func (l *limited) spent() bool { return l.left < 0 }

// atEnd reads the end of the body's framing and reports whether nothing else came.
func (l *limited) atEnd() bool {
	var rest [1]byte
	n, err := l.Read(rest[:])
	return n == 0 && errors.Is(err, io.EOF)
}

// decoders keeps decompressors for reuse: each has tables and windows of many kilobytes.
type decoders struct{ gzip, zlib, flate, brotli, zstd, buffered sync.Pool }

// maxWindow is the largest window that a zstd body may require (RFC 9659).
const maxWindow = 8 << 20

var errUnknownCoding = errors.New("unknown content coding")

// decoder returns the decompressed source, and a function that gives the decompressor back.
func (d *decoders) decoder(coding string, source io.Reader) (io.Reader, func(), error) {
	if coding = codingOf(coding); coding == "" {
		return source, func() {}, nil
	}
	buffered, ok := d.buffered.Get().(*bufio.Reader)
	if !ok {
		buffered = bufio.NewReaderSize(nil, 8<<10)
	}
	buffered.Reset(source)
	if _, err := buffered.Peek(1); err == io.EOF {
		// an empty body is empty in any coding
		return buffered, func() { d.buffered.Put(buffered) }, nil
	}
	decoder, giveBack, err := d.start(coding, buffered)
	return decoder, func() {
		giveBack()
		buffered.Reset(nil)
		d.buffered.Put(buffered)
	}, err
}

// noCodings are the values that servers write although they mean no coding, and one for the framing
// of storage uploads. Browsers accept them, too.
var noCodings = []string{"", "identity", "none", "binary", "8bit", "utf-8", "utf8", "iso-8859-1",
	"aws-chunked"}

// codingOf returns the coding that a Content-Encoding names, "" for none.
func codingOf(header string) string {
	switch header { // the usual spellings
	case "", "gzip", "br", "deflate", "zstd":
		return header
	}
	header = strings.ToLower(strings.TrimSpace(header))
	var codings []string
	for coding := range strings.SplitSeq(header, ",") {
		if coding = strings.TrimSpace(coding); !slices.Contains(noCodings, coding) {
			codings = append(codings, coding)
		}
	}
	switch len(codings) {
	case 0:
		return ""
	case 1:
		return codings[0]
	}
	return header // compressed twice: not supported
}

// members reads the members of a gzip body, and ignores whatever follows them. An example are blank
// lines of a script that continues after its output was compressed.
type members struct {
	gzip.Reader
	from *bufio.Reader
}

func (m *members) beginMember() error {
	err := m.Reset(m.from)
	m.Multistream(false)
	return err
}

func (m *members) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if head, _ := m.from.Peek(2); string(head) != "\x1f\x8b" {
		return n, io.EOF
	}
	return n, m.beginMember()
}

// start takes a decompressor from its pool, or makes one, and lets it read the beginning.
func (d *decoders) start(coding string, r *bufio.Reader) (decoder io.Reader, giveBack func(),
	err error) {
	none := func() {}
	switch coding {
	case "gzip", "x-gzip":
		z, ok := d.gzip.Get().(*members)
		if !ok {
			z = new(members)
		}
		z.from = r
		return z, func() { z.from = nil; d.gzip.Put(z) }, z.beginMember()
	case "deflate":
		// Half of the web's "deflate" has zlib's framing, as it should; half has none.
		if head, _ := r.Peek(2); len(head) == 2 && head[0]&0x0f == 8 &&
			(int(head[0])<<8|int(head[1]))%31 == 0 {
			return d.startZlib(r)
		}
		z, ok := d.flate.Get().(io.ReadCloser)
		if !ok {
			z = flate.NewReader(r)
		}
		return z, func() { d.flate.Put(z) }, z.(flate.Resetter).Reset(r, nil)
	case "br":
		z, ok := d.brotli.Get().(*brotli.Reader)
		if !ok {
			z = brotli.NewReader(r)
		}
		return z, func() { d.brotli.Put(z) }, z.Reset(r)
	case "zstd":
		z, ok := d.zstd.Get().(*zstd.Decoder)
		if !ok {
			z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, none, err
			}
		}
		return z, func() { _ = z.Reset(nil); d.zstd.Put(z) }, z.Reset(r)
	}
	return nil, none, errUnknownCoding
}

func (d *decoders) startZlib(r *bufio.Reader) (io.Reader, func(), error) {
	if z, ok := d.zlib.Get().(io.ReadCloser); ok {
		return z, func() { d.zlib.Put(z) }, z.(zlib.Resetter).Reset(r, nil)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, func() {}, err
	}
	return z, func() { d.zlib.Put(z) }, nil
}
