package egress

import (
	"net"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/pkg/address"
)

// origin is the key under which a kept-alive connection can be reused.
type origin struct {
	tls       bool
	private   bool
	authority string
	proxy     *Proxy // nil: none
}

func originOf(a address.Address, req *Request) origin {
	return origin{tls: a.TLS, private: req.Private, authority: a.Authority, proxy: req.Proxy}
}

// conn is a connection with the state that the pool and the meter need.
type conn struct {
	net.Conn
	to     origin
	alive  func() bool // whether an idle connection is still open and silent
	reused bool

	read    int64 // bytes of the exchange so far
	limit   int64 // of read
	largest int64 // read of all exchanges
	err     error // the last failure of Read

	idleSince    time.Time
	older, newer *conn // neighbours in the list of all idle connections
	under        *conn // the next idle one of the same origin
}

// Read is metered, so that no framing trick can make a response exceed its limit.
func (c *conn) Read(p []byte) (int, error) {
	if c.read >= c.limit {
		c.err = errTooLarge
		return 0, errTooLarge
	}
	p = p[:min(int64(len(p)), c.limit-c.read)]
	n, err := c.Conn.Read(p)
	c.read += int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

// Estimated bytes of an idle connection: its own, and with TLS the buffer for its records.
const (
	bareConn  = 2 << 10
	tlsConn   = 10 << 10
	tlsBuffer = 33 << 10 // at most
)

// weight returns the estimated bytes that the connection holds while it is idle.
func (c *conn) weight() int64 {
	if !c.to.tls {
		return bareConn
	}
	return tlsConn + min(2*c.largest, tlsBuffer)
}

// pool keeps idle connections, at most max and maxBytes over all origins, none longer than timeout.
// It reuses the last used connection of an origin first.
type pool struct {
	max      int
	maxBytes int64
	timeout  time.Duration

	mu     sync.Mutex
	idle   map[origin]*conn
	count  int
	bytes  int64 // total weight
	oldest *conn
	newest *conn
	timer  *time.Timer // runs while anything is idle
	closed bool
}

func newPool(max int, maxBytes int64, timeout time.Duration) *pool {
	return &pool{max: max, maxBytes: maxBytes, timeout: timeout, idle: make(map[origin]*conn)}
}

// takeConn returns an idle connection that seems open, or nil. Data that a server sent unasked, or
// its closing of an idle connection, is noticed here, before a request is written.
func (p *pool) takeConn(to origin) *conn {
	for {
		p.mu.Lock()
		c := p.idle[to]
		if c != nil {
			p.remove(c)
		}
		p.mu.Unlock()
		if c == nil {
			return nil
		}
		if c.alive() {
			c.reused, c.read, c.err = true, 0, nil
			return c
		}
		c.Close()
	}
}

// put keeps a connection whose last response was read completely.
func (p *pool) put(c *conn) {
	c.idleSince, c.largest = time.Now(), max(c.largest, c.read)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		c.Close()
		return
	}
	c.under = p.idle[c.to]
	p.idle[c.to] = c
	c.older = p.newest
	if p.newest != nil {
		p.newest.newer = c
	} else {
		p.oldest = c
	}
	p.newest = c
	p.count++
	p.bytes += c.weight()
	var surplus []*conn
	for p.count > p.max || p.bytes > p.maxBytes {
		surplus = append(surplus, p.oldest)
		p.remove(p.oldest)
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(p.timeout, p.expire)
	}
	p.mu.Unlock()
	closeAll(surplus)
}

// leave closes the idle direct connections to an authority.
func (p *pool) leave(authority string) {
	var left []*conn
	p.mu.Lock()
	for _, to := range [...]origin{{tls: true}, {}, {tls: true, private: true}, {private: true}} {
		to.authority = authority
		for c := p.idle[to]; c != nil; c = p.idle[to] {
			left = append(left, c)
			p.remove(c)
		}
	}
	p.mu.Unlock()
	closeAll(left)
}

func closeAll(connections []*conn) {
	for _, c := range connections {
		c.Close()
	}
}

// remove unlinks an idle connection. The caller holds mu.
func (p *pool) remove(c *conn) {
	head := p.idle[c.to]
	switch {
	case head != c:
		for head.under != c {
			head = head.under
		}
		head.under = c.under
	case c.under == nil:
		delete(p.idle, c.to)
	default:
		p.idle[c.to] = c.under
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		p.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		p.newest = c.older
	}
	c.under, c.older, c.newer = nil, nil, nil
	p.count--
	p.bytes -= c.weight()
}

// expire closes connections that were idle too long and sets the timer for the next one.
func (p *pool) expire() {
	var dead []*conn
	p.mu.Lock()
	for p.oldest != nil && (p.closed || time.Since(p.oldest.idleSince) >= p.timeout) {
		dead = append(dead, p.oldest)
		p.remove(p.oldest)
	}
	if p.oldest == nil {
		p.timer = nil
	} else {
		p.timer = time.AfterFunc(p.timeout-time.Since(p.oldest.idleSince), p.expire)
	}
	p.mu.Unlock()
	closeAll(dead)
}

// close closes the idle connections; later ones are closed when they return.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.expire()
}

// newConn wraps a fresh connection; tcp is the one below any TLS.
func newConn(c, tcp net.Conn, to origin) *conn {
	to.authority = strings.Clone(to.authority)
	return &conn{Conn: c, to: to, alive: aliveCheck(tcp)}
}
