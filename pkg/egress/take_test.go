package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"shoal.dev/shoal/pkg/fault"
)

// TestTake: a body may be read as it comes: completely, up to its limit, or in part. Its connection
// is only reused if nothing is left on it.
func TestTake(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=x")
		w.Header().Set("From", r.RemoteAddr)
		switch r.URL.Path {
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text) // fails if the client is gone
			_ = z.Close()
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "not here")
		case "/broken":
			w.Header().Set("Content-Length", fmt.Sprint(2*len(text)))
			_, _ = io.WriteString(w, text)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	defer server.Close()
	client := newClient(t, Config{})
	for _, c := range []struct {
		path     string
		max      int64
		reads    int // how far it reads; -1: to the end
		want     int
		body     string
		failed   bool // the reader gets an error
		code     fault.Code
		truncate bool
		cut      bool
	}{
		{path: "/plain", reads: -1, want: len(text)},
		{path: "/packed", reads: -1, want: len(text)},
		{path: "/plain", reads: 10, want: 10},
		{path: "/packed", reads: 0},
		{path: "/gone", reads: -1, body: "not here"},
		{path: "/plain", max: int64(len(text)), reads: -1, want: len(text)},
		{path: "/plain", max: int64(len(text)) - 1, reads: -1, want: len(text) - 1, failed: true,
			code: fault.PageTooLarge},
		{path: "/plain", max: 1_000, reads: -1, want: 1_000, failed: true, truncate: true,
			cut: true},
		{path: "/packed", max: 100_000, reads: -1, want: 100_000, failed: true, truncate: true,
			cut: true},
		{path: "/broken", reads: -1, want: len(text), failed: true, code: fault.PageProtocol},
	} {
		read, failure := 0, error(nil)
		response, err := client.Do(t.Context(), &Request{URL: server.URL + c.path, MaxBody: c.max,
			Truncate: c.truncate, Deadline: time.Now().Add(time.Minute),
			Take: func(contentType string, body io.Reader) {
				if contentType != "text/plain; charset=x" {
					t.Errorf("%s: type %q", c.path, contentType)
				}
				if c.reads >= 0 {
					body = io.LimitReader(body, int64(c.reads))
				}
				all, err := io.ReadAll(body)
				if read, failure = len(all), err; string(all) != text[:len(all)] {
					t.Errorf("%s: other bytes", c.path)
				}
				if n, again := body.Read(make([]byte, 1)); n != 0 ||
					err != nil && !errors.Is(again, err) {
					t.Errorf("%s: behind its end it has %d bytes, %v", c.path, n, again)
				}
			}})
		if read != c.want || (failure != nil) != c.failed || fault.CodeOf(err) != c.code {
			t.Errorf("%+v: %d bytes, %v, %v", c, read, failure, err)
		}
		if err != nil {
			continue
		}
		if string(response.Body) != c.body || response.Truncated != c.cut {
			t.Errorf("%+v: body %q, truncated %v", c, response.Body, response.Truncated)
		}
		response.Release()
	}
}

// panicking is a connection that panics before the response ends.
type panicking struct {
	net.Conn
	answer io.Reader
	closed atomic.Bool
}

func (p *panicking) Read(to []byte) (int, error) {
	n, err := p.answer.Read(to)
	if err != nil {
		panic("a reader's")
	}
	return n, nil
}

func (p *panicking) Close() error {
	p.closed.Store(true)
	return p.Conn.Close()
}

// TestPanicOnTheWayIn: if reading a response panics, no counted bytes and no connection are left.
func TestPanicOnTheWayIn(t *testing.T) {
	url, _ := script(t, func(net.Conn, string) {})
	c := newClient(t, Config{})
	broken := &panicking{answer: strings.NewReader(
		"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + strings.Repeat("x", 50_000))}
	connect := c.connect
	c.connect = func(ctx context.Context, to netip.AddrPort, by time.Time) (_ net.Conn, err error) {
		broken.Conn, err = connect(ctx, to, by)
		return broken, err
	}
	defer func() { _ = broken.Conn.Close() }() // the server waits for its end
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is hidden")
			}
		}()
		_, _ = c.Do(t.Context(), &Request{URL: url, Caller: "a"})
	}()
	if held := c.held.total(); held != 0 || len(c.held.of) != 0 || !broken.closed.Load() {
		t.Errorf("%d bytes are held, closed %v", held, broken.closed.Load())
	}
}
