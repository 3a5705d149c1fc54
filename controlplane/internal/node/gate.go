package node

import (
	"context"
	"errors"
	"sync"
)

// Why a request cannot reach Raft.
var (
	ErrNotStarted = errors.New("controlplane: not started yet")
	ErrStopping   = errors.New("controlplane: this node is stopping")
)

// gate lets requests reach Raft only while it runs. A request during Raft's shutdown would wait for
// ever.
type gate struct {
	mu     sync.Mutex
	raft   *Raft
	over   bool
	inside int
	empty  chan struct{} // closed when the gate is closed and nobody is inside
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// open lets requests in.
func (g *gate) open(r *Raft) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raft = r
}

// close lets nobody in any more. The channel is closed when everybody inside has left.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over = true
		if g.inside == 0 {
			close(g.empty)
		}
	}
	return g.empty
}

// enter returns Raft, which may be used until leave.
func (g *gate) enter() (*Raft, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return nil, ErrStopping
	case g.raft == nil:
		return nil, ErrNotStarted
	}
	g.inside++
	return g.raft, nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.over && g.inside == 0 {
		close(g.empty)
	}
}

// Enter returns Raft, which may be used until Leave. Shutdown waits for Leave, but not for ever.
func (n *Node) Enter() (*Raft, error) { return n.gate.enter() }

// Leave ends the use that Enter began.
func (n *Node) Leave() { n.gate.leave() }

// Ask asks Raft something that may take long, and waits no longer than ctx. Raft may still carry
// out the request afterwards.
func Ask[T any](ctx context.Context, n *Node, ask func(*Raft) (T, error)) (T, error) {
	var none T
	r, err := n.Enter()
	if err != nil {
		return none, err
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() { // Raft answers, or its shutdown ends the request
		defer n.Leave()
		value, err := ask(r)
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-n.life.Done():
		return none, ErrStopping
	}
}
