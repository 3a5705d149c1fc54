// Package port owns a node's one TCP port and the connections to other nodes' ports. They use
// mutual TLS with the cluster's identities. ALPN separates Raft's streams from calls between nodes.
// The control plane defines the calls and their answers; who is a member is decided elsewhere.
// Everything that arrives is bounded: handshakes, connections, calls, bytes and times.
package port

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/codec"
)

// The protocols of a connection, by ALPN.
const (
	raftProtocol = "shoal-raft"
	callProtocol = "shoal-rpc"
)

// Bounds of a port.
const (
	maxHandshakes     = 128 // concurrent; a new one ends the oldest
	maxConnections    = 2048
	handshakePatience = 5 * time.Second
	dialPatience      = time.Second     // to connect to the other machine
	stopPatience      = 3 * time.Second // for calls to notice the end
)

// Config configures a port.
type Config struct {
	Identity  *identity.Identity
	Listen    string // HOST:PORT
	Advertise string // HOST:PORT at which other nodes reach this one; "": the listening address
	Now       func() time.Time
	Logger    *slog.Logger
	// Dial opens a TCP connection; nil: the system's dialer. Tests use it to partition nodes.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Port is open from Open until Close. It is safe for concurrent use.
type Port struct {
	config   Config
	listener net.Listener
	server   *tls.Config
	raft     *streams
	calls    *streams
	http     *http.Server
	voters   *http.Client // calls nodes with the role controlplane
	nodes    *http.Client // calls any node
	codec    *codec.Codec
	slots    chan struct{} // one for each concurrent call

	ctx    context.Context // ends with the port
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	handshakes []net.Conn // oldest first
	open       map[*connection]struct{}
	closed     bool

	refusedConnections atomic.Uint64
	refusedCalls       atomic.Uint64
}

// Open starts to listen. Connections wait until Serve and Raft's transport take them.
func Open(config Config) (*Port, error) {
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("port: %w", err)
	}
	if config.Advertise == "" {
		config.Advertise = listener.Addr().String()
	}
	if config.Dial == nil {
		dialer := &net.Dialer{}
		config.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	p := &Port{config: config, listener: listener, server: config.Identity.TLSServer(config.Now),
		codec: codec.New(), open: map[*connection]struct{}{}, slots: make(chan struct{}, maxCalls)}
	p.server.NextProtos = []string{raftProtocol, callProtocol}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.raft, p.calls = newStreams(p), newStreams(p)
	p.voters, p.nodes = p.newClient(identity.ControlPlane), p.newClient("")
	p.work.Go(p.accept)
	return p, nil
}

// Address returns where other nodes reach this one.
func (p *Port) Address() string { return p.config.Advertise }

// Refused counts the refused connections, and the calls that their caller's roles do not allow.
func (p *Port) Refused() (connections, calls uint64) {
	return p.refusedConnections.Load(), p.refusedCalls.Load()
}

// Close ends calls, then all connections, and waits for what the port runs.
func (p *Port) Close() error {
	p.mu.Lock()
	server, again := p.http, p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return nil
	}
	err := p.listener.Close()
	p.cancel()
	if server != nil {
		patience, cancel := context.WithTimeout(context.Background(), stopPatience)
		if server.Shutdown(patience) != nil {
			_ = server.Close() // cuts off calls that do not end
		}
		cancel()
	}
	p.voters.CloseIdleConnections()
	p.nodes.CloseIdleConnections()
	p.mu.Lock()
	for _, c := range p.handshakes {
		_ = c.Close()
	}
	for c := range p.open {
		_ = c.Conn.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
	return err
}

// accept takes connections until the port is closed.
func (p *Port) accept() {
	for {
		raw, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, for example: open connections go on
			p.config.Logger.Warn("port: accept", "error", err)
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if p.noteHandshake(raw) {
			p.work.Go(func() { p.admit(raw) })
		}
	}
}

// noteHandshake records a handshake. If too many are under way it ends the oldest: a genuine one
// takes milliseconds.
func (p *Port) noteHandshake(raw net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.open) >= maxConnections {
		p.refusedConnections.Add(1)
		_ = raw.Close()
		return false
	}
	if len(p.handshakes) == maxHandshakes {
		_ = p.handshakes[0].Close()
		p.handshakes = p.handshakes[1:]
	}
	p.handshakes = append(p.handshakes, raw)
	return true
}

// ended forgets a handshake.
func (p *Port) ended(raw net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, c := range p.handshakes {
		if c == raw {
			p.handshakes = append(p.handshakes[:at:at], p.handshakes[at+1:]...)
			return
		}
	}
}

