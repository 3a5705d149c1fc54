package apiserver

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// stallTimeout is how long a client may leave an answer, or a piece of a stream, untaken.
const stallTimeout = 30 * time.Second

// listener knows its open connections, so that a stop can end those that do not end by themselves, and bounds how long
// a write may take: the server's own write time-out would also end streams that are well.
type listener struct {
	net.Listener
	operators bool // who calls there are operators

	mu     sync.Mutex
	open   map[*conn]struct{}
	closed bool
}

func listen(l net.Listener) *listener { return &listener{Listener: l, open: map[*conn]struct{}{}} }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(net.ErrClosed, accepted.Close())
	}
	l.open[c] = struct{}{}
	return c, nil
}

// Close implements net.Listener; it may be called again.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
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
		_ = c.Close() // it is to end, however
	}
}

// listeners are all that one server listens on.
type listeners []*listener

// serve serves on each until all are closed or one fails; the answer is the first failure of any, then.
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
	listener *listener
	busy     atomic.Bool // by what the server says
	asked    atomic.Bool // something has been read
	ended    atomic.Bool // the end of what the client sends has been read
}

// idle says whether it waits for a request. The server takes one that has never sent a byte for busy.
func (c *conn) idle() bool { return !c.busy.Load() || !c.asked.Load() }

// SenderClosed says whether the client has closed its side, as far as has been read.
func (c *conn) SenderClosed() bool { return c.ended.Load() }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.asked.Store(true)
	}
	if errors.Is(err, io.EOF) {
		c.ended.Store(true)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
