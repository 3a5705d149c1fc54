package node

import (
	"context"
	"errors"
	"sync"
)

// Why a request does not reach Raft.
var (
	ErrNotStarted = errors.New("controlplane: not started yet")
	ErrStopping   = errors.New("controlplane: this node is stopping")
)

// gate lets requests reach Raft while it runs: a request that Raft takes while it shuts down would
// wait for ever.
type gate struct {
	mu     sync.Mutex
	raft   *Raft
	over   bool
	inside int
	empty  chan struct{} // closed when it is over and nobody is inside
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// open lets requests in.
func (g *gate) open(r *Raft) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raft = r
}

// close lets nobody in any more. The channel is closed when all who were inside have left.
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

// enter is Raft, until leave.
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

// Enter is Raft, until Leave: it does not shut down meanwhile, unless that takes too long.
func (n *Node) Enter() (*Raft, error) { return n.gate.enter() }

// Leave ends what Enter began.
func (n *Node) Leave() { n.gate.leave() }

// Ask asks Raft something that may take long, and waits no longer than ctx: what Raft was asked it
// may do all the same.
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
	go func() { // Raft answers, or the shutdown makes it
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