// admit completes the handshake and passes the connection to the listener of its protocol.
func (p *Port) admit(raw net.Conn) {
	conn, protocol, err := p.shake(raw)
	p.ended(raw)
	if err == nil {
		to := p.calls
		if protocol == raftProtocol {
			to = p.raft
		}
		err = to.pass(conn)
	}
	if err != nil {
		p.refusedConnections.Add(1)
		p.config.Logger.Debug("port: connection refused", "from", raw.RemoteAddr().String(),
			"error", err)
		_ = raw.Close()
	}
}

func (p *Port) shake(raw net.Conn) (*connection, string, error) {
	patience, cancel := context.WithTimeout(p.ctx, handshakePatience)
	defer cancel()
	secure := tls.Server(raw, p.server)
	if err := secure.HandshakeContext(patience); err != nil {
		return nil, "", err
	}
	state := secure.ConnectionState()
	peer, err := identity.PeerOf(state)
	if err != nil {
		return nil, "", err
	}
	switch state.NegotiatedProtocol {
	case callProtocol:
	case raftProtocol:
		if !peer.Has(identity.ControlPlane) {
			return nil, "", fmt.Errorf("node %q speaks Raft and does not have the role %s",
				peer.Node, identity.ControlPlane)
		}
	default:
		return nil, "", errors.New("neither Raft nor calls are spoken")
	}
	conn, err := p.keep(secure, peer)
	return conn, state.NegotiatedProtocol, err
}

// dial connects to a node that must have the given name and role; "" accepts any.
func (p *Port) dial(ctx context.Context, address, protocol, node, role string) (net.Conn, error) {
	raw, err := p.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakePatience)
	defer cancel()
	config := p.config.Identity.TLSClient(p.config.Now, node, role)
	config.NextProtos = []string{protocol}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	peer, err := identity.PeerOf(secure.ConnectionState())
	if err == nil {
		var conn *connection
		if conn, err = p.keep(secure, peer); err == nil {
			return conn, nil
		}
	}
	_ = raw.Close()
	return nil, err
}

func (p *Port) connect(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	return p.config.Dial(ctx, address)
}

// connection ends with the port at the latest. It hides the *tls.Conn from net/http, which would
// otherwise choose the protocol itself.
type connection struct {
	net.Conn
	port *Port
	peer identity.Peer // at the other end, by its certificate
}

func (p *Port) keep(conn net.Conn, peer identity.Peer) (*connection, error) {
	c := &connection{Conn: conn, port: p, peer: peer}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	p.open[c] = struct{}{}
	return c, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.port.mu.Lock()
	delete(c.port.open, c)
	c.port.mu.Unlock()
	return c.Conn.Close()
}

// streams is a listener for the connections of one protocol.
type streams struct {
	port   *Port
	queue  chan *connection
	closed func()
	done   chan struct{} // closed with the listener
}

var (
	_ net.Listener     = (*streams)(nil)
	_ raft.StreamLayer = (*streams)(nil)
)

func newStreams(p *Port) *streams {
	s := &streams{port: p, queue: make(chan *connection), done: make(chan struct{})}
	s.closed = sync.OnceFunc(func() { close(s.done) })
	return s
}

// Raft returns the layer for Raft's transport. Closing it leaves the port open.
func (p *Port) Raft() raft.StreamLayer { return p.raft }

// pass waits until a reader accepts the connection.
func (s *streams) pass(c *connection) error {
	select {
	case s.queue <- c:
		return nil
	case <-s.done:
	case <-s.port.ctx.Done():
	case <-time.After(handshakePatience):
	}
	return errors.Join(net.ErrClosed, c.Close())
}

// Accept implements net.Listener.
func (s *streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.queue:
		return c, nil
	case <-s.done:
	case <-s.port.ctx.Done():
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener. The port is closed by its owner.
func (s *streams) Close() error {
	s.closed()
	return nil
}

// address is a node's address as in Raft's configuration.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// Addr implements net.Listener. It returns where other nodes reach this one.
func (s *streams) Addr() net.Addr { return address(s.port.config.Advertise) }

// Target returns what Raft's layer dials: a named node at an address HOST:PORT that must have a
// role; "" accepts any. Raft keys its connections by it, so a connection opened for a lesser role
// is never used for a greater one.
func Target(node, role, at string) raft.ServerAddress {
	return raft.ServerAddress(role + "/" + node + "@" + at)
}

// Dial implements raft.StreamLayer. It accepts only addresses made by Target, because the answering
// node must be the one that Raft means.
func (s *streams) Dial(to raft.ServerAddress, patience time.Duration) (net.Conn, error) {
	role, rest, _ := strings.Cut(string(to), "/")
	node, at, named := strings.Cut(rest, "@")
	if !named || node == "" {
		return nil, fmt.Errorf("port: %q names no node", to)
	}
	ctx, cancel := context.WithTimeout(s.port.ctx, patience)
	defer cancel()
	return s.port.dial(ctx, at, raftProtocol, node, role)
}
