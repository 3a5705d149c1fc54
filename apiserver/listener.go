package apiserver

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/retry"
)

// stallTimeout is how long a client may take to accept a write of an answer or a stream.
const stallTimeout = 30 * time.Second

// A refused client that still sends gets to see its answer: the server reads and drops what it
// sends, within these bounds.
const (
	lingerTime  = 30 * time.Second // in total
	lingerPause = 2 * time.Second  // without a byte
	lingerBytes = 128 << 20
)

// listener tracks its open connections, so that a stop can end those that do not end on their own.
// It bounds how long each write may take. The HTTP server's own write time-out would also end
// healthy streams.
type listener struct {
	net.Listener
	operators bool        // its callers are operators
	secure    *tls.Config // nil: connections are in the clear

	callers callers
	clock   clock.Clock
	ended   chan struct{} // closed with the listener

	mu     sync.Mutex
	open   map[*conn]struct{}
	held   map[string]int // number of counted connections by holder
	closed bool
}

func listen(l net.Listener, callers callers, clock clock.Clock) *listener {
	return &listener{Listener: l, callers: callers, clock: clock, ended: make(chan struct{}),
		open: map[*conn]struct{}{}, held: map[string]int{}}
}

// acceptAgain is the pause after a failed Accept. warnEvery is how often such failures are logged.
var acceptAgain = retry.Backoff{First: 5 * time.Millisecond, Most: time.Second}

const warnEvery = time.Minute

// passes reports whether an error of Accept is temporary. Either the process or the system had no
// room for a connection, or the client was gone again.
func passes(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// take accepts the next connection. It retries temporary errors, which must not end the server.
func (l *listener) take() (net.Conn, error) {
	var warned time.Time
	for failures := 1; ; failures++ {
		accepted, err := l.Listener.Accept()
		if err == nil || !passes(err) {
			return accepted, err
		}
		if now := l.clock.Now(); failures == 1 || now.Sub(warned) >= warnEvery {
			warned = now
			l.callers.logger.Warn("a connection could not be taken", "error", err)
		}
		select {
		case <-l.clock.After(acceptAgain.After(failures)):
		case <-l.ended:
			return nil, net.ErrClosed
		}
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.take()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: secured(accepted, l.secure), raw: accepted, listener: l,
			holder: l.callers.holder(accepted.RemoteAddr())}
		switch refused, err := l.admit(c); {
		case err != nil:
			return nil, errors.Join(err, accepted.Close())
		case refused == nil:
			return c, nil
		default:
			l.callers.refuse(accepted, c.holder, refused, l.secure == nil)
		}
	}
}

// admit counts a connection. It returns a refusal if the holder has its share already, or if the
// listener is full.
func (l *listener) admit(c *conn) (refused *fault.Error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, net.ErrClosed
	case c.holder != "" && l.held[c.holder] >= maxOfAddress:
		return errManyConnections, nil
	case len(l.open) >= maxConnections:
		return errFull, nil
	case c.holder != "":
		l.held[c.holder]++
	}
	l.open[c] = struct{}{}
	return nil, nil
}

// forget removes a connection from the count. Further calls do nothing.
func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, counted := l.open[c]; !counted {
		return
	}
	delete(l.open, c)
	if c.holder == "" {
		return
	}
	if l.held[c.holder]--; l.held[c.holder] == 0 {
		delete(l.held, c.holder)
	}
}

// Close implements net.Listener. It may be called more than once.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.ended)
	return l.Listener.Close()
}

// follow records whether the server is busy with a connection.
func follow(c net.Conn, state fasthttp.ConnState) {
	if own, ok := c.(*conn); ok {
		own.busy.Store(state == fasthttp.StateActive)
	}
}

// end closes the connections that which selects.
func (l *listener) end(which func(*conn) bool) {
	l.mu.Lock()
	var conns []*conn
	for c := range l.open {
		if which(c) {
			conns = append(conns, c)
		}
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.listener.forget(c)
		_ = c.raw.Close() // TLS would wait for its close alert to be sent
	}
}

