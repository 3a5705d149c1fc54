//go:build linux

package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Direction is one direction of a Forward.
type Direction int

// The two directions.
const (
	Requests Direction = iota // from the node to the service
	Answers                   // back
)

// Forward brings a TCP service of the machine into a namespace, at the same address, as if it ran
// on the node. Each of its directions can be cut. Data sent in the meantime waits, as in TCP's own
// buffers, until the direction is healed.
type Forward struct {
	listener net.Listener
	target   string
	ctx      context.Context
	cancel   context.CancelFunc
	pending  sync.WaitGroup
	ways     [2]gate
}

// Forward begins to forward. The address must be on the loopback.
func (ns *Namespace) Forward(at netip.AddrPort) (*Forward, error) {
	listener, err := ns.Listen(at)
	if err != nil {
		return nil, err
	}
	f := &Forward{listener: listener, target: at.String()}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for i := range f.ways {
		f.ways[i].open()
	}
	f.pending.Go(f.accept)
	return f, nil
}

// Cut stops a direction.
func (f *Forward) Cut(way Direction) { f.ways[way].shut() }

// Heal reopens a direction.
func (f *Forward) Heal(way Direction) { f.ways[way].open() }

// Close ends the forwarding and its connections.
func (f *Forward) Close() error {
	f.cancel()
	err := f.listener.Close()
	f.pending.Wait()
	return err
}

func (f *Forward) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.pending.Go(func() { f.serve(conn) })
	}
}

// serve carries one connection. If the service refuses, the connection ends.
func (f *Forward) serve(node net.Conn) {
	defer node.Close()
	if f.ways[Requests].wait(f.ctx) != nil {
		return
	}
	var dialer net.Dialer
	service, err := dialer.DialContext(f.ctx, "tcp", f.target)
	if err != nil {
		return
	}
	defer service.Close()
	stop := context.AfterFunc(f.ctx, func() {
		_ = errors.Join(node.Close(), service.Close()) // one may already be closed
	})
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() { f.carry(service, node, Requests) })
	ways.Go(func() { f.carry(node, service, Answers) })
	ways.Wait()
}

// carry copies one direction; it passes on an end or an error once the direction is open.
func (f *Forward) carry(to, from net.Conn, way Direction) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if f.ways[way].wait(f.ctx) != nil {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.(*net.TCPConn).CloseWrite() // the connection may be gone
			return
		case err != nil:
			_ = to.Close()
			return
		}
	}
}

// gate lets callers pass while it is open.
type gate struct {
	mu     sync.Mutex
	passes chan struct{} // closed while open
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passes == nil {
		g.passes = make(chan struct{})
	}
	select {
	case <-g.passes:
	default:
		close(g.passes)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.passes:
		g.passes = make(chan struct{})
	default:
	}
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	passes := g.passes
	g.mu.Unlock()
	select {
	case <-passes:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
