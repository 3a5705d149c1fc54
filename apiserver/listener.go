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

// stallTimeout is how long a client may leave an answer, or a piece of a stream, untaken.
const stallTimeout = 30 * time.Second

// A refused sender that still sends gets to see its answer: what it sends is read and dropped,
// within these bounds.
const (
	lingerTime  = 30 * time.Second // altogether
	lingerPause = 2 * time.Second  // without a byte
	lingerBytes = 128 << 20
)

// listener knows its open connections, so that a stop can end those that do not end by themselves.
// It bounds how long a write may take: the server's own write time-out would also end streams that
// are well.
type listener struct {
	net.Listener
	operators bool        // who calls there are operators
	secure    *tls.Config // of its connections; nil: they are in the clear

	callers callers
	clock   clock.Clock
	ended   chan struct{} // closed with it

	mu     sync.Mutex
	open   map[*conn]struct{}
	held   map[string]int // connections by holder, of those that are counted
	closed bool
}

func listen(l net.Listener, callers callers, clock clock.Clock) *listener {
	return &listener{Listener: l, callers: callers, clock: clock, ended: make(chan struct{}),
		open: map[*conn]struct{}{}, held: map[string]int{}}
}

// acceptAgain is the pause after connections that could not be taken, and warnEvery how often that
// is told.
var acceptAgain = retry.Backoff{First: 5 * time.Millisecond, Most: time.Second}

const warnEvery = time.Minute

// passes says of an error of Accept whether a later one may go well. Then the process or the system
// had no room for a connection, or the client was gone again.
func passes(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// take takes the next connection. An error that passes must not end the server.
func (l *listener) take() (net.Conn, error) {
	var warned time.Time
	for failures := 1; ; failures++ {
		accepted, err := l.Listener.Accept()
		if err == nil || !passes(err) {
			return accepted, err
		}
		if now := l.clock.Now(); failures == 1 || now.Sub(warned) >= warnEvery {
			warned = now
			l.callers.log.Warn("a connection could not be taken", "error", err)
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

// admit counts a connection, unless its holder has its share already, or all are given away. Then
// it says so.
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

// forget takes a connection from the count, once.
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

// Close implements net.Listener; it may be called again.
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

// follow keeps what the server says of a connection.
func follow(c net.Conn, state fasthttp.ConnState) {
	if own, ok := c.(*conn); ok {
		own.busy.Store(state == fasthttp.StateActive)
	}
}

// end ends connections.
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
		_ = c.raw.Close() // it is to end, however: TLS would wait for its farewell to be taken
	}
}

// listeners are all that one server listens on.
type listeners []*listener

// serve serves on each until all are closed or one fails; the answer is the first failure of any,
// then.
func (all listeners) serve(server *fasthttp.Server) <-chan error {
	served := make(chan error, 1)
	failed := make(chan error, len(all))
	for _, l := range all {
		go func() {
			err := server.Serve(l)
			_ = all.close() // the others end with it
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

// close closes all; it may be called again.
func (all listeners) close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// end ends the connections of all.
func (all listeners) end(which func(*conn) bool) {
	for _, l := range all {
		l.end(which)
	}
}

// conn is a client's connection.
type conn struct {
	net.Conn
	raw      net.Conn // what the other one is over, which is the same in the clear
	listener *listener
	holder   string      // in whose share it is, "" in nobody's
	busy     atomic.Bool // by what the server says
	asked    atomic.Bool // something has been read
	ended    atomic.Bool // the end of what the client sends has been read
	lingers  atomic.Bool // Close waits until the client has seen the answer

	begun *operation.Begun // waits for its body; nil: no call does
}

// idle says whether it waits for a request. The server takes one that has never sent a byte for
// busy.
func (c *conn) idle() bool { return !c.busy.Load() || !c.asked.Load() }

// Secure says whether it is encrypted.
func (c *conn) Secure() bool { return c.listener.secure != nil }

// SenderClosed says whether the client has closed its side, as far as has been read.
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

// goOn goes on with a call that waits for its body. err says why that does not come.
func (c *conn) goOn(err error) (begun bool) {
	b := c.begun
	if c.begun = nil; b != nil {
		b.Continue(err)
	}
	return b != nil
}

// Write implements net.Conn. A call whose client cannot be told to send its body ends by that.
func (c *conn) Write(p []byte) (n int, err error) {
	if err = c.SetWriteDeadline(time.Now().Add(stallTimeout)); err == nil {
		n, err = c.Conn.Write(p)
	}
	if err != nil {
		c.goOn(err)
	}
	return n, err
}

// Linger makes Close wait for a client that has not sent all of its request. A connection that is
// closed with bytes unread is reset, and with it goes the answer that the client has not read yet.
func (c *conn) Linger() { c.lingers.Store(true) }

// Close implements net.Conn. A second one, and the end of the server, cut a lingering one short.
func (c *conn) Close() error {
	if c.lingers.Swap(false) {
		c.busy.Store(false) // a stop need not wait for it
		c.drain()
	}
	return c.cut()
}

// drain sends the end of what the server says, and reads until the client ends, too, or the bounds
// are reached.
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

// cut closes the connection at once.
func (c *conn) cut() error {
	c.listener.forget(c)
	return c.Conn.Close()
}