// listeners are all listeners of one server.
type listeners []*listener

// serve serves on every listener until all are closed or one fails. It then sends the joined errors
// on the channel.
func (all listeners) serve(server *fasthttp.Server) <-chan error {
	served := make(chan error, 1)
	failed := make(chan error, len(all))
	for _, l := range all {
		go func() {
			err := server.Serve(l)
			_ = all.close() // one failure ends all
			failed <- err
		}()
	}
	go func() {
		var err error
		for range all {
			err = errors.Join(err, <-failed)
		}
		served <- err
	}()
	return served
}

// close closes all listeners. It may be called more than once.
func (all listeners) close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// end closes the connections of all listeners that which selects.
func (all listeners) end(which func(*conn) bool) {
	for _, l := range all {
		l.end(which)
	}
}

// conn is a client's connection.
type conn struct {
	net.Conn
	raw      net.Conn // the connection under TLS; the same as Conn in the clear
	listener *listener
	holder   string      // whose limit it counts against, "" for nobody's
	busy     atomic.Bool // according to the server
	asked    atomic.Bool // something has been read
	ended    atomic.Bool // the client's end of stream has been read
	lingers  atomic.Bool // Close lets the client see the answer first

	begun *operation.Begun // a call that waits for its body; nil: none
}

// idle reports whether the connection waits for a request. The server counts a connection that has
// never sent a byte as busy.
func (c *conn) idle() bool { return !c.busy.Load() || !c.asked.Load() }

// Secure reports whether the connection is encrypted.
func (c *conn) Secure() bool { return c.listener.secure != nil }

// SenderClosed reports whether the client's end of stream has been read.
func (c *conn) SenderClosed() bool { return c.ended.Load() }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.asked.Store(true)
	}
	switch {
	case errors.Is(err, io.EOF):
		c.ended.Store(true)
	case err != nil && c.listener.secure != nil && !c.asked.Load():
		httpsOnly(err)
	}
	return n, err
}

// goOn continues a call that waits for its body. err says why the body does not arrive.
func (c *conn) goOn(err error) (begun bool) {
	b := c.begun
	if c.begun = nil; b != nil {
		b.Continue(err)
	}
	return b != nil
}

// Write implements net.Conn. If the client cannot be asked for its body, the call ends.
func (c *conn) Write(p []byte) (n int, err error) {
	if err = c.SetWriteDeadline(time.Now().Add(stallTimeout)); err == nil {
		n, err = c.Conn.Write(p)
	}
	if err != nil {
		c.goOn(err)
	}
	return n, err
}

// Linger makes Close wait for a client that is still sending its request. Closing a connection with
// unread bytes resets it, and the client loses an answer that it has not read yet.
func (c *conn) Linger() { c.lingers.Store(true) }

// Close implements net.Conn. A second call, or the end of the server, cuts the lingering short.
func (c *conn) Close() error {
	if c.lingers.Swap(false) {
		c.busy.Store(false) // a stop need not wait for this connection
		c.drain()
	}
	return c.cut()
}

// drain closes the sending side, and reads until the client closes its own or a bound is reached.
func (c *conn) drain() {
	side, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || side.CloseWrite() != nil {
		return
	}
	until := time.Now().Add(lingerTime)
	buffer := make([]byte, 32<<10)
	for left := lingerBytes; left > 0; {
		at := time.Now().Add(lingerPause)
		if until.Before(at) {
			at = until
		}
		if c.SetReadDeadline(at) != nil {
			return
		}
		n, err := c.Conn.Read(buffer)
		if err != nil || !time.Now().Before(until) {
			return
		}
		left -= n
	}
}

// cut closes the connection immediately.
func (c *conn) cut() error {
	c.listener.forget(c)
	return c.Conn.Close()
}
