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

// Transport is Raft's transport over a port. A node may speak Raft only in its own name, the one in
// its certificate. A request in another name never reaches Raft: it is logged and counted as a
// refused call, and its connection ends.
//
// Raft's own transport does not say which connection a request came by. So each inbound connection
// gets a transport of its own.
type Transport struct {
	*raft.NetworkTransport // calls other nodes; accepts nothing

	port     *Port
	config   raft.NetworkTransportConfig
	requests chan raft.RPC
	// heartbeat handles heartbeats without the request queue; nil until Raft sets it.
	heartbeat atomic.Pointer[func(raft.RPC)]
	// beats is held by heartbeats under way. Raft's shutdown does not wait for them.
	beats sync.RWMutex

	ctx    context.Context // ends with the transport
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// NewTransport makes a transport that dials through a layer over this port's Raft. It ignores
// config.Stream. Close ends it and leaves the port open.
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

// Close implements raft.WithClose. Pending requests get no answer. Afterwards no heartbeat writes
// to Raft's files.
func (t *Transport) Close() error {
	err := t.NetworkTransport.Close()
	t.cancel()
	t.work.Wait()
	t.beats.Lock()
	defer t.beats.Unlock()
	return err
}

// beat passes a heartbeat to Raft, unless the transport is closing.
func (t *Transport) beat(handle func(raft.RPC), rpc raft.RPC) {
	t.beats.RLock()
	defer t.beats.RUnlock()
	if t.ctx.Err() == nil {
		handle(rpc)
	}
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

// serve passes on the requests of a connection until it or the transport ends.
func (t *Transport) serve(from *connection) {
	layer := newAccepted(from)
	config := t.config
	config.Stream = layer
	inbound := raft.NewNetworkTransportWithConfig(&config)
	defer func() { _ = errors.Join(inbound.Close(), layer.conn.Close()) }()
	inbound.SetHeartbeatHandler(func(rpc raft.RPC) {
		switch handle := t.heartbeat.Load(); {
		case !t.isOwn(from, rpc):
			_ = layer.conn.Close() // this ends serve
		case handle != nil:
			t.beat(*handle, rpc)
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

// pass hands a request to Raft, and says whether Raft took it.
func (t *Transport) pass(rpc raft.RPC, layer *accepted) bool {
	select {
	case t.requests <- rpc:
		return true
	case <-layer.conn.ended:
	case <-t.ctx.Done():
	}
	return false
}

// isOwn says whether a node speaks in its own name. A violation is logged and counted. It gets no
// answer, which would keep the connection for the next request: the connection ends.
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

// Accept implements net.Listener. Connections are accepted elsewhere.
func (d *dialing) Accept() (net.Conn, error) {
	<-d.ctx.Done()
	return nil, net.ErrClosed
}

// accepted is a layer with one accepted connection.
type accepted struct {
	conn   *watched
	once   chan net.Conn
	closed chan struct{}
	close  func()
}

// watched is a connection that reports its end.
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

// Close implements net.Listener. It leaves the connection to its owner.
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
