package apiserver

import (
	"net"
	"sync"
	"time"
)

// stallTimeout is how long a client may leave an answer, or a piece of a stream, untaken.
const stallTimeout = 30 * time.Second

// listener knows its open connections, so that a stop can end those that do not end by themselves, and bounds how long
// a write may take: the server's own write time-out would also end streams that are well.
type listener struct {
	net.Listener

	mu   sync.Mutex
	open map[*conn]struct{}
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
	l.open[c] = struct{}{}
	return c, nil
}

// closeAll ends every connection.
func (l *listener) closeAll() {
	l.mu.Lock()
	conns := make([]*conn, 0, len(l.open))
	for c := range l.open {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // it is to end, however
	}
}

type conn struct {
	net.Conn
	listener *listener
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
