package apiserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/forwarded"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/telemetry"
)

// arriving hands out connections from the addresses in from.
type arriving struct {
	net.Listener
	from []string
	all  []*arrived
}

type arrived struct {
	net.Conn
	from   string
	wrote  bytes.Buffer
	closed bool
}

func (a *arriving) Accept() (net.Conn, error) {
	if len(a.from) == 0 {
		return nil, net.ErrClosed
	}
	c := &arrived{from: a.from[0]}
	a.from, a.all = a.from[1:], append(a.all, c)
	return c, nil
}

func (a *arrived) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}
func (a *arrived) SetWriteDeadline(time.Time) error { return nil }
func (a *arrived) Write(p []byte) (int, error)      { return a.wrote.Write(p) }
func (a *arrived) Close() error                     { a.closed = true; return nil }

// accept accepts one more connection from an address, or returns nil if it is refused with want.
func accept(t *testing.T, l *listener, inner *arriving, from string, want int) net.Conn {
	t.Helper()
	inner.from = []string{from}
	c, err := l.Accept()
	last := inner.all[len(inner.all)-1]
	if err == nil {
		return c
	}
	if !errors.Is(err, net.ErrClosed) || !last.closed {
		t.Fatalf("%v, closed %v", err, last.closed)
	}
	answer, err := http.ReadResponse(bufio.NewReader(&last.wrote), nil)
	if err != nil || answer.StatusCode != want ||
		answer.Header.Get("Retry-After") == "" || !answer.Close {
		t.Errorf("the refused one reads %v %v", answer, err)
	}
	return nil
}

// Many addresses may take all connections of a listener. The next connection is then refused.
func TestConnectionsMayAllBeTaken(t *testing.T) {
	metrics := newMetrics(telemetry.NewMetrics())
	inner := &arriving{}
	l := listen(inner, callers{logger: slog.New(slog.DiscardHandler), refused: metrics.refused},
		clock.System{})
	var last net.Conn
	for i := range maxConnections {
		last = accept(t, l, inner, fmt.Sprintf("10.%d.%d.1:80", i/256, i%256), 0)
		if last == nil {
			t.Fatalf("number %d is refused", i)
		}
	}
	const full = http.StatusServiceUnavailable
	if accept(t, l, inner, "192.0.2.1:9", full) != nil {
		t.Error("there is one more than there may be")
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	if accept(t, l, inner, "192.0.2.1:9", full) == nil ||
		accept(t, l, inner, "192.0.2.1:9", full) != nil {
		t.Error("one that ends leaves one place")
	}
}

// One address cannot take all connections. Proxies may have any number, and closed connections free
// their places.
func TestAnAddressHasAShareOfTheConnections(t *testing.T) {
	const many = http.StatusTooManyRequests
	var log strings.Builder
	metrics := newMetrics(telemetry.NewMetrics())
	inner := &arriving{}
	l := listen(inner, callers{proxies: forwarded.Proxies{netip.MustParsePrefix("10.0.0.0/8")},
		logger: slog.New(slog.NewTextHandler(&log, nil)), refused: metrics.refused},
		clock.System{})
	var first net.Conn
	for i := range maxOfAddress {
		for _, from := range []string{"192.0.2.1:%d", "[2001:db8::%x]:80", "10.0.0.1:%d",
			"10.0.0.1:1%d"} {
			c := accept(t, l, inner, fmt.Sprintf(from, i+1), many)
			if c == nil {
				t.Fatalf("%s: number %d is refused", from, i)
			}
			if first == nil {
				first = c
			}
		}
	}
	for from, fits := range map[string]bool{"192.0.2.1:9": false, "[::ffff:192.0.2.1]:9": false,
		"[2001:db8::ffff:1]:9": false,
		"[2001:db8:0:1::1]:9":  true, "192.0.2.2:9": true, "10.0.0.1:9": true} {
		if (accept(t, l, inner, from, many) != nil) != fits {
			t.Errorf("%s: want %v", from, fits)
		}
	}
	if !strings.Contains(log.String(), "address=192.0.2.1") ||
		!strings.Contains(log.String(), "--trusted-proxies") {
		t.Errorf("the log says %q", log.String())
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	if accept(t, l, inner, "192.0.2.1:9", many) == nil ||
		accept(t, l, inner, "192.0.2.1:9", many) != nil {
		t.Error("a connection that ends, twice over, leaves one place")
	}
	l.end(func(*conn) bool { return true })
	if len(l.held) != 0 || len(l.open) != 0 {
		t.Errorf("%d addresses and %d connections are remembered", len(l.held), len(l.open))
	}
}
