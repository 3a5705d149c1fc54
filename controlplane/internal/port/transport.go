package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Transport is Raft's transport over a port. A node speaks Raft in its own name alone, the one in
// its certificate: a request in another's never reaches Raft. It is counted and told as a refused
// call, and its connection ends.
//
// Raft's own transport reads requests without saying by which connection they came. So each
// connection that another node opened has one to itself.
type Transport struct {
	*raft.NetworkTransport // asks other nodes, and accepts nothing

	port     *Port
	config   raft.NetworkTransportConfig
	requests chan raft.RPC
	// heartbeat takes heartbeats past the queue of requests; nil until Raft says how.
	heartbeat atomic.Pointer[func(raft.RPC)]

	ctx    context.Context // ends with the transport
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// NewTransport speaks by a layer over this port's Raft; the stream of config is not used. Close
// ends it and leaves the port open.
func (p *Port) NewTransport(layer raft.StreamLayer, config raft.NetworkTransportConfig) *Transport {
	t := &Transport{port: p, config: config, requests: make(chan raft.RPC)}
	t.ctx, t.cancel = context.WithCancel(p.ctx)
	config.Stream = &dialing{StreamLayer: layer, ctx: t.ctx}
	t.NetworkTransport = raft.NewNetworkTransportWithConfig(&config)
	t.work.Go(func() { t.accept(layer) })
	return t
}

// Consumer implements raft.Transport.
func (t *Transport) Consumer() <-chan raft.RPC { return t.requests }

// SetHeartbeatHandler implements raft.Transport.
func (t *Transport) SetHeartbeatHandler(handle func(raft.RPC)) { t.heartbeat.Store(&handle) }

// Close implements raft.WithClose. What Raft was asked is not answered any more.
func (t *Transport) Close() error {
	err := t.NetworkTransport.Close()
	t.cancel()
	t.work.Wait()
	return err
}

// accept serves each connection until the layer is closed.
func (t *Transport) accept(layer raft.StreamLayer) {
	for {
		conn, err := layer.Accept()
		if err != nil {
			return
		}
		from, ours := conn.(*connection)
		if !ours {
			t.port.config.Logger.Error("port: raft's layer accepts connections that are " +
				"not this port's")
			_ = conn.Close()
			continue
		}
		t.work.Go(func() { t.serve(from) })
	}
}

// serve passes on what comes by a connection until it, or the transport, ends.
func (t *Transport) serve(from *connection) {
	layer := newAccepted(from)
	config := t.config
	config.Stream = layer
	inbound := raft.NewNetworkTransportWithConfig(&config)
	defer func() { _ = errors.Join(inbound.Close(), layer.conn.Close()) }()
	inbound.SetHeartbeatHandler(func(rpc raft.RPC) {
		switch handle := t.heartbeat.Load(); {
		case !t.isOwn(from, rpc):
			_ = layer.conn.Close() // which ends serve
		case handle != nil:
			(*handle)(rpc)
		default:
			t.pass(rpc, layer)
		}
	})
	for {
		select {
		case rpc := <-inbound.Consumer():
			if !t.isOwn(from, rpc) || !t.pass(rpc, layer) {
				return
			}
		case <-layer.conn.ended:
			return
		case <-t.ctx.Done():
			return
		}
	}
}

// pass gives Raft a request, and says whether it took it.
func (t *Transport) pass(rpc raft.RPC, layer *accepted) bool {
	select {
	case t.requests <- rpc:
		return true
	case <-layer.conn.ended:
	case <-t.ctx.Done():
	}
	return false
}

// isOwn says whether a node speaks in its own name. One that does not is told of and counted. It
// gets no answer: it would keep the connection for its next request, and the connection ends here.
func (t *Transport) isOwn(from *connection, rpc raft.RPC) bool {
	name := ""
	if said, ok := rpc.Command.(raft.WithRPCHeader); ok {
		header := said.GetRPCHeader()
		name = string(header.ID)
	}
	if name == from.peer.Node {
		return true
	}
	t.port.config.Logger.Warn("port: raft in another node's name was refused", "node", from.peer.Node,
		"named", fmt.Sprintf("%.100q", name), "request", fmt.Sprintf("%T", rpc.Command))
	t.port.refusedCalls.Add(1)
	return false
}

// dialing is a layer that only dials.
type dialing struct {
	raft.StreamLayer
	ctx context.Context // ends with the transport
}

// Accept implements net.Listener: connections are accepted elsewhere.
func (d *dialing) Accept() (net.Conn, error) {
	<-d.ctx.Done()
	return nil, net.ErrClosed
}

// accepted is a layer of one connection that was accepted.
type accepted struct {
	conn   *watched
	once   chan net.Conn
	closed chan struct{}
	close  func()
}

// watched is a connection that says when it was closed.
type watched struct {
	net.Conn
	ended chan struct{}
	end   func()
}

func newAccepted(conn net.Conn) *accepted {
	w := &watched{Conn: conn, ended: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.ended) })
	a := &accepted{conn: w, once: make(chan net.Conn, 1), closed: make(chan struct{})}
	a.close = sync.OnceFunc(func() { close(a.closed) })
	a.once <- w
	return a
}

// Close implements net.Conn.
func (w *watched) Close() error {
	w.end()
	return w.Conn.Close()
}

// Accept implements net.Listener.
func (a *accepted) Accept() (net.Conn, error) {
	select {
	case conn := <-a.once:
		return conn, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener; the connection has an owner.
func (a *accepted) Close() error {
	a.close()
	return nil
}

// Addr implements net.Listener.
func (a *accepted) Addr() net.Addr { return a.conn.LocalAddr() }

// Dial implements raft.StreamLayer.
func (a *accepted) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	return nil, errors.New("port: nothing is dialled by an accepted connection")
}
