package chromium

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
)

// gate is the proxy of one page. All requests of the page come here, and leave through pkg/egress
// within the page's bounds or not at all.
type gate struct {
	client   *egress.Client
	reader   *reading.Guard
	caller   string
	via      *egress.Proxy
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	requests atomic.Int64 // left
	bytes    atomic.Int64 // left
	received atomic.Int64
	over     chan struct{} // closed when the page has exceeded its bytes
	overOnce sync.Once

	mu     sync.Mutex
	failed map[string]error // by host and port: why the connection failed
}

// errSpent says that a page exceeded one of its bounds.
var errSpent = errors.New("the page asks for too much")

func errTooMuch() error {
	return fault.Wrap(fault.PageTooLarge, errSpent, "The page sends and receives too much.")
}

func errTooMany() error {
	return fault.Wrap(fault.PageTooLarge, errSpent, "The page makes too many requests.")
}

// openGate listens on the loopback for one page of a caller.
func openGate(ctx context.Context, config *Config, caller string, via *egress.Proxy, requests int,
	bytes int64) (*gate, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("chromium: listen for a page's requests: %w", err)
	}
	g := &gate{client: config.Client, reader: config.Reader, caller: caller, via: via,
		listener: listener, over: make(chan struct{}), failed: map[string]error{}}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.requests.Store(int64(requests))
	g.bytes.Store(bytes)
	g.running.Go(g.accept)
	return g, nil
}

// refuseMore refuses new connections of the page; open ones go on.
func (g *gate) refuseMore() { g.requests.Store(0) }

func (g *gate) address() string { return g.listener.Addr().String() }

// close closes everything that the page still has open.
func (g *gate) close() {
	g.cancel()
	_ = g.listener.Close() // nothing can be lost
	g.running.Wait()
}

func (g *gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.running.Go(func() { g.guard(func() { g.serve(conn) }) })
	}
}

// guard runs code that reads a connection. A panic ends the connection.
func (g *gate) guard(read func()) {
	_ = g.reader.Run(reading.Page{URL: "a connection of the browser's"}, read)
}

// serve answers one connection of the browser, which ends with its first request.
func (g *gate) serve(conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(g.ctx, func() { _ = conn.Close() })
	defer stop()
	sent := &meter{Reader: conn, gate: g, sent: true}
	request, err := http.ReadRequest(bufio.NewReaderSize(sent, 16<<10))
	if err != nil {
		return
	}
	host, port := split(request)
	if g.requests.Add(-1) < 0 {
		g.note(host, port, errTooMany())
		return
	}
	to, err := g.client.Tunnel(g.ctx, g.caller, host, port, g.via)
	if err != nil {
		g.note(host, port, err)
		if request.Method == http.MethodConnect {
			_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		}
		return
	}
	defer to.Close()
	stopTo := context.AfterFunc(g.ctx, func() { _ = to.Close() })
	defer stopTo()
	if request.Method == http.MethodConnect {
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err == nil {
			g.join(conn, to, sent)
		}
		return
	}
	if err := g.forward(conn, to, request); err != nil {
		g.note(host, port, err)
	}
}

// split returns the target of a request. An invalid host fails in Tunnel.
func split(request *http.Request) (host string, port uint16) {
	authority, scheme := request.Host, "80"
	if request.Method == http.MethodConnect {
		scheme = "443"
	} else if request.URL.Host != "" {
		authority = request.URL.Host
	}
	host, text, err := net.SplitHostPort(authority)
	if err != nil {
		host, text = authority, scheme
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0
	}
	return strings.Trim(host, "[]"), uint16(number)
}

// forward makes one plain exchange.
func (g *gate) forward(conn, to net.Conn, request *http.Request) error {
	request.Header.Del("Proxy-Connection")
	request.Header.Del("Proxy-Authorization")
	request.Close = true
	if err := request.Write(to); err != nil {
		return fault.Wrap(fault.PageConnect, err, "The host took no request.")
	}
	metered := &meter{Reader: to, gate: g}
	answers := bufio.NewReaderSize(metered, 16<<10)
	response, err := http.ReadResponse(answers, request)
	for err == nil && response.StatusCode >= 100 && response.StatusCode < 200 &&
		response.StatusCode != http.StatusSwitchingProtocols {
		response, err = http.ReadResponse(answers, request)
	}
	switch {
	case err == nil:
	case metered.read == 0:
		return fault.Wrap(fault.PageConnect, err, "The host closed the connection "+
			"without an answer.")
	default:
		return fault.Wrap(fault.PageProtocol, err, "The answer is not valid HTTP.")
	}
	defer response.Body.Close()
	response.Close = true
	_ = response.Write(conn) // a response that breaks off breaks off for the page, too
	return metered.brokenTo(conn)
}

// join relays a tunnel until one side ends it; sent reads what the page sends.
func (g *gate) join(page, host net.Conn, sent *meter) {
	var ways sync.WaitGroup
	ways.Go(func() {
		_, _ = io.Copy(host, sent) // its end is the tunnel's end
		_ = host.Close()
	})
	ways.Go(func() {
		metered := &meter{Reader: host, gate: g}
		_, _ = io.Copy(page, metered)
		_ = metered.brokenTo(page) // the browser reports the error
		_ = page.Close()
	})
	ways.Wait()
}

// meter counts the bytes that a page receives or sends.
type meter struct {
	io.Reader
	gate *gate
	sent bool
	read int64 // on this connection
	err  error // why reading failed; nil after a regular end
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.read += int64(n)
	if !m.sent {
		m.gate.received.Add(int64(n))
	}
	switch {
	case m.gate.bytes.Add(-int64(n)) < 0:
		m.err = errTooMuch()
		m.gate.overOnce.Do(func() { close(m.gate.over) })
		return 0, m.err
	case err != nil && !errors.Is(err, io.EOF):
		m.err = fault.Wrap(fault.PageProtocol, err, "The answer broke off.")
	}
	return n, err
}

// brokenTo ends the browser's connection as the host's ended. After a plain close, a response
// without a length would look complete.
func (m *meter) brokenTo(conn net.Conn) error {
	if tcp, ok := conn.(*net.TCPConn); ok && m.err != nil {
		_ = tcp.SetLinger(0) // Close then sends a reset
	}
	return m.err
}

// note records the first reason why a host was not reached.
func (g *gate) note(host string, port uint16, err error) {
	key := net.JoinHostPort(host, strconv.Itoa(int(port)))
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, noted := g.failed[key]; !noted && len(g.failed) < maxNoted {
		g.failed[key] = err
	}
}

// maxNoted bounds the hosts of one page whose failures are recorded.
const maxNoted = 100

// reason returns why a canonical address was not reached, or nil.
func (g *gate) reason(url string) error {
	host, port := address.HostOf(url), "80"
	if strings.HasPrefix(url, "https:") {
		port = "443"
	}
	authority := strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://")
	authority, _, _ = strings.Cut(authority, "/")
	if _, own, err := net.SplitHostPort(authority); err == nil {
		port = own
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed[net.JoinHostPort(host, port)]
}
